//! The calls of sockets that receive messages as they come.

/// Receives, waiting or not, by what the socket's `take` and `take_at_once` find.
macro_rules! receiving_calls {
    ($socket:ident) => {
        impl $socket {
            /// Receives, waiting for a message.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn recv(&self) -> Result<$crate::Message, $crate::Error> {
                self.recv_until($crate::driver::Patience::Endless)
            }

            /// Receives, waiting for at most `timeout`.
            ///
            /// # Errors
            /// `TimedOut` or `Terminated`.
            pub fn recv_timeout(
                &self,
                timeout: std::time::Duration,
            ) -> Result<$crate::Message, $crate::Error> {
                self.recv_until($crate::driver::Patience::For(timeout))
            }

            fn recv_until(
                &self,
                patience: $crate::driver::Patience,
            ) -> Result<$crate::Message, $crate::Error> {
                match self.receive_at_once() {
                    Some(message) => Ok(message),
                    None => self.handle.recv_until(patience, Self::take),
                }
            }

            fn receive_at_once(&self) -> Option<$crate::Message> {
                self.handle.shared.take_at_once(Self::take_at_once)
            }

            /// Receives up to `max` messages behind those in `messages`, waiting for the first one; says how
            /// many came. Takes less for each than receiving them one by one.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn recv_many(
                &self,
                messages: &mut Vec<$crate::Message>,
                max: usize,
            ) -> Result<usize, $crate::Error> {
                self.recv_many_until(messages, max, $crate::driver::Patience::Endless)
            }

            /// As `recv_many`, waiting for the first one for at most `timeout`.
            ///
            /// # Errors
            /// `TimedOut` or `Terminated`.
            pub fn recv_many_timeout(
                &self,
                messages: &mut Vec<$crate::Message>,
                max: usize,
                timeout: std::time::Duration,
            ) -> Result<usize, $crate::Error> {
                self.recv_many_until(messages, max, $crate::driver::Patience::For(timeout))
            }

            fn recv_many_until(
                &self,
                messages: &mut Vec<$crate::Message>,
                max: usize,
                patience: $crate::driver::Patience,
            ) -> Result<usize, $crate::Error> {
                if max == 0 {
                    return Ok(0);
                }
                messages.push(self.recv_until(patience)?);
                Ok(1 + self.receive_many(messages, max - 1))
            }

            pub(super) fn receive_many(
                &self,
                messages: &mut Vec<$crate::Message>,
                max: usize,
            ) -> usize {
                self.handle.recv_many(messages, max, Self::take_at_once)
            }

            /// Receives if a message is here now.
            ///
            /// # Errors
            /// `WouldBlock` or `Terminated`.
            pub fn try_recv(&self) -> Result<$crate::Message, $crate::Error> {
                match self.receive_at_once() {
                    Some(message) => Ok(message),
                    None => self.handle.try_recv_with(Self::take),
                }
            }
        }
    };
}
pub(crate) use receiving_calls;
