use std::sync::Arc;
use std::time::Duration;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::publishing::publishing_calls;
use super::{Handle, OpenOptions, Socket, subscribe};
use crate::driver::Patience;
use crate::engine::{Core, Room};
use crate::roles::xpublisher::XPublisher;
use crate::{Context, Error, ErrorKind, Message, SendError, Subscription, Upstream};

/// Publishes as [`Pub`](crate::Pub) does, and receives what comes up: subscriptions, cancellations,
/// and the messages of each [`XSub`](crate::XSub).
///
/// Only the first subscription to a topic and the last cancellation are told, whoever they are of;
/// `verbose` and `verboser` tell all. What a subscriber wanted counts as cancelled when it leaves; one
/// that this side connects to leaves for good, not when its connection breaks. What nobody receives
/// waits: a subscriber of which too much waits is refused.
///
/// ```
/// use msg_patterns::{Context, Sub, Upstream, XPub};
///
/// let context = Context::new();
/// let publisher = XPub::new(&context)?;
/// let sub = Sub::new(&context)?;
/// sub.connect(&publisher.bind("tcp://127.0.0.1:0")?.to_string())?;
/// sub.subscribe("weather.")?;
/// let Upstream::Subscription(wanted) = publisher.recv()? else { unreachable!() };
/// assert!(wanted.subscribes());
/// publisher.send([wanted.topic(), &b"berlin"[..]].concat())?;
/// assert_eq!(sub.recv()?.first(), "weather.berlin");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct XPub {
    pub(super) handle: Arc<Handle<XPublisher>>,
}

common_calls!(XPub);
publishing_calls!(XPub);

impl Socket for XPub {
    const TYPE: SocketType = SocketType::XPub;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = XPublisher::new(&options.0);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl XPub {
    /// Sends to whoever subscribed or cancelled like this, and to nobody else, whatever it subscribed
    /// to: a late joiner's first value (ZMQ_XPUB_MANUAL_LAST_VALUE). As with `send`, a subscriber
    /// without room misses the message, or with [`OnFull::Block`](crate::OnFull::Block) is waited for.
    ///
    /// # Errors
    /// The message with `NoPeer` if that subscriber is gone, `TooLong` or `Terminated`.
    pub fn send_to(&self, to: &Subscription, message: impl Into<Message>) -> Result<(), SendError> {
        let give = |core: &mut Core<XPublisher>, message| give(core, to, message);
        self.handle.send_with(message.into(), &mut Patience::Endless, give)
    }

    /// With `manual`: whoever subscribed or cancelled like this gets what begins with `topic` from now
    /// on, counted as subscriptions are. Ends when that subscriber leaves. Says whether it is still
    /// there.
    ///
    /// # Errors
    /// `Invalid` without `manual`, `TooLong` for a topic over 32 KiB, `Limit` beyond what a subscriber
    /// may have, `Terminated`.
    pub fn subscribe_for(
        &self,
        who: &Subscription,
        topic: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        self.decide(who, topic.as_ref(), true)
    }

    /// Takes one `subscribe_for` back. Says whether the subscriber is still there.
    ///
    /// # Errors
    /// As `subscribe_for`.
    pub fn unsubscribe_for(
        &self,
        who: &Subscription,
        topic: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        self.decide(who, topic.as_ref(), false)
    }

    fn decide(&self, who: &Subscription, topic: &[u8], subscribes: bool) -> Result<bool, Error> {
        subscribe::check(topic)?;
        self.handle.shared.command(|core| {
            let Core { net, role } = core;
            if !role.is_manual() {
                let text = "subscribers decide here what they get: set manual to do so yourself";
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            role.decide(net, who, topic, subscribes)
                .map_err(|fault| Error::new(ErrorKind::Limit, fault.text()))
        })?
    }

    /// Receives, waiting for a subscription, a cancellation or a message. Those of one subscriber come
    /// in its order, those of several in turn.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv(&self) -> Result<Upstream, Error> {
        self.recv_until(Patience::Endless)
    }

    /// As `recv`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Upstream, Error> {
        self.recv_until(Patience::For(timeout))
    }

    /// As `recv`, if something is here now.
    ///
    /// # Errors
    /// `WouldBlock` or `Terminated`.
    pub fn try_recv(&self) -> Result<Upstream, Error> {
        match self.handle.shared.take_at_once(take) {
            Some(found) => Ok(found),
            None => self.handle.try_recv_with(take),
        }
    }

    fn recv_until(&self, patience: Patience) -> Result<Upstream, Error> {
        match self.handle.shared.take_at_once(take) {
            Some(found) => Ok(found),
            None => self.handle.recv_until(patience, take),
        }
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free. What was not received is dropped.
    pub fn close(self) {
        self.handle.close();
    }
}

pub(crate) fn give(
    core: &mut Core<XPublisher>,
    to: &Subscription,
    message: Message,
) -> Result<(), (Message, Room)> {
    core.role.send_to(&mut core.net, to, message)
}

pub(crate) fn take(core: &mut Core<XPublisher>) -> Option<Upstream> {
    core.role.receive(&mut core.net)
}
