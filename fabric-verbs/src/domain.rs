//! The contract over verbs.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use fabric_core::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, ErrorKind, Event, Listener, ListenerId,
    Multicast, OpId, Pool, Rejected, Rma, RmaCaps, SendBuf, Slot, Waker,
};
use fabric_link::{Cut, Posted, posts};

use crate::driver::Driver;
use crate::endpoint::{Endpoint, Message, Outgoing};
use crate::limits::{COPY_BYTES_MAX, RMA_BYTES_MAX, SEGMENTS_MAX};
use crate::options::VerbsOptions;
use crate::outbound::is_copied;
use crate::sys::Limits;
use crate::table::Table;

/// From here on a read by the peer costs less than a second copy of the message.
const RENDEZVOUS_BYTES_MIN: usize = 64 << 10;

/// Connections, listeners and memory exposed on one RDMA device, driven by one thread at a time.
pub struct VerbsDomain {
    pub(crate) driver: Driver,
    caps: Caps,
}

impl VerbsDomain {
    /// A domain on the device that `options` name, else on `chosen`, else on the first one that is
    /// up.
    pub(crate) fn open(mut options: VerbsOptions, chosen: Option<&str>) -> Result<Self, Error> {
        options.message_bytes_max = options.message_bytes_max.min(u32::MAX as usize);
        let driver = Driver::new(options, chosen)?;
        let caps = caps_of(&driver.options, driver.queues.device().name(), &driver.limits);
        Ok(Self { driver, caps })
    }

    /// Whether one more operation fits on an endpoint that can be used.
    pub(crate) fn check_room(&mut self, ep: EpId) -> Result<(), Error> {
        room_of(&mut self.driver.table, ep, self.caps.send_depth).map(drop)
    }
}

/// An endpoint that can be used and on which one more operation fits, with its index.
fn room_of(table: &mut Table, ep: EpId, depth: usize) -> Result<(usize, &mut Endpoint), Error> {
    let found = table.endpoint_of(ep).filter(|(_, endpoint)| endpoint.is_usable());
    let (index, endpoint) = found.ok_or_else(posts::unknown_endpoint)?;
    posts::check_depth(endpoint.ops, depth, &endpoint.peer)?;
    Ok((index, endpoint))
}

impl Domain for VerbsDomain {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Locks the pool's memory for the device, for this side's use only.
    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        self.driver.registry.insert(pool, &self.driver.queues)
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        self.driver.start_listening(addr)
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        self.driver.stop_listening(listener)
    }

    /// Names are looked up before this returns, which may take the resolver's time.
    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        self.driver.dial(addr)
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        let len = buf.len();
        if let Err(error) = posts::check_message(&buf, len, &self.caps) {
            return Err(Rejected::new(buf, error));
        }
        let op = self.driver.new_op();
        let copied = is_copied(&buf, len, &self.driver.registry);
        match room_of(&mut self.driver.table, ep, self.caps.send_depth) {
            Ok((index, endpoint)) => {
                endpoint.ops += 1;
                let message = Message { op, buf, cut: Cut::new(len), copied };
                endpoint.out.push_back(Outgoing::Message(message));
                self.driver.table.mark_dirty(index);
                Ok(op)
            }
            Err(error) => Err(Rejected::new(buf, error)),
        }
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        if self.driver.recvs.is_full() {
            let depth = self.caps.recv_depth;
            let text = format!("{depth} receives are posted: wait for some to complete");
            return Err(Rejected::new(slot, Error::new(ErrorKind::Full, text)));
        }
        let op = self.driver.new_op();
        self.driver.recvs.post(Posted { op, slot });
        Ok(op)
    }

    fn flush(&mut self) {
        self.driver.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        self.driver.turn(max);
        let count = max.min(self.driver.events.len());
        // Mostly it is none or one.
        for _ in 0..count {
            if let Some(event) = self.driver.events.pop_front() {
                events.push(event);
            }
        }
        count
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.driver.wait(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.driver.sleeper().fd()
    }

    fn arm(&mut self) -> Armed {
        match self.driver.arm() {
            Ok(false) => Armed::Idle(self.driver.time_left()),
            Ok(true) => Armed::Ready,
            Err(error) => {
                // The next `wait` says it; until then there may be something at any time.
                tracing::warn!(%error, "the device does not tell of completions");
                Armed::Ready
            }
        }
    }

    fn waker(&self) -> Waker {
        Waker::new(self.driver.waker.clone())
    }

    fn close(&mut self, ep: EpId) {
        self.driver.close(ep);
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        Some(self)
    }

    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        if self.caps.atomics { Some(self) } else { None }
    }

    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        if self.caps.multicast { Some(self) } else { None }
    }
}

impl fmt::Debug for VerbsDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsDomain").field("caps", &self.caps).finish_non_exhaustive()
    }
}

fn caps_of(options: &VerbsOptions, device: String, limits: &Limits) -> Caps {
    let bytes_max =
        RMA_BYTES_MAX.min(usize::try_from(limits.region_bytes_max).unwrap_or(usize::MAX));
    Caps {
        provider: options.scheme,
        device,
        message_bytes_max: options.message_bytes_max,
        inline_bytes_max: options.inline_bytes.min(options.message_bytes_max),
        segments_max: SEGMENTS_MAX,
        send_depth: options.send_depth,
        recv_depth: options.recv_depth,
        gather_bytes_min: COPY_BYTES_MAX,
        rma: Some(RmaCaps { bytes_max, rendezvous_bytes_min: RENDEZVOUS_BYTES_MIN }),
        // Devices do atomics in the byte order of their host; the contract's is little-endian.
        atomics: limits.atomics && cfg!(target_endian = "little"),
        multicast: !limits.iwarp,
    }
}
