use std::sync::Arc;
use std::time::Duration;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::{Handle, MatchingListener, OpenOptions, Socket, matching};
use crate::driver::Patience;
use crate::engine::{Core, Room};
use crate::roles::publisher::Publisher;
use crate::{Context, Error, Message, SendError};

/// Sends each message to every peer that subscribed to the beginning of its first part.
///
/// ```no_run
/// # use msg_patterns::{Context, Message, Pub};
/// let publisher = Pub::new(&Context::new())?;
/// publisher.bind("tcp://127.0.0.1:5556")?;
/// publisher.send(Message::from_parts(["weather.berlin", "7 °C"]))?;
/// # Ok::<(), msg_patterns::Error>(())
/// ```
#[derive(Clone)]
pub struct Pub {
    pub(super) handle: Arc<Handle<Publisher>>,
}

common_calls!(Pub);

impl Socket for Pub {
    const TYPE: SocketType = SocketType::Pub;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Publisher::new(&options.0);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl Pub {
    /// Publishes. With [`OnFull::Drop`](crate::OnFull::Drop) it never waits: a subscriber without room misses the
    /// message, which both sides count. With [`OnFull::Block`](crate::OnFull::Block) it waits until all have room.
    ///
    /// # Errors
    /// The message with `TooLong` or `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        self.send_until(message.into(), Patience::Endless)
    }

    /// As `send`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// As `send`, and `TimedOut`.
    pub fn send_timeout(
        &self,
        message: impl Into<Message>,
        timeout: Duration,
    ) -> Result<(), SendError> {
        self.send_until(message.into(), Patience::For(timeout))
    }

    /// Publishes all of `messages` in order, as [`send`](Self::send) would, for less each.
    ///
    /// # Errors
    /// As `send`, with the first message that was not sent; those before it were, and those behind it
    /// are dropped.
    pub fn send_many<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), SendError> {
        let send = |message| self.send_until(message, Patience::Endless);
        self.handle.send_many(messages, publish_at_once, send)
    }

    /// As `send`, without waiting.
    ///
    /// # Errors
    /// As `send`, and `WouldBlock`.
    pub fn try_send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let message = message.into();
        if self.send_at_once(&message) {
            return Ok(());
        }
        self.handle.try_send_with(message, publish)
    }

    fn send_at_once(&self, message: &Message) -> bool {
        self.handle.shared.send_at_once(|core| publish_at_once(core, message))
    }

    fn send_until(&self, message: Message, mut patience: Patience) -> Result<(), SendError> {
        if self.send_at_once(&message) {
            return Ok(());
        }
        self.handle.send_with(message, &mut patience, publish)
    }

    /// How many connected subscribers would get a message whose first part is `subject`.
    pub fn matching(&self, subject: impl AsRef<[u8]>) -> usize {
        let subject = subject.as_ref();
        self.handle.shared.look(|core| core.role.matching(&core.net, subject))
    }

    /// Waits until at least `subscribers` would get a message whose first part is `subject`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn wait_matching(
        &self,
        subject: impl AsRef<[u8]>,
        subscribers: usize,
        timeout: Duration,
    ) -> Result<(), Error> {
        let waits_for = "too few subscribers came";
        matching::wait(&self.handle, subject.as_ref(), timeout, waits_for, |count| {
            count >= subscribers
        })
        .map(drop)
    }

    /// Follows how many connected subscribers would get a message whose first part is `subject`.
    pub fn matching_listener(&self, subject: impl AsRef<[u8]>) -> MatchingListener {
        MatchingListener::new(self.handle.clone(), subject.as_ref())
    }

    /// How many different topics are subscribed to.
    pub fn topics(&self) -> usize {
        self.handle.shared.look(|core| core.role.topics())
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free.
    pub fn close(self) {
        self.handle.close();
    }
}

pub(super) fn publish(core: &mut Core<Publisher>, message: Message) -> Result<(), (Message, Room)> {
    core.role.publish(&mut core.net, message).map_err(|message| (message, Room::Full))
}

#[inline]
fn publish_at_once(core: &mut Core<Publisher>, message: &Message) -> bool {
    core.role.publish_at_once(&mut core.net, message)
}
