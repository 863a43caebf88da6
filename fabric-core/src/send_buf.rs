//! What a send carries.

use bytes::Bytes;
use fabric_mem::Slot;
use smallvec::{SmallVec, smallvec};

/// A piece of a message on its way out.
#[derive(Debug)]
pub enum Segment {
    /// A slot of one's own.
    Slot(Slot),
    /// Bytes shared with others, for instance with the same send to another endpoint, or memory of
    /// the user. A provider that needs registered memory registers or copies what lies outside
    /// registered pools.
    Bytes(Bytes),
}

impl Segment {
    /// The bytes to send.
    pub fn filled(&self) -> &[u8] {
        match self {
            Self::Slot(slot) => slot.filled(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// One message on its way out, gathered from segments. Moved into the post and back in its event.
#[derive(Debug, Default)]
pub struct SendBuf {
    segments: SmallVec<[Segment; 1]>,
}

impl SendBuf {
    /// A message without bytes, to push segments to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// The segments in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segments in order, by themselves, for instance to use a slot again.
    pub fn into_segments(self) -> impl Iterator<Item = Segment> {
        self.segments.into_iter()
    }

    /// The slot that the whole message stands in, if it does, for instance to append to it.
    pub fn as_slot_mut(&mut self) -> Option<&mut Slot> {
        match &mut self.segments[..] {
            [Segment::Slot(slot)] => Some(slot),
            _ => None,
        }
    }

    /// As `as_slot_mut`, to use the slot for something else.
    pub fn into_slot(mut self) -> Option<Slot> {
        match (self.segments.pop(), self.segments.is_empty()) {
            (Some(Segment::Slot(slot)), true) => Some(slot),
            _ => None,
        }
    }

    /// Length of the whole message in bytes.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.filled().len()).sum()
    }

    /// Whether the message has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message in one piece, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        self.segments.iter().flat_map(|segment| segment.filled()).copied().collect()
    }

    /// Copies the message into `to`, which must be as long.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy_to(&self, mut to: &mut [u8]) {
        assert_eq!(self.len(), to.len(), "the target must be as long as the message");
        for segment in &self.segments {
            let (head, tail) = to.split_at_mut(segment.filled().len());
            head.copy_from_slice(segment.filled());
            to = tail;
        }
    }
}

impl From<Slot> for SendBuf {
    fn from(slot: Slot) -> Self {
        Self { segments: smallvec![Segment::Slot(slot)] }
    }
}

impl From<Bytes> for SendBuf {
    fn from(bytes: Bytes) -> Self {
        Self { segments: smallvec![Segment::Bytes(bytes)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_make_one_message() {
        let mut buf = SendBuf::from(Bytes::from_static(b"one "));
        buf.push(Segment::Bytes(Bytes::from_static(b"message")));
        assert_eq!((buf.len(), buf.to_vec().as_slice()), (11, &b"one message"[..]));
        let mut copy = [0; 11];
        buf.copy_to(&mut copy);
        assert_eq!(&copy, b"one message");
    }

    #[test]
    fn the_slot_of_a_whole_message_can_be_had_back() {
        let slot = || Slot::alloc(8).unwrap();
        assert_eq!(SendBuf::from(slot()).into_slot().unwrap().capacity(), 8);
        let mut buf = SendBuf::from(slot());
        buf.push(Segment::Slot(slot()));
        assert!(buf.into_slot().is_none(), "it stands in two");
        assert!(SendBuf::from(Bytes::from_static(b"shared")).into_slot().is_none());
    }
}
