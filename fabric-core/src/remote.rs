//! Memory that a peer may reach.

use bytes::Bytes;
use fabric_mem::Slot;

/// What a peer may do with exposed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It may read.
    pub read: bool,
    /// It may write.
    pub write: bool,
    /// It may use atomics.
    pub atomic: bool,
}

impl Access {
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false, atomic: false };
    /// Writing only.
    pub const WRITE: Self = Self { read: false, write: true, atomic: false };
    /// Atomics only.
    pub const ATOMIC: Self = Self { read: false, write: false, atomic: true };
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, atomic: true };

    /// Whether the peer could change the memory.
    pub fn mutates(self) -> bool {
        self.write || self.atomic
    }
}

/// Memory moved into the fabric to be reached by a peer. It has no slices meanwhile: the owner
/// copies bytes in and out through `Rma::load` and `Rma::store`, and `Rma::revoke` gives it back.
#[derive(Debug)]
pub enum Exposure {
    /// A slot, for any access. Its capacity is exposed, filled or not.
    Slot(Slot),
    /// Shared bytes, for reading only.
    Bytes(Bytes),
}

impl Exposure {
    /// Length of what is exposed, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Slot(slot) => slot.capacity(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether there is nothing to expose.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a peer needs to reach exposed memory: opaque, random, good for one endpoint until revoked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteKey {
    /// The provider's address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// The provider's key.
    pub key: u64,
    /// Drawn at random for each exposure, so that a stale or guessed key does not match.
    pub nonce: u64,
}

impl RemoteKey {
    /// Length of the encoded key in bytes.
    pub const BYTES: usize = 32;

    /// The key as four little-endian 64-bit words: address, length, key, nonce.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (word, at) in
            [self.addr, self.len, self.key, self.nonce].into_iter().zip((0..).step_by(8))
        {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The key that `to_bytes` encoded. Any bytes make a key; a wrong one is refused by its owner.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_le_bytes(word)
        };
        Self { addr: word(0), len: word(1), key: word(2), nonce: word(3) }
    }
}

impl std::fmt::Debug for RemoteKey {
    /// Keys are secrets of a kind: only the length is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteKey").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_the_wire_and_hides_in_debug() {
        let key = RemoteKey { addr: 1, len: 2, key: u64::MAX, nonce: 0x0102_0304_0506_0708 };
        assert_eq!(RemoteKey::from_bytes(key.to_bytes()), key);
        assert_eq!(format!("{key:?}"), "RemoteKey { len: 2, .. }");
    }
}
