//! Memory exposed to peers: the checks before one byte moves.

use fabric_core::{Access, EpId, Error, Exposure, RemoteKey};
use slab::Slab;

use crate::frame::Place;
use crate::limits::REGIONS_MAX;

/// Names an exposure inside the provider. A revoked one matches nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionId {
    index: usize,
    nonce: u64,
}

#[derive(Debug)]
struct Region {
    nonce: u64,
    ep: EpId,
    access: Access,
    memory: Exposure,
    /// The slot's length when it was exposed. Meanwhile its length is its capacity.
    filled: usize,
}

/// All exposures of a domain.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    slab: Slab<Region>,
}

/// What a peer wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Read,
    Write,
    Atomic,
}

impl Regions {
    pub(crate) fn is_full(&self) -> bool {
        self.slab.len() >= REGIONS_MAX
    }

    /// Exposes `memory` to the peer of `ep`, under a key with this nonce.
    pub(crate) fn insert(
        &mut self,
        ep: EpId,
        mut memory: Exposure,
        access: Access,
        nonce: u64,
    ) -> RemoteKey {
        let filled = open_whole(&mut memory);
        let len = memory.len() as u64;
        let index = self.slab.insert(Region { nonce, ep, access, memory, filled });
        RemoteKey { addr: 0, len, key: index as u64, nonce }
    }

    /// Ends an exposure.
    pub(crate) fn remove(&mut self, key: &RemoteKey) -> Option<Exposure> {
        let id = self.find(key)?;
        let region = self.slab.try_remove(id.index)?;
        Some(close_again(region.memory, region.filled))
    }

    /// The exposure under `key`, whoever may reach it.
    pub(crate) fn find(&self, key: &RemoteKey) -> Option<RegionId> {
        let id = RegionId { index: usize::try_from(key.key).ok()?, nonce: key.nonce };
        let region = self.get(id)?;
        (key.addr == 0 && key.len == region.memory.len() as u64).then_some(id)
    }

    /// The peer that may reach an exposure.
    pub(crate) fn owner(&self, id: RegionId) -> Option<EpId> {
        self.get(id).map(|region| region.ep)
    }

    /// Whether the peer of `ep` may do what it wants at `at`. `None` says no, not why: a peer that
    /// guesses should not learn how close it was.
    pub(crate) fn check(&self, ep: EpId, at: &Place, want: Want) -> Option<(RegionId, usize)> {
        let id = self.find(&at.key)?;
        let region = self.get(id).filter(|region| region.ep == ep && region.allows(want))?;
        let end = at.offset.checked_add(at.rest)?;
        (end <= region.memory.len() as u64).then_some((id, at.offset as usize))
    }

    /// All bytes of an exposure.
    pub(crate) fn bytes(&self, id: RegionId) -> Option<&[u8]> {
        Some(match &self.get(id)?.memory {
            Exposure::Slot(slot) => slot.filled(),
            Exposure::Bytes(bytes) => bytes,
        })
    }

    /// All bytes of an exposure that is no shared bytes.
    pub(crate) fn bytes_mut(&mut self, id: RegionId) -> Option<&mut [u8]> {
        let region = self.slab.get_mut(id.index).filter(|region| region.nonce == id.nonce)?;
        match &mut region.memory {
            Exposure::Slot(slot) => Some(slot.buffer_mut()),
            Exposure::Bytes(_) => None,
        }
    }

    fn get(&self, id: RegionId) -> Option<&Region> {
        self.slab.get(id.index).filter(|region| region.nonce == id.nonce)
    }
}

impl Region {
    fn allows(&self, want: Want) -> bool {
        match want {
            Want::Read => self.access.read,
            Want::Write => self.access.write,
            Want::Atomic => self.access.atomic,
        }
    }
}

/// Why memory cannot be exposed like this, if so.
pub(crate) fn check_exposure(memory: &Exposure, access: Access) -> Result<(), Error> {
    let shared = matches!(memory, Exposure::Bytes(_));
    let refused = if memory.is_empty() {
        "there is nothing to expose: the memory has no bytes"
    } else if !access.read && !access.mutates() {
        "an exposure needs at least one of reading, writing and atomics"
    } else if shared && access.mutates() {
        "shared bytes can be exposed for reading only: expose a slot"
    } else {
        return Ok(());
    };
    Err(Error::misuse(refused))
}

fn open_whole(memory: &mut Exposure) -> usize {
    match memory {
        Exposure::Slot(slot) => {
            let filled = slot.len();
            slot.set_len(slot.capacity());
            filled
        }
        Exposure::Bytes(bytes) => bytes.len(),
    }
}

fn close_again(memory: Exposure, filled: usize) -> Exposure {
    match memory {
        Exposure::Slot(mut slot) => {
            slot.set_len(filled);
            Exposure::Slot(slot)
        }
        bytes @ Exposure::Bytes(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fabric_core::Slot;

    use super::*;

    const EP: EpId = EpId(7);

    fn slot(bytes: usize) -> Exposure {
        Exposure::Slot(Slot::alloc(bytes).unwrap())
    }

    fn allowed(regions: &Regions, ep: EpId, key: RemoteKey, range: (u64, u64), want: Want) -> bool {
        let at = Place { key, offset: range.0, rest: range.1 };
        regions.check(ep, &at, want).is_some()
    }

    #[test]
    fn key_owner_bounds_and_access_are_checked() {
        let mut regions = Regions::default();
        let key = regions.insert(EP, slot(8), Access::READ, 1);
        assert!(allowed(&regions, EP, key, (0, 8), Want::Read));
        assert!(allowed(&regions, EP, key, (8, 0), Want::Read));
        assert!(!allowed(&regions, EpId(8), key, (0, 8), Want::Read));
        assert!(!allowed(&regions, EP, key, (1, 8), Want::Read));
        assert!(!allowed(&regions, EP, key, (u64::MAX, 8), Want::Read));
        assert!(!allowed(&regions, EP, key, (0, 8), Want::Write));
        assert!(!allowed(&regions, EP, key, (0, 8), Want::Atomic));
        for wrong in [
            RemoteKey { addr: 1, ..key },
            RemoteKey { len: 9, ..key },
            RemoteKey { key: 1, ..key },
            RemoteKey { nonce: key.nonce ^ 1, ..key },
        ] {
            assert!(!allowed(&regions, EP, wrong, (0, 1), Want::Read));
        }
    }

    #[test]
    fn a_revoked_key_stays_dead_when_its_place_is_used_again() {
        let mut regions = Regions::default();
        let key = regions.insert(EP, slot(8), Access::READ, 1);
        assert_eq!(regions.remove(&key).unwrap().len(), 8);
        let next = regions.insert(EP, slot(8), Access::READ, 2);
        assert_eq!(key.key, next.key);
        assert!(!allowed(&regions, EP, key, (0, 1), Want::Read));
        assert!(regions.remove(&key).is_none());
    }

    #[test]
    fn a_slot_comes_back_with_the_length_it_had() {
        let mut regions = Regions::default();
        let mut memory = Slot::alloc(8).unwrap();
        assert!(memory.append(b"abc"));
        let key = regions.insert(EP, Exposure::Slot(memory), Access::ALL, 1);
        assert_eq!(key.len, 8);
        let Some(Exposure::Slot(back)) = regions.remove(&key) else { panic!("no slot") };
        assert_eq!(back.filled(), b"abc");
    }

    #[test]
    fn senseless_exposures_are_refused() {
        let shared = Exposure::Bytes(Bytes::from_static(b"x"));
        assert!(check_exposure(&shared, Access::READ).is_ok());
        assert!(check_exposure(&shared, Access::WRITE).is_err());
        assert!(check_exposure(&Exposure::Bytes(Bytes::new()), Access::READ).is_err());
        let none = Access { read: false, write: false, atomic: false };
        assert!(check_exposure(&slot(1), none).is_err());
    }
}
