//! Whom a router means.

use std::fmt;

use bytes::{Buf, Bytes};

use crate::Message;

/// Names a peer of a [`Router`](crate::Router), and the request to be answered where the peer is a
/// [`Req`](crate::Req). Cloning shares the bytes.
///
/// A peer that chose an `identity` has that name for as long as it holds it; each other connection
/// gets a name that no other connection has.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RoutingId {
    pub(crate) name: Bytes,
    pub(crate) request: Option<Asked>,
}

/// A request as it came: over a connection, which numbers its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) epoch: u32,
    pub(crate) id: u64,
}

/// Bytes of a name that a router makes: a zero byte, with which no other name begins, and a number.
const MADE_BYTES: usize = 1 + 8;

impl RoutingId {
    /// The peer that chose this `identity`.
    pub fn new(identity: impl Into<Bytes>) -> Self {
        Self { name: identity.into(), request: None }
    }

    /// A name with this number.
    pub(crate) fn made(number: u64) -> Bytes {
        let mut name = [0; MADE_BYTES];
        name[1..].copy_from_slice(&number.to_be_bytes());
        Bytes::copy_from_slice(&name)
    }

    /// The name of the peer: the identity that it chose, or bytes that begin with a zero byte.
    pub fn name(&self) -> &Bytes {
        &self.name
    }

    /// Whether it names a request too, which what is sent there answers.
    pub fn is_request(&self) -> bool {
        self.request.is_some()
    }

    /// The message with this id in front of it, for whoever carries it on: what comes back is taken
    /// apart by [`split`](Self::split). An empty part follows the id of a request, as a
    /// [`Rep`](crate::Rep) wants it.
    ///
    /// ```
    /// # use msg_patterns::{Message, RoutingId};
    /// let id = RoutingId::new("A");
    /// let carried = id.before("hello");
    /// assert_eq!(carried.parts(), ["A", "hello"]);
    /// assert_eq!(RoutingId::split(carried), Some((id, Message::from("hello"))));
    /// ```
    pub fn before(&self, message: impl Into<Message>) -> Message {
        let mut parts = vec![self.to_part()];
        if self.is_request() {
            parts.push(Bytes::new());
        }
        parts.extend(message.into().into_parts());
        Message::from_parts(parts)
    }

    /// Takes a message of [`before`](Self::before) apart; `None` if it is none.
    pub fn split(message: Message) -> Option<(Self, Message)> {
        let mut parts = message.into_parts().into_iter();
        let id = Self::of_part(parts.next()?)?;
        if id.is_request() && !parts.next()?.is_empty() {
            return None;
        }
        if parts.len() == 0 {
            return None;
        }
        Some((id, Message::from_parts(parts)))
    }

    /// The name alone, or behind the request.
    fn to_part(&self) -> Bytes {
        let Some(Asked { epoch, id }) = self.request else { return self.name.clone() };
        let head = [&[0][..], &epoch.to_be_bytes(), &id.to_be_bytes()];
        [head.concat(), self.name.to_vec()].concat().into()
    }

    fn of_part(mut part: Bytes) -> Option<Self> {
        if part.first()? != &0 || part.len() == MADE_BYTES {
            return Some(Self { name: part, request: None });
        }
        part.advance(1);
        let request = Asked { epoch: part.try_get_u32().ok()?, id: part.try_get_u64().ok()? };
        (!part.is_empty()).then_some(Self { name: part, request: Some(request) })
    }
}

impl From<&str> for RoutingId {
    fn from(identity: &str) -> Self {
        Self::new(identity.to_owned())
    }
}

impl fmt::Debug for RoutingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutingId({:?}", self.name)?;
        if let Some(Asked { epoch, id }) = self.request {
            write!(f, ", request {id} of connection {epoch}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_front_of_a_message_comes_back_as_it_was() {
        let message = Message::from("a").with("").with("b");
        for name in [Bytes::from("chosen"), RoutingId::made(7)] {
            for request in [None, Some(Asked { epoch: 3, id: u64::MAX })] {
                let id = RoutingId { name: name.clone(), request };
                let carried = id.before(&message);
                assert_eq!(
                    carried.parts().len(),
                    message.parts().len() + 1 + usize::from(id.is_request())
                );
                assert_eq!(RoutingId::split(carried), Some((id, message.clone())));
            }
        }
    }

    #[test]
    fn what_no_router_put_together_is_told() {
        let asked = RoutingId { name: "A".into(), request: Some(Asked { epoch: 1, id: 2 }) };
        let id = asked.before("x").into_first();
        let cut = Message::from(id.slice(..13));
        let bare = Message::from(id.clone());
        let no_delimiter = bare.clone().with("x");
        for message in [Message::from(""), Message::from("A"), bare, no_delimiter, cut.with("")] {
            assert_eq!(RoutingId::split(message), None);
        }
    }
}
