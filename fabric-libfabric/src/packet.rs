//! Steps of remote operations, which travel in packets here. Little-endian; nothing from a peer is
//! taken on trust.

use fabric_core::RemoteKey;
use fabric_link::REMOTE_MIN;

/// Bytes of a reach.
pub(crate) const REACH_BYTES: usize = 56;

/// What a packet is.
pub(crate) type Kind = fabric_link::Kind<Step>;

/// A head.
pub(crate) type Head = fabric_link::Head<Step>;

/// What a packet does for a remote operation. Numbers of pieces are chosen by who asks and come back
/// in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
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

impl fabric_link::Remote for Step {
    fn code(self) -> (u8, u32) {
        match self {
            Self::Read { piece } => (REMOTE_MIN, piece),
            Self::Write { piece } => (REMOTE_MIN + 1, piece),
            Self::Atomic { piece } => (REMOTE_MIN + 2, piece),
            Self::Data { piece } => (REMOTE_MIN + 3, piece),
            Self::Wrote { piece } => (REMOTE_MIN + 4, piece),
            Self::Value { piece } => (REMOTE_MIN + 5, piece),
        }
    }

    fn of(number: u8, piece: u32) -> Option<Self> {
        Some(match number.checked_sub(REMOTE_MIN)? {
            0 => Self::Read { piece },
            1 => Self::Write { piece },
            2 => Self::Atomic { piece },
            3 => Self::Data { piece },
            4 => Self::Wrote { piece },
            5 => Self::Value { piece },
            _ => return None,
        })
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

#[cfg(test)]
mod tests {
    use fabric_link::Remote;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reach_survives_the_wire(words: [u64; 7], rest: [u8; 3]) {
            let [addr, len, key, nonce, start, end, at] = words;
            let reach = Reach { key: RemoteKey { addr, len, key, nonce }, start, end, at };
            let bytes = [&reach.encode()[..], &rest].concat();
            prop_assert_eq!(Reach::decode(&bytes), Some((reach, &rest[..])));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Reach::decode(&bytes);
        }
    }

    #[test]
    fn numbers_that_are_known_are_those_of_steps() {
        for number in 0..=u8::MAX {
            let step = Step::of(number, 7);
            assert_eq!(step.is_some(), (6..12).contains(&number), "{number}");
            assert!(step.is_none_or(|step| step.code() == (number, 7)), "{number}");
        }
    }
}
