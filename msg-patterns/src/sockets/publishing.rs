//! The calls of sockets that publish.

use crate::Message;
use crate::engine::{Core, Room};
use crate::roles::publisher::Publishes;

/// Publishes, and tells who would get it, for a socket whose role has a publisher.
macro_rules! publishing_calls {
    ($socket:ident) => {
        impl $socket {
            /// Publishes. With [`OnFull::Drop`](crate::OnFull::Drop) it never waits: a subscriber without room misses the
            /// message, which both sides count. With [`OnFull::Block`](crate::OnFull::Block) it waits until all have room.
            ///
            /// # Errors
            /// The message with `TooLong` or `Terminated`.
            pub fn send(
                &self,
                message: impl Into<$crate::Message>,
            ) -> Result<(), $crate::SendError> {
                self.send_until(message.into(), $crate::driver::Patience::Endless)
            }

            /// As `send`, waiting for at most `timeout`.
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

            /// Publishes all of `messages` in order, as [`send`](Self::send) would, for less each.
            ///
            /// # Errors
            /// As `send`, with the first message that was not sent; those before it were, and those behind it
            /// are dropped.
            pub fn send_many<M: Into<$crate::Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
            ) -> Result<(), $crate::SendError> {
                let send = |message| self.send_until(message, $crate::driver::Patience::Endless);
                self.handle.send_many(messages, $crate::sockets::publishing::publish_at_once, send)
            }

            /// As `send`, without waiting.
            ///
            /// # Errors
            /// As `send`, and `WouldBlock`.
            pub fn try_send(
                &self,
                message: impl Into<$crate::Message>,
            ) -> Result<(), $crate::SendError> {
                let message = message.into();
                if self.send_at_once(&message) {
                    return Ok(());
                }
                self.handle.try_send_with(message, $crate::sockets::publishing::publish)
            }

            fn send_at_once(&self, message: &$crate::Message) -> bool {
                self.handle.shared.send_at_once(|core| {
                    $crate::sockets::publishing::publish_at_once(core, message)
                })
            }

            fn send_until(
                &self,
                message: $crate::Message,
                mut patience: $crate::driver::Patience,
            ) -> Result<(), $crate::SendError> {
                if self.send_at_once(&message) {
                    return Ok(());
                }
                self.handle.send_with(message, &mut patience, $crate::sockets::publishing::publish)
            }

            /// How many connected subscribers would get a message whose first part is `subject`.
            pub fn matching(&self, subject: impl AsRef<[u8]>) -> usize {
                let subject = subject.as_ref();
                self.handle.shared.look(|core| {
                    $crate::roles::publisher::Publishes::publisher(&core.role)
                        .matching(&core.net, subject)
                })
            }

            /// Waits until at least `subscribers` would get a message whose first part is `subject`.
            ///
            /// # Errors
            /// `TimedOut` or `Terminated`.
            pub fn wait_matching(
                &self,
                subject: impl AsRef<[u8]>,
                subscribers: usize,
                timeout: std::time::Duration,
            ) -> Result<(), $crate::Error> {
                let waits_for = "too few subscribers came";
                $crate::sockets::matching::wait(
                    &self.handle,
                    subject.as_ref(),
                    timeout,
                    waits_for,
                    |count| count >= subscribers,
                )
                .map(drop)
            }

            /// How many different topics are subscribed to.
            pub fn topics(&self) -> usize {
                self.handle.shared.look(|core| {
                    $crate::roles::publisher::Publishes::publisher(&core.role).topics()
                })
            }
        }
    };
}
pub(crate) use publishing_calls;

pub(crate) fn publish<R: Publishes>(
    core: &mut Core<R>,
    message: Message,
) -> Result<(), (Message, Room)> {
    let Core { net, role } = core;
    role.publisher_mut().publish(net, message).map_err(|message| (message, Room::Full))
}

#[inline]
pub(crate) fn publish_at_once<R: Publishes>(core: &mut Core<R>, message: &Message) -> bool {
    let Core { net, role } = core;
    role.publisher_mut().publish_at_once(net, message)
}
