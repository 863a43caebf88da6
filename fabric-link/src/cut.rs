//! From messages to packets.

use fabric_core::{SendBuf, Slot};

use crate::packet::Part;

/// How far something is cut into pieces. Something without bytes makes a piece, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    len: usize,
    done: usize,
    has_begun: bool,
}

impl Cut {
    /// Nothing of `len` bytes yet.
    #[inline]
    pub fn new(len: usize) -> Self {
        Self { len, done: 0, has_begun: false }
    }

    /// Bytes of the whole.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the whole has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the first piece was cut off.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether the last piece was cut off.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.has_begun && self.done == self.len
    }

    /// Where the next piece begins.
    #[inline]
    pub fn start(&self) -> usize {
        self.done
    }

    /// Bytes of the next piece, where none may have more than `max`.
    #[inline]
    pub fn next_len(&self, max: usize) -> usize {
        (self.len - self.done).min(max)
    }

    /// What the next piece is, if the whole is a message.
    #[inline]
    pub fn part(&self) -> Part {
        match self.has_begun {
            true => Part::More,
            false => Part::First { total: self.len as u32 },
        }
    }

    /// Cuts off a piece of as many bytes as `next_len` said.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        self.done += len;
        self.has_begun = true;
    }
}

/// Appends `len` bytes of a message, from `from` on, to a packet that has room for them.
#[inline]
pub fn append(buf: &SendBuf, mut from: usize, mut len: usize, packet: &mut Slot) {
    for segment in buf.segments() {
        let bytes = segment.filled();
        let skipped = from.min(bytes.len());
        let taken = (bytes.len() - skipped).min(len);
        let fits = packet.append(&bytes[skipped..skipped + taken]);
        debug_assert!(fits, "a packet of the peer's size takes a part of that size");
        (from, len) = (from - skipped, len - taken);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fabric_core::Segment;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_put_together_are_the_message(
            segments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
            max in 1usize..30,
        ) {
            let whole = segments.concat();
            let mut buf = SendBuf::new();
            segments.into_iter().for_each(|bytes| buf.push(Segment::Bytes(Bytes::from(bytes))));
            let (mut cut, mut got) = (Cut::new(whole.len()), Vec::new());
            while !cut.is_done() {
                let first = Part::First { total: whole.len() as u32 };
                prop_assert_eq!(cut.part(), if cut.has_begun() { Part::More } else { first });
                let (from, len) = (cut.start(), cut.next_len(max));
                prop_assert!(len <= max && (len > 0 || cut.is_empty()));
                let mut packet = Slot::alloc(max).unwrap();
                append(&buf, from, len, &mut packet);
                prop_assert_eq!(packet.len(), len);
                got.extend_from_slice(packet.filled());
                cut.advance(len);
            }
            prop_assert!(cut.has_begun());
            prop_assert_eq!(got, whole);
        }
    }
}
