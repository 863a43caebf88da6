use std::sync::Arc;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::receiving::receiving_calls;
use super::{Handle, OpenOptions, Socket, subscribe};
use crate::engine::{Core, Room};
use crate::roles::xsubscriber::XSubscriber;
use crate::{Context, Error, Message, SendError, Subscription};

/// Receives as [`Sub`](crate::Sub) does, without a filter of its own, and sends messages up to its
/// publishers, which an [`XPub`](crate::XPub) receives and a [`Pub`](crate::Pub) ignores.
///
/// Subscriptions need no room: one may overtake messages that wait for it. It may also be sent, as ZeroMQ has it: a message whose first part begins with the byte
/// 1 subscribes to the rest of that part, and with 0 cancels.
///
/// ```
/// use msg_patterns::{Context, XPub, XSub};
///
/// let context = Context::new();
/// let publisher = XPub::new(&context)?;
/// let sub = XSub::new(&context)?;
/// sub.connect(&publisher.bind("tcp://127.0.0.1:0")?.to_string())?;
/// sub.send("\x01weather.")?;
/// assert_eq!(publisher.recv()?.into_message().first(), "\x01weather.");
/// sub.send("which city?")?;
/// assert_eq!(publisher.recv()?.into_message().first(), "which city?");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct XSub {
    pub(super) handle: Arc<Handle<XSubscriber>>,
}

common_calls!(XSub);
receiving_calls!(XSub);

impl Socket for XSub {
    const TYPE: SocketType = SocketType::XSub;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = XSubscriber::new(&options.0);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl XSub {
    /// Subscribes to all messages whose first part begins with `topic`, as
    /// [`Sub::subscribe`](crate::Sub::subscribe) does.
    ///
    /// # Errors
    /// `TooLong` for a topic over 32 KiB, `Terminated`.
    pub fn subscribe(&self, topic: impl AsRef<[u8]>) -> Result<(), Error> {
        let topic = topic.as_ref();
        subscribe::check(topic)?;
        self.handle.shared.command(|core| core.role.subscribe(&mut core.net, topic))
    }

    /// Takes one `subscribe` back. Unsubscribing what was not subscribed does nothing.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn unsubscribe(&self, topic: impl AsRef<[u8]>) -> Result<(), Error> {
        let topic = topic.as_ref();
        self.handle.shared.command(|core| core.role.unsubscribe(&mut core.net, topic))
    }

    /// Sends to all publishers; never waits. A publisher without room misses the message, which both
    /// sides count. If the first part begins with the byte 1 or 0 it is a subscription or a
    /// cancellation instead, and what follows it, if anything does, is the message.
    ///
    /// # Errors
    /// The message with `TooLong` or `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let message = message.into();
        if self.handle.shared.send_at_once(|core| core.role.send_at_once(&mut core.net, &message)) {
            return Ok(());
        }
        let message = checked(message)?;
        self.handle.try_send_with(message, give)
    }

    /// As [`send`](Self::send), which never waits.
    ///
    /// # Errors
    /// As `send`.
    pub fn try_send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        self.send(message)
    }

    /// How many messages publishers said they dropped for this subscriber; per publisher in
    /// [`peers`](XSub::peers).
    pub fn lost(&self) -> u64 {
        self.counters().lost
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free. Messages that were not received are dropped.
    pub fn close(self) {
        self.handle.close();
    }

    fn take_at_once(core: &mut Core<XSubscriber>) -> Option<Message> {
        core.role.receive_at_once(&mut core.net)
    }

    pub(crate) fn take(core: &mut Core<XSubscriber>) -> Option<Message> {
        core.role.receive(&mut core.net)
    }
}

/// The message, if it is no subscription to a topic that is too long.
pub(super) fn checked(message: Message) -> Result<Message, SendError> {
    let topic = Subscription::parse(message.first()).map_or(&[][..], |(_, topic)| topic);
    match subscribe::check(topic) {
        Ok(()) => Ok(message),
        Err(error) => Err(SendError::new(message, error)),
    }
}

pub(crate) fn give(core: &mut Core<XSubscriber>, message: Message) -> Result<(), (Message, Room)> {
    core.role.send(&mut core.net, message);
    Ok(())
}
