//! The calls of sockets that send and receive freely, each message by itself.

/// Sends and receives, waiting or not, for a socket whose role is a `TwoWay`.
macro_rules! two_way_calls {
    ($socket:ident, $role:ty, $room:literal) => {
        $crate::sockets::receiving::receiving_calls!($socket);

        impl $socket {
            #[doc = concat!("Sends, waiting for ", $room, ". `Ok` means queued, not delivered.")]
            ///
            /// # Errors
            /// The message with `TooLong` or `Terminated`.
            pub fn send(
                &self,
                message: impl Into<$crate::Message>,
            ) -> Result<(), $crate::SendError> {
                self.send_until(message.into(), $crate::driver::Patience::Endless)
            }

            #[doc = concat!("Sends, waiting for ", $room, " for at most `timeout`.")]
            ///
            /// # Errors
            /// As `send`, and `TimedOut`.
            pub fn send_timeout(
                &self,
                message: impl Into<$crate::Message>,
                timeout: std::time::Duration,
            ) -> Result<(), $crate::SendError> {
                self.send_until(message.into(), $crate::driver::Patience::For(timeout))
            }

            /// Sends all of `messages` in order, as [`send`](Self::send) would, for less each.
            ///
            /// # Errors
            /// As `send`, with the first message that was not sent; those before it were, and those
            /// behind it are dropped.
            pub fn send_many<M: Into<$crate::Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
            ) -> Result<(), $crate::SendError> {
                let send = |message| self.send_until(message, $crate::driver::Patience::Endless);
                self.handle.send_many(messages, Self::give_at_once, send)
            }

            /// Sends if there is room now.
            ///
            /// # Errors
            /// As `send`, and `NoPeer` or `WouldBlock`.
            pub fn try_send(
                &self,
                message: impl Into<$crate::Message>,
            ) -> Result<(), $crate::SendError> {
                let message = message.into();
                if self.send_at_once(&message) {
                    return Ok(());
                }
                self.handle.try_send_with(message, Self::give)
            }

            /// Closes the socket for all its handles: waits up to linger for what was accepted; then
            /// its ports are free. Messages that were not received are dropped.
            pub fn close(self) {
                self.handle.close();
            }

            fn send_at_once(&self, message: &$crate::Message) -> bool {
                self.handle.shared.send_at_once(|core| Self::give_at_once(core, message))
            }

            fn send_until(
                &self,
                message: $crate::Message,
                mut patience: $crate::driver::Patience,
            ) -> Result<(), $crate::SendError> {
                if self.send_at_once(&message) {
                    return Ok(());
                }
                self.handle.send_with(message, &mut patience, Self::give)
            }

            pub(super) fn give(
                core: &mut $crate::engine::Core<$role>,
                message: $crate::Message,
            ) -> Result<(), ($crate::Message, $crate::engine::Room)> {
                $crate::roles::TwoWay::send(&mut core.role, &mut core.net, message)
            }

            #[inline]
            fn give_at_once(
                core: &mut $crate::engine::Core<$role>,
                message: &$crate::Message,
            ) -> bool {
                $crate::roles::TwoWay::send_at_once(&mut core.role, &mut core.net, message)
            }

            pub(super) fn take(core: &mut $crate::engine::Core<$role>) -> Option<$crate::Message> {
                $crate::roles::TwoWay::receive(&mut core.role, &mut core.net)
            }

            #[inline(always)]
            fn take_at_once(core: &mut $crate::engine::Core<$role>) -> Option<$crate::Message> {
                $crate::roles::TwoWay::receive_at_once(&mut core.role, &mut core.net)
            }
        }
    };
}
pub(crate) use two_way_calls;
