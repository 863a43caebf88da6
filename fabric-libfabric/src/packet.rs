//! What stands at the head of each packet. Little-endian; nothing from a peer is taken on trust.

use fabric_core::RemoteKey;

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 16;

/// Bytes of a reach.
pub(crate) const REACH_BYTES: usize = 56;

/// What a packet is. Numbers of pieces are chosen by who asks and come back in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first packet of a message of `total` bytes.
    First { total: u32 },
    /// The next packet of the same message.
    More,
    /// A value that follows a remote write.
    Immediate { value: u32 },
    /// Only a grant.
    Grant,
    /// The last packet, with the reason, and the piece that was refused, if that is it.
    Bye { reason: Reason, piece: u32 },
    /// Asks for bytes of exposed memory: a reach and the length.
    Read { piece: u32 },
    /// Bytes for exposed memory: a reach and they.
    Write { piece: u32 },
    /// Asks for an atomic: a reach, what it does, two words.
    Atomic { piece: u32 },
    /// The bytes that were asked for.
    Data { piece: u32 },
    /// The bytes are there.
    Wrote { piece: u32 },
    /// The word before an atomic.
    Value { piece: u32 },
}

/// Why a side says goodbye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its user closed the endpoint.
    Closed,
    /// The peer reached for memory that was not exposed for this.
    Access,
    /// A message was too long for its receive.
    NoReceive,
    /// The peer broke the protocol.
    Protocol,
}

/// A head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Packets that the peer may send, counted since the connection began, wrapping.
    pub(crate) granted: u32,
}

/// The memory that an operation reaches for, and where in it a piece begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) key: RemoteKey,
    /// The range of the whole operation, so that none of it happens when not all of it may.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where the piece begins.
    pub(crate) at: u64,
}

impl Kind {
    /// Whether it takes a place in the window.
    pub(crate) fn is_credited(self) -> bool {
        matches!(self, Self::First { .. } | Self::More | Self::Immediate { .. })
    }

    /// Number, reason and value.
    fn parts(self) -> (u8, u8, u32) {
        match self {
            Self::First { total } => (1, 0, total),
            Self::More => (2, 0, 0),
            Self::Immediate { value } => (3, 0, value),
            Self::Grant => (4, 0, 0),
            Self::Bye { reason, piece } => (5, reason.code(), piece),
            Self::Read { piece } => (6, 0, piece),
            Self::Write { piece } => (7, 0, piece),
            Self::Atomic { piece } => (8, 0, piece),
            Self::Data { piece } => (9, 0, piece),
            Self::Wrote { piece } => (10, 0, piece),
            Self::Value { piece } => (11, 0, piece),
        }
    }

    fn of(number: u8, reason: u8, value: u32) -> Option<Self> {
        Some(match number {
            1 => Self::First { total: value },
            2 => Self::More,
            3 => Self::Immediate { value },
            4 => Self::Grant,
            5 => Self::Bye { reason: Reason::of(reason)?, piece: value },
            6 => Self::Read { piece: value },
            7 => Self::Write { piece: value },
            8 => Self::Atomic { piece: value },
            9 => Self::Data { piece: value },
            10 => Self::Wrote { piece: value },
            11 => Self::Value { piece: value },
            _ => return None,
        })
    }
}

impl Head {
    /// `kind` u8, reason u8, 2 bytes zero, `granted` u32, value u32, 4 bytes zero.
    pub(crate) fn encode(self) -> [u8; HEAD_BYTES] {
        let (kind, reason, value) = self.kind.parts();
        let mut bytes = [0; HEAD_BYTES];
        (bytes[0], bytes[1]) = (kind, reason);
        bytes[4..8].copy_from_slice(&self.granted.to_le_bytes());
        bytes[8..12].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// The head that `bytes` begin with, or `None` if there is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let kind = Kind::of(bytes[0], bytes[1], word(8))?;
        Some(Self { kind, granted: word(4) })
    }
}

impl Reach {
    /// The key, then `start`, `end` and `at` as u64.
    pub(crate) fn encode(&self) -> [u8; REACH_BYTES] {
        let mut bytes = [0; REACH_BYTES];
        bytes[..RemoteKey::BYTES].copy_from_slice(&self.key.to_bytes());
        for (word, at) in [self.start, self.end, self.at].into_iter().zip([32, 40, 48]) {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The reach that `bytes` begin with, and what follows it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (key, rest) = bytes.split_first_chunk()?;
        let (start, rest) = word(rest)?;
        let (end, rest) = word(rest)?;
        let (at, rest) = word(rest)?;
        Some((Self { key: RemoteKey::from_bytes(*key), start, end, at }, rest))
    }
}

/// A word and what follows it.
pub(crate) fn word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*word), rest))
}

impl Reason {
    fn code(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Access => 1,
            Self::NoReceive => 2,
            Self::Protocol => 3,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [Self::Closed, Self::Access, Self::NoReceive, Self::Protocol]
            .into_iter()
            .find(|reason| reason.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_head_survives_the_wire(number in 1u8..12, reason in 0u8..4, value: u32, granted: u32) {
            let Some(kind) = Kind::of(number, reason, value) else {
                return Err(TestCaseError::fail("every number is a kind"));
            };
            let head = Head { kind, granted };
            prop_assert_eq!(Head::decode(&head.encode()), Some(head));
        }

        #[test]
        fn a_reach_survives_the_wire(words: [u64; 7], rest: [u8; 3]) {
            let [addr, len, key, nonce, start, end, at] = words;
            let reach = Reach { key: RemoteKey { addr, len, key, nonce }, start, end, at };
            let bytes = [&reach.encode()[..], &rest].concat();
            prop_assert_eq!(Reach::decode(&bytes), Some((reach, &rest[..])));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Head::decode(&bytes), Reach::decode(&bytes));
        }
    }

    #[test]
    fn short_and_unknown_heads_are_none() {
        assert_eq!(Head::decode(&[1; HEAD_BYTES - 1]), None);
        assert_eq!(Head::decode(&[12; HEAD_BYTES]), None);
        assert_eq!(Kind::of(5, 4, 0), None);
    }
}
