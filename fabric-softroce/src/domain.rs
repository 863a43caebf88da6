//! A verbs domain under another scheme.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use fabric_core::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, Event, GroupId, Listener, ListenerId,
    Multicast, OpId, Pool, Rejected, Rma, SendBuf, Slot, Waker,
};
use fabric_verbs::VerbsDomain;

use crate::Link;
use crate::fabric::{SCHEME, checked};

/// What `fabric_verbs` speaks.
const INNER: &str = "verbs";

/// A domain on one soft-RoCE link. All but its addresses is the verbs provider's.
#[derive(Debug)]
pub struct SoftRoceDomain {
    inner: VerbsDomain,
    caps: Caps,
    link: Link,
}

impl SoftRoceDomain {
    pub(crate) fn new(inner: VerbsDomain, link: Link) -> Self {
        let caps = Caps { provider: SCHEME, ..inner.caps().clone() };
        Self { inner, caps, link }
    }

    /// The link it is on.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

fn inward(addr: &Addr) -> Result<Addr, Error> {
    Ok(checked(addr)?.with_scheme(INNER))
}

/// Peers are named in this provider's scheme.
fn outward(event: &mut Event) {
    if let Event::Connected { peer, .. } | Event::Accepted { peer, .. } = event {
        *peer = peer.clone().with_scheme(SCHEME);
    }
}

impl Domain for SoftRoceDomain {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        self.inner.register(pool)
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        let listener = self.inner.listen(&inward(addr)?)?;
        Ok(Listener { addr: listener.addr.with_scheme(SCHEME), ..listener })
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        self.inner.unlisten(listener)
    }

    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        self.inner.connect(&inward(addr)?)
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        self.inner.post_send(ep, buf)
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        self.inner.post_recv(slot)
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        let before = events.len();
        let count = self.inner.poll(events, max);
        events[before..].iter_mut().for_each(outward);
        count
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.inner.wait(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.inner.wait_fd()
    }

    fn arm(&mut self) -> Armed {
        self.inner.arm()
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn close(&mut self, ep: EpId) {
        self.inner.close(ep);
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        self.inner.rma()
    }

    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        self.inner.atomics()
    }

    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        self.inner.multicast().is_some().then_some(self as &mut dyn Multicast)
    }
}

impl Multicast for SoftRoceDomain {
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error> {
        let group = inward(group)?;
        self.groups()?.join(&group)
    }

    fn leave(&mut self, group: GroupId) -> Result<(), Error> {
        self.groups()?.leave(group)
    }

    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        match self.inner.multicast() {
            Some(groups) => groups.post_multicast(group, buf),
            None => Err(Rejected::new(buf, no_groups())),
        }
    }

    fn dropped(&mut self, group: GroupId) -> Result<u64, Error> {
        self.groups()?.dropped(group)
    }
}

impl SoftRoceDomain {
    fn groups(&mut self) -> Result<&mut dyn Multicast, Error> {
        self.inner.multicast().ok_or_else(no_groups)
    }
}

fn no_groups() -> Error {
    Error::misuse("this device offers no multicast: see Caps::multicast")
}
