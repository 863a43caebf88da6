//! Reading and writing memory of the peer, and letting it do the same here.

use fabric_core::{
    Access, Atomics, EpId, Error, Exposure, OpId, Rejected, RemoteKey, Rma, SendBuf, Slot,
};
use fabric_link::posts;

use crate::domain::LibfabricDomain;
use crate::limits::{REGIONS_MAX, RMA_BYTES_MAX, SEGMENTS_MAX};
use crate::packet::Reach;
use crate::works::{Task, Work};

impl LibfabricDomain {
    fn check_expose(&mut self, ep: EpId, mem: &Exposure, access: Access) -> Result<(), Error> {
        let found = self.driver.table.endpoint_of(ep);
        found.filter(|(_, endpoint)| endpoint.is_usable()).ok_or_else(posts::unknown_endpoint)?;
        posts::check_exposure(mem, access, self.driver.regions.len(), REGIONS_MAX)
    }

    fn check_read(&mut self, ep: EpId, into: &Slot, len: usize) -> Result<(), Error> {
        posts::check_read(into, len, RMA_BYTES_MAX)?;
        self.check_room(ep).map(drop)
    }

    fn check_write(&mut self, ep: EpId, buf: &SendBuf) -> Result<(), Error> {
        posts::check_write(buf, RMA_BYTES_MAX, SEGMENTS_MAX)?;
        self.check_room(ep).map(drop)
    }

    fn push(&mut self, ep: EpId, task: Task, reach: Reach, len: usize) -> OpId {
        let op = self.driver.new_op();
        if let Some((index, endpoint)) = self.driver.table.endpoint_of(ep) {
            endpoint.ops += 1;
            endpoint.works.push(Work::new(op, task, reach, len));
            self.driver.table.mark_dirty(index);
        }
        op
    }

    fn write(
        &mut self,
        ep: EpId,
        key: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: Option<u32>,
    ) -> Result<OpId, Rejected<SendBuf>> {
        if let Err(error) = self.check_write(ep, &buf) {
            return Err(Rejected::new(buf, error));
        }
        let len = buf.len();
        Ok(self.push(ep, Task::Write { buf, imm }, reach(key, offset, len), len))
    }

    fn atomic(&mut self, ep: EpId, key: RemoteKey, offset: u64, task: Task) -> Result<OpId, Error> {
        posts::check_word(offset)?;
        self.check_room(ep)?;
        // An atomic is one piece, whatever its length.
        Ok(self.push(ep, task, reach(key, offset, 8), 0))
    }
}

impl Rma for LibfabricDomain {
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        match self.check_expose(ep, &mem, access) {
            Ok(()) => Ok(self.driver.regions.insert(ep, mem, access)),
            Err(error) => Err(Rejected::new(mem, error)),
        }
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        self.driver.regions.remove(key).ok_or_else(posts::unknown_key)
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.driver.regions.load(key, offset, to)
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.driver.regions.store(key, offset, from)
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        match self.check_read(ep, &into, len) {
            Ok(()) => Ok(self.push(ep, Task::Read { slot: into }, reach(from, offset, len), len)),
            Err(error) => Err(Rejected::new(into, error)),
        }
    }

    fn post_write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>> {
        self.write(ep, to, offset, buf, None)
    }

    /// The value travels in a message of its own behind the bytes.
    fn post_write_imm(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: u32,
    ) -> Result<OpId, Rejected<SendBuf>> {
        self.write(ep, to, offset, buf, Some(imm))
    }
}

impl Atomics for LibfabricDomain {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Task::Swap { compare, swap })
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Task::Add { add })
    }
}

/// A range that would wrap is one that no memory has, so that its owner refuses it.
fn reach(key: RemoteKey, start: u64, len: usize) -> Reach {
    let end = start.saturating_add(len as u64);
    Reach { key, start, end, at: start }
}
