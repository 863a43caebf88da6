//! The most frequent requests and replies, encoded and decoded in one go.

use crate::wire::{HEAD_BYTES, TAG_BYTES, kind, lone_part, part_head, reply_head, request_head};

/// Bytes before the body of a [`LoneTagged`].
pub const LONE_TAGGED_BYTES: usize = TAG_BYTES + HEAD_BYTES;

/// A REQUEST or REPLY without an envelope, and the PART behind it that is all of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoneTagged<'a> {
    /// REQUEST rather than REPLY.
    pub is_request: bool,
    /// Of the request, or of the request that this replies to.
    pub id: u64,
    /// The part.
    pub body: &'a [u8],
}

impl<'a> LoneTagged<'a> {
    /// What stands at the beginning of `bytes`, if it is one, as most requests and replies are.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        // Kind, length and all that has to be zero, in one comparison.
        let is_request = match u64::from_le_bytes(*head) {
            LONE_REQUEST => true,
            LONE_REPLY => false,
            _ => return None,
        };
        let (id, rest) = rest.split_first_chunk()?;
        Some(Self { is_request, id: u64::from_le_bytes(*id), body: lone_part(rest)? })
    }

    /// What stands before the body.
    #[inline]
    pub fn head(&self) -> [u8; LONE_TAGGED_BYTES] {
        let tag = if self.is_request { request_head(self.id, 0) } else { reply_head(self.id, 0) };
        let mut head = [0; LONE_TAGGED_BYTES];
        head[..TAG_BYTES].copy_from_slice(&tag);
        head[TAG_BYTES..].copy_from_slice(&part_head(false, self.body.len() as u32));
        head
    }

    /// Bytes of all of it.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        LONE_TAGGED_BYTES + self.body.len()
    }
}

/// The first bytes of a REQUEST and a REPLY whose envelope is empty, as a number.
const LONE_REQUEST: u64 = (kind::REQUEST as u64) | (8 << 32);
const LONE_REPLY: u64 = (kind::REPLY as u64) | (8 << 32);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::wire::Frame;

    fn encode(frames: &[Frame<'_>]) -> Vec<u8> {
        let encoded = frames.iter().map(Frame::encode);
        encoded.flat_map(|frame| [frame.head(), frame.tail].concat()).collect()
    }

    const PART: Frame<'_> = Frame::Part { more: false, body: b"xyz" };

    #[test]
    fn it_is_the_same_as_its_frames_one_by_one() {
        for (is_request, tag) in [
            (true, Frame::Request { id: 7, envelope: b"" }),
            (false, Frame::Reply { id: 7, envelope: b"" }),
        ] {
            let lone = LoneTagged { is_request, id: 7, body: b"xyz" };
            let bytes = encode(&[tag, PART]);
            assert_eq!([&lone.head()[..], lone.body].concat(), bytes);
            assert_eq!(lone.encoded_len(), bytes.len());
            assert_eq!(LoneTagged::decode(&[&bytes[..], b"next"].concat()), Some(lone));
            for cut in 0..bytes.len() {
                assert_eq!(LoneTagged::decode(&bytes[..cut]), None, "cut at {cut}");
            }
        }
    }

    #[test]
    fn what_has_an_envelope_or_more_parts_is_none() {
        let more = Frame::Part { more: true, body: b"xyz" };
        let tag = Frame::Request { id: 7, envelope: b"" };
        let enveloped = Frame::Request { id: 7, envelope: b"e" };
        for frames in [[tag, more], [enveloped, PART], [tag, Frame::Bye], [PART, PART]] {
            assert_eq!(LoneTagged::decode(&encode(&frames)), None, "{frames:?}");
        }
    }
}
