//! The contract over libfabric.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use fabric_core::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, ErrorKind, Event, Listener, ListenerId, OpId,
    Pool, Rejected, Rma, RmaCaps, SendBuf, Slot, Waker,
};
use fabric_link::{Posted, posts};

use crate::choose::Choice;
use crate::driver::Driver;
use crate::limits::{PACKET_BYTES, RMA_BYTES_MAX, SEGMENTS_MAX};
use crate::options::LibfabricOptions;

/// From here on a read by the peer costs less than a second copy of the message.
const RENDEZVOUS_BYTES_MIN: usize = 64 << 10;

/// Connections, listeners and exposed memory on one domain of a provider, driven by one thread at a
/// time.
pub struct LibfabricDomain {
    pub(crate) driver: Driver,
    caps: Caps,
}

impl LibfabricDomain {
    pub(crate) fn open(choice: Choice, mut options: LibfabricOptions) -> Result<Self, Error> {
        options.message_bytes_max = options.message_bytes_max.min(u32::MAX as usize);
        let message_bytes = choice.info.message_bytes();
        if message_bytes < PACKET_BYTES {
            let text = format!(
                "{} takes no messages of {PACKET_BYTES} bytes, only {message_bytes}",
                choice.info.provider()
            );
            return Err(Error::new(ErrorKind::Host, text));
        }
        let inject_bytes = choice.info.inject_bytes();
        let driver = Driver::new(choice, options)?;
        let caps = caps_of(&driver, inject_bytes);
        Ok(Self { driver, caps })
    }

    /// Whether one more operation fits on an endpoint that can be used, and where that is.
    pub(crate) fn check_room(&mut self, ep: EpId) -> Result<usize, Error> {
        let depth = self.caps.send_depth;
        let found = self.driver.table.endpoint_of(ep);
        let Some((index, endpoint)) = found.filter(|(_, endpoint)| endpoint.is_usable()) else {
            return Err(posts::unknown_endpoint());
        };
        posts::check_depth(endpoint.ops, depth, &endpoint.peer)?;
        Ok(index)
    }

    fn check_send(&mut self, ep: EpId, buf: &SendBuf, len: usize) -> Result<usize, Error> {
        posts::check_message(buf, len, &self.caps)?;
        self.check_room(ep)
    }
}

impl Domain for LibfabricDomain {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Everything is copied through packets of the provider's own, so there is nothing to do.
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
        let len = buf.len();
        match self.check_send(ep, &buf, len) {
            Ok(index) => Ok(self.driver.send(index, buf, len)),
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
        // One by one costs less than draining where there are few.
        let mut count = 0;
        while count < max
            && let Some(event) = self.driver.events.pop_front()
        {
            events.push(event);
            count += 1;
        }
        count
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.driver.wait(timeout)
    }

    /// Where the provider has no descriptor, it also becomes readable when it is time to look.
    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.driver.sleeper.fd()
    }

    fn arm(&mut self) -> Armed {
        match self.driver.arm() {
            Ok(false) => Armed::Idle(self.driver.time_left()),
            Ok(true) => Armed::Ready,
            Err(error) => {
                // The next `wait` says it; until then there may be something at any time.
                tracing::warn!(%error, "the provider does not tell of completions");
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
        Some(self)
    }
}

impl fmt::Debug for LibfabricDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibfabricDomain").field("caps", &self.caps).finish_non_exhaustive()
    }
}

fn caps_of(driver: &Driver, inject_bytes: usize) -> Caps {
    let options = &driver.options;
    Caps {
        provider: driver.scheme.name,
        device: driver.device(),
        message_bytes_max: options.message_bytes_max,
        inline_bytes_max: inject_bytes.min(options.message_bytes_max),
        segments_max: SEGMENTS_MAX,
        send_depth: options.send_depth,
        recv_depth: options.recv_depth,
        // Everything is copied into packets anyway.
        gather_bytes_min: 0,
        rma: Some(RmaCaps { bytes_max: RMA_BYTES_MAX, rendezvous_bytes_min: RENDEZVOUS_BYTES_MIN }),
        atomics: true,
        multicast: false,
    }
}
