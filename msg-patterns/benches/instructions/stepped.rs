//! TCP whose clock stands still until it is told to go on.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fabric_core::{
    Addr, Armed, Caps, Device, Domain, EpId, Error, Event, Fabric, Listener, ListenerId, OpId,
    Pool, Rejected, Rma, SendBuf, Slot, Waker,
};
use fabric_tcp::{TcpDomain, TcpFabric};

/// Time that passes by calls.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// TCP by such a clock.
pub(crate) struct SteppedFabric {
    pub(crate) tcp: TcpFabric,
    pub(crate) clock: Clock,
    pub(crate) start: Instant,
}

pub(crate) struct SteppedDomain {
    tcp: TcpDomain,
    clock: Clock,
    start: Instant,
}

impl Fabric for SteppedFabric {
    type Domain = SteppedDomain;

    fn schemes(&self) -> &'static [&'static str] {
        Fabric::schemes(&self.tcp)
    }

    fn devices(&self) -> Result<Vec<Device>, Error> {
        Fabric::devices(&self.tcp)
    }

    fn open(&self) -> Result<SteppedDomain, Error> {
        let tcp = Fabric::open(&self.tcp)?;
        Ok(SteppedDomain { tcp, clock: self.clock.clone(), start: self.start })
    }
}

impl Domain for SteppedDomain {
    fn now(&self) -> Instant {
        self.start + self.clock.elapsed()
    }

    fn caps(&self) -> &Caps {
        self.tcp.caps()
    }

    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        self.tcp.register(pool)
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        self.tcp.listen(addr)
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        self.tcp.unlisten(listener)
    }

    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        self.tcp.connect(addr)
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        self.tcp.post_send(ep, buf)
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        self.tcp.post_recv(slot)
    }

    fn flush(&mut self) {
        self.tcp.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        self.tcp.poll(events, max)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.tcp.wait(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.tcp.wait_fd()
    }

    fn arm(&mut self) -> Armed {
        self.tcp.arm()
    }

    fn waker(&self) -> Waker {
        self.tcp.waker()
    }

    fn close(&mut self, ep: EpId) {
        self.tcp.close(ep);
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        self.tcp.rma()
    }
}
