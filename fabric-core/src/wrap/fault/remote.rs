//! The opt-in abilities: their posts are refused by the same plan.

use fabric_mem::Slot;

use super::{Fault, refused};
use crate::wrap::lacking::{lacking, reject};
use crate::{
    Access, Addr, Atomics, Domain, EpId, Error, Exposure, GroupId, Multicast, OpId, Rejected,
    RemoteKey, Rma, SendBuf,
};

impl<D: Domain> Rma for Fault<D> {
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        if self.refuses_post() {
            return Err(Rejected::new(mem, refused()));
        }
        match self.inner.rma() {
            Some(rma) => rma.expose(ep, mem, access),
            None => Err(reject(mem)),
        }
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        self.inner.rma().ok_or_else(lacking)?.revoke(key)
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.inner.rma().ok_or_else(lacking)?.load(key, offset, to)
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.inner.rma().ok_or_else(lacking)?.store(key, offset, from)
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        if self.refuses_post() {
            return Err(Rejected::new(into, refused()));
        }
        match self.inner.rma() {
            Some(rma) => rma.post_read(ep, from, offset, into, len),
            None => Err(reject(into)),
        }
    }

    fn post_write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>> {
        if self.refuses_post() {
            return Err(Rejected::new(buf, refused()));
        }
        match self.inner.rma() {
            Some(rma) => rma.post_write(ep, to, offset, buf),
            None => Err(reject(buf)),
        }
    }

    fn post_write_imm(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: u32,
    ) -> Result<OpId, Rejected<SendBuf>> {
        if self.refuses_post() {
            return Err(Rejected::new(buf, refused()));
        }
        match self.inner.rma() {
            Some(rma) => rma.post_write_imm(ep, to, offset, buf, imm),
            None => Err(reject(buf)),
        }
    }
}

impl<D: Domain> Atomics for Fault<D> {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        if self.refuses_post() {
            return Err(refused());
        }
        self.inner.atomics().ok_or_else(lacking)?.compare_swap(ep, at, offset, compare, swap)
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        if self.refuses_post() {
            return Err(refused());
        }
        self.inner.atomics().ok_or_else(lacking)?.fetch_add(ep, at, offset, add)
    }
}

impl<D: Domain> Multicast for Fault<D> {
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error> {
        self.inner.multicast().ok_or_else(lacking)?.join(group)
    }

    fn leave(&mut self, group: GroupId) -> Result<(), Error> {
        self.inner.multicast().ok_or_else(lacking)?.leave(group)
    }

    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        if self.refuses_post() {
            return Err(Rejected::new(buf, refused()));
        }
        match self.inner.multicast() {
            Some(inner) => inner.post_multicast(group, buf),
            None => Err(reject(buf)),
        }
    }

    fn dropped(&mut self, group: GroupId) -> Result<u64, Error> {
        self.inner.multicast().ok_or_else(lacking)?.dropped(group)
    }
}
