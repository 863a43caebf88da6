//! Messages of one or more parts.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::slice;

use bytes::Bytes;
use smallvec::SmallVec;

/// A message: one or more parts, delivered all or not at all. Cloning shares the bytes.
///
/// ```
/// use msg_patterns::Message;
/// let plain = Message::from("hello");
/// let multipart = Message::from_parts(["topic", "payload"]);
/// assert_eq!((plain.parts().len(), multipart.parts().len()), (1, 2));
/// ```
#[derive(Clone)]
pub struct Message {
    parts: Parts,
}

/// Most messages have one part, which then stands here.
#[derive(Clone)]
enum Parts {
    One(Bytes),
    /// At least one.
    Many(Vec<Bytes>),
}

impl Message {
    /// A message of these parts. Without any it has one empty part.
    pub fn from_parts<T: Into<Part>>(parts: impl IntoIterator<Item = T>) -> Self {
        Self::of(parts.into_iter().map(|part| part.into().0).collect())
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with(self, part: impl Into<Part>) -> Self {
        let mut parts = self.into_parts();
        parts.push(part.into().0);
        Self { parts: Parts::Many(parts) }
    }

    /// The parts in order; at least one.
    #[inline]
    pub fn parts(&self) -> &[Bytes] {
        match &self.parts {
            Parts::One(part) => slice::from_ref(part),
            Parts::Many(parts) => parts,
        }
    }

    /// The parts, taken out.
    pub fn into_parts(self) -> Vec<Bytes> {
        match self.parts {
            Parts::One(part) => vec![part],
            Parts::Many(parts) => parts,
        }
    }

    /// The first part: the whole message if it has no other, and what subscriptions match.
    pub fn first(&self) -> &Bytes {
        &self.parts()[0]
    }

    /// The first part, taken out.
    pub fn into_first(self) -> Bytes {
        match self.parts {
            Parts::One(part) => part,
            Parts::Many(mut parts) => parts.swap_remove(0),
        }
    }

    /// Bytes over all parts.
    pub fn len(&self) -> usize {
        self.parts().iter().map(Bytes::len).sum()
    }

    /// Whether no part has a byte.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(Bytes::is_empty)
    }

    /// A message of these parts; of one empty part if there is none.
    pub(crate) fn of(mut parts: SmallVec<[Bytes; 1]>) -> Self {
        if parts.len() > 1 {
            return Self { parts: Parts::Many(parts.into_vec()) };
        }
        Self::single(parts.pop().unwrap_or_default())
    }

    #[inline]
    pub(crate) fn single(part: Bytes) -> Self {
        Self { parts: Parts::One(part) }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Message {}

impl Hash for Message {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// Anything that becomes a part: bytes as they are, borrowed text and slices copied.
#[derive(Debug, Clone)]
pub struct Part(Bytes);

macro_rules! from_owned {
    ($($source:ty),*) => {$(
        impl From<$source> for Part {
            fn from(bytes: $source) -> Self {
                Self(Bytes::from(bytes))
            }
        }
        impl From<$source> for Message {
            fn from(bytes: $source) -> Self {
                Self::single(Bytes::from(bytes))
            }
        }
    )*};
}

macro_rules! from_borrowed {
    ($($source:ty),*) => {$(
        impl From<$source> for Part {
            fn from(bytes: $source) -> Self {
                Self(Bytes::copy_from_slice(bytes.as_ref()))
            }
        }
        impl From<$source> for Message {
            fn from(bytes: $source) -> Self {
                Self::single(Bytes::copy_from_slice(bytes.as_ref()))
            }
        }
    )*};
}

from_owned!(Bytes, Vec<u8>, String, Box<[u8]>);
from_borrowed!(&str, &[u8], &String, &Vec<u8>);

impl<const N: usize> From<&[u8; N]> for Part {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(&bytes[..])
    }
}

impl<const N: usize> From<&[u8; N]> for Message {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(&bytes[..])
    }
}

impl From<&Message> for Message {
    fn from(message: &Message) -> Self {
        message.clone()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_BYTES_MAX: usize = 64;
        let mut list = f.debug_list();
        for part in self.parts() {
            list.entry(&part.slice(..part.len().min(SHOWN_BYTES_MAX)));
        }
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_always_has_a_part() {
        assert_eq!(Message::from_parts(Vec::<Bytes>::new()), Message::from(""));
        assert_eq!(Message::from("a").with("b").parts(), ["a", "b"]);
        assert_eq!(Message::from_parts(["ab", "", "c"]).len(), 3);
    }

    #[test]
    fn one_part_takes_no_more_room_than_its_bytes() {
        assert_eq!(size_of::<Message>(), size_of::<Bytes>());
    }

    #[test]
    fn messages_of_equal_parts_are_equal() {
        assert_eq!(Message::from("a").with("b"), Message::from_parts(["a", "b"]));
        assert_eq!(Message::from_parts(["a"]), Message::from("a"));
        assert_ne!(Message::from_parts(["a", "b"]), Message::from("ab"));
    }

    #[test]
    fn a_huge_part_is_shown_in_short() {
        assert!(format!("{:?}", Message::from(vec![b'x'; 1 << 20])).len() < 100);
    }
}
