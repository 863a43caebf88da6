//! The opt-in abilities, told like everything else.

use fabric_mem::Slot;

use super::{Trace, kind_of, outcome};
use crate::wrap::lacking::{lacking, reject};
use crate::{
    Access, Addr, Atomics, Domain, EpId, Error, Exposure, GroupId, Multicast, OpId, Rejected,
    RemoteKey, Rma, SendBuf,
};

impl<D: Domain> Rma for Trace<D> {
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        let bytes = mem.len();
        let done = match self.inner.rma() {
            Some(rma) => rma.expose(ep, mem, access),
            None => Err(reject(mem)),
        };
        let kind = done.as_ref().err().map(|rejected| format!("{:?}", rejected.error.kind()));
        tell!(trace, self, "expose", ep = ep.0, bytes, ?access, kind);
        done
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        let done = self.inner.rma().ok_or_else(lacking).and_then(|rma| rma.revoke(key));
        tell!(trace, self, "revoke", bytes = key.len, kind = kind_of(&done));
        done
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len();
        let done = self.inner.rma().ok_or_else(lacking).and_then(|rma| rma.load(key, offset, to));
        tell!(trace, self, "load", offset, bytes, kind = kind_of(&done));
        done
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        let bytes = from.len();
        let done =
            self.inner.rma().ok_or_else(lacking).and_then(|rma| rma.store(key, offset, from));
        tell!(trace, self, "store", offset, bytes, kind = kind_of(&done));
        done
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        let done = match self.inner.rma() {
            Some(rma) => rma.post_read(ep, from, offset, into, len),
            None => Err(reject(into)),
        };
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_read", ep = ep.0, op, offset, bytes = len, kind);
        done
    }

    fn post_write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let bytes = buf.len();
        let done = match self.inner.rma() {
            Some(rma) => rma.post_write(ep, to, offset, buf),
            None => Err(reject(buf)),
        };
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_write", ep = ep.0, op, offset, bytes, kind);
        done
    }

    fn post_write_imm(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: u32,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let bytes = buf.len();
        let done = match self.inner.rma() {
            Some(rma) => rma.post_write_imm(ep, to, offset, buf, imm),
            None => Err(reject(buf)),
        };
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_write_imm", ep = ep.0, op, offset, bytes, imm, kind);
        done
    }
}

impl<D: Domain> Trace<D> {
    fn tell_atomic(&self, what: &'static str, ep: EpId, offset: u64, done: &Result<OpId, Error>) {
        let (kind, op) = (kind_of(done), done.as_ref().ok().map(|op| op.0));
        tell!(trace, self, "atomic", what, ep = ep.0, op, offset, kind);
    }
}

impl<D: Domain> Atomics for Trace<D> {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        let atomics = self.inner.atomics().ok_or_else(lacking);
        let done = atomics.and_then(|inner| inner.compare_swap(ep, at, offset, compare, swap));
        self.tell_atomic("compare_swap", ep, offset, &done);
        done
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        let atomics = self.inner.atomics().ok_or_else(lacking);
        let done = atomics.and_then(|inner| inner.fetch_add(ep, at, offset, add));
        self.tell_atomic("fetch_add", ep, offset, &done);
        done
    }
}

impl<D: Domain> Multicast for Trace<D> {
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error> {
        let done = self.inner.multicast().ok_or_else(lacking).and_then(|inner| inner.join(group));
        tell!(debug, self, "join", addr = %group, kind = kind_of(&done));
        done
    }

    fn leave(&mut self, group: GroupId) -> Result<(), Error> {
        let done = self.inner.multicast().ok_or_else(lacking).and_then(|inner| inner.leave(group));
        tell!(debug, self, "leave", group = group.0, kind = kind_of(&done));
        done
    }

    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        let bytes = buf.len();
        let done = match self.inner.multicast() {
            Some(inner) => inner.post_multicast(group, buf),
            None => Err(reject(buf)),
        };
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_multicast", group = group.0, op, bytes, kind);
        done
    }

    fn dropped(&mut self, group: GroupId) -> Result<u64, Error> {
        self.inner.multicast().ok_or_else(lacking)?.dropped(group)
    }
}
