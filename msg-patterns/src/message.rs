//! Messages of one or more parts.

use std::fmt;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

/// A message: one or more parts, delivered all or not at all. Cloning shares the bytes.
///
/// ```
/// use msg_patterns::Message;
/// let plain = Message::from("hello");
/// let multipart = Message::from_parts(["topic", "payload"]);
/// assert_eq!((plain.parts().len(), multipart.parts().len()), (1, 2));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Message {
    parts: SmallVec<[Bytes; 1]>,
}

impl Message {
    /// A message of these parts. Without any it has one empty part.
    pub fn from_parts<T: Into<Part>>(parts: impl IntoIterator<Item = T>) -> Self {
        let parts: SmallVec<[Bytes; 1]> = parts.into_iter().map(|part| part.into().0).collect();
        if parts.is_empty() { Self::from(Bytes::new()) } else { Self { parts } }
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with(mut self, part: impl Into<Part>) -> Self {
        self.parts.push(part.into().0);
        self
    }

    /// The parts in order; at least one.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The parts, taken out.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts.into_vec()
    }

    /// The first part: the whole message if it has no other, and what subscriptions match.
    pub fn first(&self) -> &Bytes {
        &self.parts[0]
    }

    /// The first part, taken out.
    pub fn into_first(mut self) -> Bytes {
        self.parts.swap_remove(0)
    }

    /// Bytes over all parts.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Whether no part has a byte.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Bytes::is_empty)
    }

    /// A received message; `parts` has at least one.
    pub(crate) fn of(parts: SmallVec<[Bytes; 1]>) -> Self {
        Self { parts }
    }

    pub(crate) fn single(part: Bytes) -> Self {
        Self { parts: smallvec![part] }
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
        for part in &self.parts {
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
    fn a_huge_part_is_shown_in_short() {
        assert!(format!("{:?}", Message::from(vec![b'x'; 1 << 20])).len() < 100);
    }
}
