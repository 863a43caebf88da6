//! Memory exposed to peers.
//!
//! A peer's requests are served by this side's provider when it is polled: it looks the key up, checks
//! endpoint, bounds and right, and copies. So a key that was revoked, or is another endpoint's, reaches
//! nothing, with every provider alike.

use std::collections::HashMap;

use fabric_core::{Access, EpId, Error, Exposure, RemoteKey};
use fabric_link::posts::{beyond, check_store, unknown_key};

use crate::packet::Reach;

struct Exposed {
    ep: EpId,
    key: RemoteKey,
    access: Access,
    memory: Exposure,
}

/// All exposures of a domain, by nonce.
#[derive(Default)]
pub(crate) struct Regions {
    open: HashMap<u64, Exposed>,
}

/// What a peer wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Read,
    Write,
    Atomic,
}

impl Regions {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Exposes memory to the peer of one endpoint under a new key.
    pub(crate) fn insert(&mut self, ep: EpId, memory: Exposure, access: Access) -> RemoteKey {
        let mut nonce = fastrand::u64(..);
        while self.open.contains_key(&nonce) {
            nonce = fastrand::u64(..);
        }
        let key = RemoteKey { addr: 0, len: memory.len() as u64, key: fastrand::u64(..), nonce };
        self.open.insert(nonce, Exposed { ep, key, access, memory });
        key
    }

    /// Ends an exposure.
    pub(crate) fn remove(&mut self, key: &RemoteKey) -> Option<Exposure> {
        self.find(key)?;
        self.open.remove(&key.nonce).map(|exposed| exposed.memory)
    }

    /// Whether the peer of `ep` may reach all of this.
    pub(crate) fn allows(&self, ep: EpId, reach: &Reach, wish: Wish) -> bool {
        let Some(exposed) = self.find(&reach.key).filter(|exposed| exposed.ep == ep) else {
            return false;
        };
        let has_right = match wish {
            Wish::Read => exposed.access.read,
            Wish::Write => exposed.access.write,
            Wish::Atomic => exposed.access.atomic,
        };
        has_right && reach.start <= reach.end && reach.end <= exposed.key.len
    }

    /// `len` bytes from `at` on.
    pub(crate) fn bytes(&mut self, key: &RemoteKey, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at).ok()?;
        let to = from.checked_add(len)?;
        match &mut self.open.get_mut(&key.nonce).filter(|exposed| exposed.key == *key)?.memory {
            // A slot's capacity is exposed, filled or not.
            Exposure::Slot(slot) => slot.buffer_mut().get(from..to),
            Exposure::Bytes(bytes) => bytes.get(from..to),
        }
    }

    /// The same to change; `None` for shared bytes.
    pub(crate) fn bytes_mut(&mut self, key: &RemoteKey, at: u64, len: usize) -> Option<&mut [u8]> {
        let from = usize::try_from(at).ok()?;
        let to = from.checked_add(len)?;
        match &mut self.open.get_mut(&key.nonce).filter(|exposed| exposed.key == *key)?.memory {
            Exposure::Slot(slot) => slot.buffer_mut().get_mut(from..to),
            Exposure::Bytes(_) => None,
        }
    }

    /// Copies bytes out of an exposure.
    ///
    /// # Errors
    /// `Misuse` for an unknown key or a range beyond the memory.
    pub(crate) fn load(
        &mut self,
        key: &RemoteKey,
        offset: u64,
        to: &mut [u8],
    ) -> Result<(), Error> {
        self.find(key).ok_or_else(unknown_key)?;
        let from = self.bytes(key, offset, to.len()).ok_or_else(beyond)?;
        to.copy_from_slice(from);
        Ok(())
    }

    /// Copies bytes into an exposure.
    ///
    /// # Errors
    /// `Misuse` for an unknown key, a range beyond the memory or shared bytes.
    pub(crate) fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        let exposed = self.find(key).ok_or_else(unknown_key)?;
        check_store(&exposed.memory)?;
        self.bytes_mut(key, offset, from.len()).ok_or_else(beyond)?.copy_from_slice(from);
        Ok(())
    }

    fn find(&self, key: &RemoteKey) -> Option<&Exposed> {
        self.open.get(&key.nonce).filter(|exposed| exposed.key == *key)
    }
}

#[cfg(test)]
mod tests {
    use fabric_core::Slot;

    use super::*;

    fn reach(key: RemoteKey, start: u64, end: u64) -> Reach {
        Reach { key, start, end, at: start }
    }

    #[test]
    fn key_endpoint_right_and_range_are_all_checked() {
        let (mut regions, ep) = (Regions::default(), EpId(1));
        let key = regions.insert(ep, Exposure::Slot(Slot::alloc(16).unwrap()), Access::READ);
        assert!(regions.allows(ep, &reach(key, 0, 16), Wish::Read));
        assert!(!regions.allows(ep, &reach(key, 0, 16), Wish::Write));
        assert!(!regions.allows(ep, &reach(key, 0, 16), Wish::Atomic));
        assert!(!regions.allows(EpId(2), &reach(key, 0, 16), Wish::Read));
        assert!(!regions.allows(ep, &reach(key, 0, 17), Wish::Read));
        assert!(!regions.allows(ep, &reach(key, 9, 8), Wish::Read));
        let longer = RemoteKey { len: 32, ..key };
        assert!(!regions.allows(ep, &reach(longer, 0, 20), Wish::Read));
        regions.remove(&key).unwrap();
        assert!(!regions.allows(ep, &reach(key, 0, 16), Wish::Read));
    }

    #[test]
    fn a_piece_outside_its_range_reaches_nothing() {
        let mut regions = Regions::default();
        let key = regions.insert(EpId(1), Exposure::Slot(Slot::alloc(16).unwrap()), Access::ALL);
        assert!(regions.bytes(&key, 8, 8).is_some());
        for (at, len) in [(9, 8), (u64::MAX, 1), (u64::MAX, usize::MAX)] {
            assert!(regions.bytes(&key, at, len).is_none());
            assert!(regions.bytes_mut(&key, at, len).is_none());
        }
    }
}
