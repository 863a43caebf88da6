//! The traits of the contract, each a step into the network.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric_core::{
    Access, Addr, Armed, Atomics, Caps, Domain, EpId, Error, Event, Exposure, GroupId, Listener,
    ListenerId, Multicast, OpId, Pool, Rejected, RemoteKey, Rma, SendBuf, Slot, Waker,
};

use crate::SimNet;
use crate::bell::Bell;
use crate::dom::Dom;
use crate::endpoint::At;
use crate::rma::{Kind, Transfer};
use crate::status;

/// A domain of a simulated network.
pub struct SimDomain {
    net: SimNet,
    id: u64,
    caps: Caps,
    bell: Arc<Bell>,
    virtual_time: bool,
}

impl SimDomain {
    pub(crate) fn open(net: SimNet) -> Result<Self, Error> {
        let mut state = net.lock();
        let id = state.fresh_id();
        let bell = Arc::new(Bell::new(state.options.bug)?);
        state.doms.insert(id, Dom::new(bell.clone()));
        let caps = state.options.limits.caps(format!("sim{id}"));
        let virtual_time = state.options.virtual_time;
        drop(state);
        Ok(Self { net, id, caps, bell, virtual_time })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    fn at(&self, ep: EpId) -> At {
        At { dom: self.id, ep }
    }

    fn write(
        &self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: Option<u32>,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let (mut net, at) = (self.net.lock(), self.at(ep));
        if let Err(error) = net.check_transfer(at, buf.len()) {
            return Err(Rejected::new(buf, error));
        }
        let kind = Kind::Write { buf, imm };
        Ok(net.start_transfer(at, Transfer::new(to, offset, kind)))
    }

    fn atomic(&self, ep: EpId, key: RemoteKey, offset: u64, kind: Kind) -> Result<OpId, Error> {
        if !offset.is_multiple_of(8) {
            return Err(Error::misuse("an atomic's offset must be a multiple of 8"));
        }
        let (mut net, at) = (self.net.lock(), self.at(ep));
        net.check_transfer(at, 8)?;
        Ok(net.start_transfer(at, Transfer::new(key, offset, kind)))
    }
}

fn check_capacity(into: &Slot, len: usize) -> Result<(), Error> {
    match into.capacity() {
        capacity if len > capacity => Err(status::over_limit("bytes", len, capacity)),
        _ => Ok(()),
    }
}

impl Domain for SimDomain {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Instant {
        self.net.lock().now()
    }

    fn register(&mut self, _pool: &Pool) -> Result<(), Error> {
        Ok(())
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        self.net.lock().listen(self.id, addr)
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        self.net.lock().unlisten(self.id, listener)
    }

    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        self.net.lock().connect(self.id, addr)
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        self.net.lock().post_send(self.at(ep), buf)
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        self.net.lock().post_recv(self.id, slot)
    }

    fn flush(&mut self) {
        self.net.lock().flush(self.id);
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        let mut net = self.net.lock();
        net.progress(self.id);
        net.take_events(self.id, events, max)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let Armed::Idle(deadline) = self.arm() else { return Ok(()) };
        if self.virtual_time {
            return Ok(());
        }
        let timeout = timeout.into_iter().chain(deadline).min();
        self.bell.sleep(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.bell.fd()
    }

    fn arm(&mut self) -> Armed {
        // Under the lock, so that nothing happens between the look and the arming.
        let net = self.net.lock();
        if net.has_work(self.id) || !self.bell.arm() {
            return Armed::Ready;
        }
        Armed::Idle(net.time_to_deadline(self.id))
    }

    fn waker(&self) -> Waker {
        Waker::new(self.bell.clone())
    }

    fn close(&mut self, ep: EpId) {
        self.net.lock().close(self.at(ep));
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        Some(self)
    }

    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        Some(self)
    }

    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        Some(self)
    }
}

impl Rma for SimDomain {
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>> {
        self.net.lock().expose(self.at(ep), mem, access)
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        self.net.lock().revoke(self.id, key)
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.net.lock().load(self.id, key, offset, to)
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.net.lock().store(self.id, key, offset, from)
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        let (mut net, at) = (self.net.lock(), self.at(ep));
        let checked = check_capacity(&into, len).and_then(|()| net.check_transfer(at, len));
        if let Err(error) = checked {
            return Err(Rejected::new(into, error));
        }
        Ok(net.start_transfer(at, Transfer::new(from, offset, Kind::Read { into, len })))
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

impl Atomics for SimDomain {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Kind::Swap { compare, swap })
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Kind::Add { add })
    }
}

impl Multicast for SimDomain {
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error> {
        self.net.lock().join_group(self.id, group)
    }

    fn leave(&mut self, group: GroupId) -> Result<(), Error> {
        self.net.lock().leave_group(self.id, group)
    }

    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        self.net.lock().post_multicast(self.id, group, buf)
    }

    fn dropped(&mut self, group: GroupId) -> Result<u64, Error> {
        self.net.lock().dropped(self.id, group)
    }
}

impl Drop for SimDomain {
    fn drop(&mut self) {
        let gone = self.net.lock().remove(self.id);
        // Without the lock: buffers run their owners' code when they are dropped.
        drop(gone);
    }
}

impl fmt::Debug for SimDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDomain").field("id", &self.id).finish_non_exhaustive()
    }
}
