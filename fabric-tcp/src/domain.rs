//! The contract over TCP.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fabric_core::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, ErrorKind, Event, Listener, ListenerId, OpId,
    Pool, Rejected, Rma, RmaCaps, SendBuf, Slot, Waker,
};

use crate::driver::Driver;
use crate::limits::RMA_BYTES_MAX;
use crate::options::TcpOptions;
use crate::recvs::Posted;

/// Segments in one send: as many pieces as other fabrics gather.
pub(crate) const SEGMENTS_MAX: usize = 8;

/// From here on a piece of its own costs less than copying it.
const GATHER_BYTES_MIN: usize = 16 << 10;

/// From here on a read by the peer costs less than a second copy of the message.
const RENDEZVOUS_BYTES_MIN: usize = 64 << 10;

/// Connections, listeners and memory exposed over TCP, driven by one thread at a time.
pub struct TcpDomain {
    pub(crate) driver: Driver,
    caps: Caps,
}

impl TcpDomain {
    pub(crate) fn open(mut options: TcpOptions) -> Result<Self, Error> {
        options.message_bytes_max = options.message_bytes_max.min(u32::MAX as usize);
        let caps = caps_of(&options);
        Ok(Self { driver: Driver::new(options)?, caps })
    }

    /// Whether one more operation fits on an endpoint that can be used.
    pub(crate) fn check_room(&mut self, ep: EpId) -> Result<(), Error> {
        let depth = self.caps.send_depth;
        let Some((_, endpoint)) = self.driver.table.endpoint(ep) else {
            return Err(unknown_endpoint());
        };
        if endpoint.in_flight() >= depth {
            let text = format!("{depth} operations are in flight to {}: poll first", endpoint.peer);
            return Err(Error::new(ErrorKind::Full, text));
        }
        Ok(())
    }

    fn check_send(&mut self, ep: EpId, buf: &SendBuf) -> Result<(), Error> {
        let (len, len_max) = (buf.len(), self.caps.message_bytes_max);
        if len > len_max {
            return Err(Error::misuse(format!(
                "a message of {len} bytes is over the limit of {len_max}: send it in pieces or let \
                 the peer read it"
            )));
        }
        check_segments(buf)?;
        self.check_room(ep)
    }
}

impl Domain for TcpDomain {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Nothing to do: the kernel copies to and from any memory.
    fn register(&mut self, _pool: &Pool) -> Result<(), Error> {
        Ok(())
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
        if let Err(error) = self.check_send(ep, &buf) {
            return Err(Rejected::new(buf, error));
        }
        let op = self.driver.new_op();
        if let Some((index, endpoint)) = self.driver.table.endpoint(ep) {
            endpoint.writer.push_message(op, buf);
            self.driver.table.mark_dirty(index);
        }
        Ok(op)
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        if self.driver.shared.recvs.is_full() {
            let depth = self.caps.recv_depth;
            let text = format!("{depth} receives are posted: wait for some to complete");
            return Err(Rejected::new(slot, Error::new(ErrorKind::Full, text)));
        }
        let op = self.driver.new_op();
        self.driver.shared.recvs.post(Posted { op, slot });
        Ok(op)
    }

    fn flush(&mut self) {
        self.driver.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        self.driver.turn(max);
        self.driver.shared.events.take(events, max)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.driver.wait(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.driver.registry().as_fd()
    }

    fn arm(&mut self) -> Armed {
        self.driver.flush();
        self.driver.settle_readiness();
        if self.driver.is_pending() || self.driver.waker.take() {
            return Armed::Ready;
        }
        Armed::Idle(self.driver.time_left())
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
        Some(self)
    }
}

impl fmt::Debug for TcpDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpDomain").field("caps", &self.caps).finish_non_exhaustive()
    }
}

pub(crate) fn check_segments(buf: &SendBuf) -> Result<(), Error> {
    let segments = buf.segments().len();
    if segments > SEGMENTS_MAX {
        let text = format!("{segments} segments are over the limit of {SEGMENTS_MAX}: copy some");
        return Err(Error::misuse(text));
    }
    Ok(())
}

pub(crate) fn unknown_endpoint() -> Error {
    Error::misuse("there is no such connected endpoint: wait for Connected, stop after Closed")
}

fn caps_of(options: &TcpOptions) -> Caps {
    Caps {
        provider: "tcp",
        device: "the host's TCP stack".into(),
        message_bytes_max: options.message_bytes_max,
        inline_bytes_max: 0,
        segments_max: SEGMENTS_MAX,
        send_depth: options.send_depth,
        recv_depth: options.recv_depth,
        gather_bytes_min: GATHER_BYTES_MIN,
        rma: Some(RmaCaps { bytes_max: RMA_BYTES_MAX, rendezvous_bytes_min: RENDEZVOUS_BYTES_MIN }),
        atomics: true,
        multicast: false,
    }
}
