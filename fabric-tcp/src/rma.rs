//! Remote memory and atomics over TCP: this side's half of the requests.

use fabric_core::{
    Access, Atomics, EpId, Error, ErrorKind, Exposure, OpId, Rejected, RemoteKey, Rma, SendBuf,
    Slot,
};

use crate::domain::{TcpDomain, check_segments, unknown_endpoint};
use crate::frame::Frame;
use crate::limits::{REGIONS_MAX, RMA_BYTES_MAX};
use crate::region::{RegionId, check_exposure};
use crate::requests::Work;

impl TcpDomain {
    fn check_expose(&mut self, ep: EpId, mem: &Exposure, access: Access) -> Result<(), Error> {
        check_exposure(mem, access)?;
        if self.driver.table.endpoint(ep).is_none() {
            return Err(unknown_endpoint());
        }
        if self.driver.shared.regions.is_full() {
            let text = format!("{REGIONS_MAX} pieces of memory are exposed: revoke some first");
            return Err(Error::new(ErrorKind::Full, text));
        }
        Ok(())
    }

    fn check_read(&mut self, ep: EpId, into: &Slot, len: usize) -> Result<(), Error> {
        if len > into.capacity() {
            let capacity = into.capacity();
            return Err(Error::misuse(format!("a slot of {capacity} bytes cannot take {len}")));
        }
        check_len(len)?;
        self.check_room(ep)
    }

    fn check_write(&mut self, ep: EpId, buf: &SendBuf) -> Result<(), Error> {
        check_len(buf.len())?;
        check_segments(buf)?;
        self.check_room(ep)
    }

    /// Queues an operation that was checked before.
    fn request(&mut self, ep: EpId, work: impl FnOnce(OpId) -> Work) -> OpId {
        let op = self.driver.new_op();
        if let Some((index, endpoint)) = self.driver.table.endpoint(ep) {
            endpoint.requests.push(op, work(op));
            endpoint.requests.issue(&mut endpoint.writer);
            self.driver.table.mark_dirty(index);
        }
        op
    }

    fn write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: Option<u32>,
    ) -> Result<OpId, Rejected<SendBuf>> {
        if let Err(error) = self.check_write(ep, &buf) {
            return Err(Rejected::new(buf, error));
        }
        Ok(self.request(ep, |_| Work::write(buf, to, offset, imm)))
    }

    fn atomic(
        &mut self,
        ep: EpId,
        offset: u64,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<OpId, Error> {
        if !offset.is_multiple_of(8) {
            return Err(Error::misuse(format!("offset {offset} is no multiple of 8")));
        }
        self.check_room(ep)?;
        Ok(self.request(ep, |op| Work::atomic(frame(op.0))))
    }

    fn region(&self, key: &RemoteKey) -> Result<RegionId, Error> {
        self.driver.shared.regions.find(key).ok_or_else(unknown_key)
    }

    /// What the peer already awaits of an exposure is copied before it ends.
    fn forget(&mut self, id: RegionId) {
        let regions = &self.driver.shared.regions;
        let (Some(owner), Some(memory)) = (regions.owner(id), regions.bytes(id)) else { return };
        if let Some((_, endpoint)) = self.driver.table.endpoint(owner) {
            endpoint.writer.forget(id, memory);
        }
    }
}

impl Rma for TcpDomain {
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        match self.check_expose(ep, &mem, access) {
            Ok(()) => Ok(self.driver.shared.regions.insert(ep, mem, access, fastrand::u64(..))),
            Err(error) => Err(Rejected::new(mem, error)),
        }
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        let id = self.region(key)?;
        self.forget(id);
        self.driver.shared.regions.remove(key).ok_or_else(unknown_key)
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let id = self.region(key)?;
        let bytes = self.driver.shared.regions.bytes(id).ok_or_else(unknown_key)?;
        to.copy_from_slice(bytes.get(range(offset, to.len())?).ok_or_else(beyond)?);
        Ok(())
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        let id = self.region(key)?;
        let shared = || Error::misuse("shared bytes cannot be changed: expose a slot");
        let bytes = self.driver.shared.regions.bytes_mut(id).ok_or_else(shared)?;
        bytes.get_mut(range(offset, from.len())?).ok_or_else(beyond)?.copy_from_slice(from);
        Ok(())
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        if let Err(error) = self.check_read(ep, &into, len) {
            return Err(Rejected::new(into, error));
        }
        Ok(self.request(ep, |_| Work::read(into, from, offset, len)))
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

impl Atomics for TcpDomain {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        self.atomic(ep, offset, |id| Frame::CompareSwap { id, key: at, offset, compare, swap })
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        self.atomic(ep, offset, |id| Frame::FetchAdd { id, key: at, offset, add })
    }
}

fn check_len(len: usize) -> Result<(), Error> {
    if len > RMA_BYTES_MAX {
        let text = format!("{len} bytes are over the limit of {RMA_BYTES_MAX}: use several posts");
        return Err(Error::misuse(text));
    }
    Ok(())
}

/// A range that may still lie beyond the memory.
fn range(offset: u64, len: usize) -> Result<std::ops::Range<usize>, Error> {
    let start = usize::try_from(offset).map_err(|_| beyond())?;
    Ok(start..start.checked_add(len).ok_or_else(beyond)?)
}

fn beyond() -> Error {
    Error::misuse("the range lies beyond the exposed memory")
}

fn unknown_key() -> Error {
    Error::misuse("nothing is exposed under this key: it was revoked already")
}
