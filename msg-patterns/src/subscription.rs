//! What comes up from subscribers: subscriptions, cancellations, and messages of XSUB.

use bytes::Bytes;

use crate::{Message, PeerId};

/// First byte of a subscription, and of a cancellation, where they are written as messages (RFC 29).
const SUBSCRIBE: u8 = 1;
const CANCEL: u8 = 0;

/// A subscription to a topic, or its cancellation, as an [`XPub`](crate::XPub) is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subscription {
    pub(crate) topic: Bytes,
    pub(crate) subscribes: bool,
    pub(crate) peer: PeerId,
    /// The connection it came over.
    pub(crate) epoch: u32,
}

impl Subscription {
    /// The beginning of the messages that are wanted, or not wanted any more.
    pub fn topic(&self) -> &Bytes {
        &self.topic
    }

    /// Whether it subscribes; if not, it cancels.
    pub fn subscribes(&self) -> bool {
        self.subscribes
    }

    /// Who subscribed or cancelled; after it left, who had subscribed.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// It as a message of RFC 29: a byte that is 1, or 0 to cancel, and the topic.
    ///
    /// ```
    /// use msg_patterns::Subscription;
    ///
    /// assert_eq!(Subscription::parse(b"\x01weather."), Some((true, &b"weather."[..])));
    /// assert_eq!(Subscription::parse(b"weather."), None);
    /// ```
    pub fn to_message(&self) -> Message {
        let kind = if self.subscribes { SUBSCRIBE } else { CANCEL };
        Message::from([&[kind], &self.topic[..]].concat())
    }

    /// Takes such a message apart, given its first part: whether it subscribes, and the topic.
    pub fn parse(part: &[u8]) -> Option<(bool, &[u8])> {
        let (kind, topic) = part.split_first()?;
        match *kind {
            SUBSCRIBE => Some((true, topic)),
            CANCEL => Some((false, topic)),
            _ => None,
        }
    }
}

/// What an [`XPub`](crate::XPub) receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// Somebody subscribed or cancelled.
    Subscription(Subscription),
    /// An [`XSub`](crate::XSub) sent a message.
    Message {
        /// Who sent it.
        peer: PeerId,
        /// The message as it was sent.
        message: Message,
    },
}

impl Upstream {
    /// It as ZeroMQ shows it: the message, or the one of [`Subscription::to_message`].
    pub fn into_message(self) -> Message {
        match self {
            Self::Subscription(subscription) => subscription.to_message(),
            Self::Message { message, .. } => message,
        }
    }
}
