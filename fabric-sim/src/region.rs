//! Memory that a domain exposes.

use std::ops::Range;

use fabric_core::{Access, EpId, Error, Exposure, Rejected, RemoteKey, Slot};

use crate::Bug;
use crate::endpoint::At;
use crate::net::Net;
use crate::status;

pub(crate) struct Region {
    pub(crate) ep: EpId,
    pub(crate) mem: Exposure,
    pub(crate) access: Access,
    pub(crate) key: RemoteKey,
}

impl Region {
    /// All exposed bytes, filled or not.
    pub(crate) fn bytes(&mut self) -> &[u8] {
        match &mut self.mem {
            Exposure::Slot(slot) => slot.buffer_mut(),
            Exposure::Bytes(bytes) => bytes,
        }
    }

    /// The same to write to, unless they are shared.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.mem {
            Exposure::Slot(slot) => Some(slot.buffer_mut()),
            Exposure::Bytes(_) => None,
        }
    }

    /// The place of `len` bytes at `offset`, if they are inside.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Option<Range<usize>> {
        let end = offset.checked_add(len)?;
        (end <= self.mem.len() as u64).then_some(offset as usize..end as usize)
    }
}

impl Net {
    pub(crate) fn expose(
        &mut self,
        at: At,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        if let Err(error) = self.check_exposure(at, &mem, access) {
            return Err(Rejected::new(mem, error));
        }
        let key = self.draw_key(mem.len() as u64);
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.regions.insert(key.key, Region { ep: at.ep, mem, access, key });
        }
        Ok(key)
    }

    pub(crate) fn revoke(&mut self, dom: u64, key: &RemoteKey) -> Result<Exposure, Error> {
        self.region(dom, key)?;
        let region = self.doms.get_mut(&dom).and_then(|dom| dom.regions.remove(&key.key));
        let mut region = region.ok_or_else(status::unknown_key)?;
        if self.has(Bug::RevokeForgetsLength)
            && let Exposure::Slot(slot) = &mut region.mem
        {
            slot.set_len(slot.capacity());
        }
        if self.has(Bug::IgnoresRevoke) {
            self.leave_ghost(dom, &region);
        }
        Ok(region.mem)
    }

    pub(crate) fn load(
        &mut self,
        dom: u64,
        key: &RemoteKey,
        offset: u64,
        to: &mut [u8],
    ) -> Result<(), Error> {
        let region = self.region(dom, key)?;
        let range = region.range(offset, to.len() as u64).ok_or_else(beyond)?;
        to.copy_from_slice(&region.bytes()[range]);
        Ok(())
    }

    pub(crate) fn store(
        &mut self,
        dom: u64,
        key: &RemoteKey,
        offset: u64,
        from: &[u8],
    ) -> Result<(), Error> {
        let region = self.region(dom, key)?;
        let range = region.range(offset, from.len() as u64).ok_or_else(beyond)?;
        let shared = || Error::misuse("shared bytes cannot be written: expose a slot");
        region.bytes_mut().ok_or_else(shared)?[range].copy_from_slice(from);
        Ok(())
    }

    fn region(&mut self, dom: u64, key: &RemoteKey) -> Result<&mut Region, Error> {
        let region = self.doms.get_mut(&dom).and_then(|dom| dom.regions.get_mut(&key.key));
        region.filter(|region| region.key == *key).ok_or_else(status::unknown_key)
    }

    fn check_exposure(&self, at: At, mem: &Exposure, access: Access) -> Result<(), Error> {
        let dom = self.doms.get(&at.dom).filter(|dom| dom.eps.contains_key(&at.ep));
        let dom = dom.ok_or_else(|| status::unknown_ep(at.ep))?;
        if mem.is_empty() {
            return Err(Error::misuse("there is nothing to expose: the memory has no bytes"));
        }
        if !access.read && !access.mutates() {
            return Err(Error::misuse("an exposure without access is of no use: ask for some"));
        }
        if access.mutates() && matches!(mem, Exposure::Bytes(_)) {
            return Err(Error::misuse("shared bytes can only be read: expose a slot"));
        }
        let max = self.options.limits.exposures_max;
        if dom.regions.len() >= max {
            return Err(status::full("exposures", max));
        }
        Ok(())
    }

    fn draw_key(&mut self, len: u64) -> RemoteKey {
        // An address that nothing else uses, aligned as memory for atomics is.
        let addr = self.rng.u64(..) & !0xfff;
        RemoteKey { addr, len, key: self.fresh_id(), nonce: self.rng.u64(..) }
    }

    fn leave_ghost(&mut self, dom: u64, region: &Region) {
        let Ok(slot) = Slot::alloc(region.mem.len()) else { return };
        let ghost = Region { mem: Exposure::Slot(slot), ..*region };
        if let Some(dom) = self.doms.get_mut(&dom) {
            dom.regions.insert(region.key.key, ghost);
        }
    }
}

fn beyond() -> Error {
    Error::misuse("the range reaches beyond the exposed memory: mind its length")
}
