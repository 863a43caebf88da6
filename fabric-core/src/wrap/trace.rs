//! A domain that tells what passes through it.

/// One `tracing` event of a call in the domain that `$self` wraps.
macro_rules! tell {
    ($level:ident, $self:ident, $name:literal, $($fields:tt)*) => {
        tracing::$level!(
            name: $name, target: "fabric::call", domain = %$self.label, $($fields)*
        )
    };
}

mod events;
mod remote;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use fabric_mem::{Pool, Slot};

use crate::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, Event, Listener, ListenerId, Multicast, OpId,
    Rejected, Rma, SendBuf, Waker,
};

/// Emits a `tracing` event for each call and each fabric event, and changes nothing.
///
/// Names and fields are stable. Calls have the target `fabric::call` and the method's name; fabric
/// events have the target `fabric::event` and the variant's name in lower case. All have a field
/// `domain` (the device), and where it applies `ep`, `op`, `listener`, `addr`, `bytes`, `segments`,
/// `imm`, `kind` (of an error) and `error`. What happens once in a connection is `DEBUG`, what
/// happens for each message `TRACE`; `poll`, `wait` and `flush` are told only by their events.
#[derive(Debug)]
pub struct Trace<D> {
    inner: D,
    label: String,
}

impl<D: Domain> Trace<D> {
    /// Tells what passes through `inner`.
    pub fn new(inner: D) -> Self {
        let label = inner.caps().device.clone();
        Self { inner, label }
    }

    /// The domain inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The domain inside, to call past the trace.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The domain alone again.
    pub fn into_inner(self) -> D {
        self.inner
    }
}

impl<D: Domain> Domain for Trace<D> {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        let done = self.inner.register(pool);
        let (kind, bytes) = (kind_of(&done), pool.bytes());
        tell!(debug, self, "register", bytes, kind);
        done
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        let done = self.inner.listen(addr);
        let (kind, listener) = (kind_of(&done), done.as_ref().ok().map(|listener| listener.id.0));
        tell!(debug, self, "listen", %addr, listener, kind);
        done
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        let done = self.inner.unlisten(listener);
        let (kind, listener) = (kind_of(&done), listener.0);
        tell!(debug, self, "unlisten", listener, kind);
        done
    }

    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        let done = self.inner.connect(addr);
        let (kind, ep) = (kind_of(&done), done.as_ref().ok().map(|ep| ep.0));
        tell!(debug, self, "connect", %addr, ep, kind);
        done
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        let (bytes, segments) = (buf.len(), buf.segments().len());
        let done = self.inner.post_send(ep, buf);
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_send", ep = ep.0, op, bytes, segments, kind);
        done
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        let bytes = slot.capacity();
        let done = self.inner.post_recv(slot);
        let (kind, op) = outcome(&done);
        tell!(trace, self, "post_recv", op, bytes, kind);
        done
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        let before = events.len();
        let count = self.inner.poll(events, max);
        events[before..].iter().for_each(|event| events::tell(&self.label, event));
        count
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let done = self.inner.wait(timeout);
        if let Err(error) = &done {
            tell!(warn, self, "wait", %error);
        }
        done
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
        tell!(debug, self, "close", ep = ep.0);
        self.inner.close(ep);
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        self.inner.rma()?;
        Some(self)
    }

    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        self.inner.atomics()?;
        Some(self)
    }

    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        self.inner.multicast()?;
        Some(self)
    }
}

/// The kind of a failure, for a field that is absent in a success.
fn kind_of<T>(done: &Result<T, Error>) -> Option<String> {
    done.as_ref().err().map(|error| format!("{:?}", error.kind()))
}

/// The same for a post, and the operation of a success.
fn outcome<B>(done: &Result<OpId, Rejected<B>>) -> (Option<String>, Option<u64>) {
    match done {
        Ok(op) => (None, Some(op.0)),
        Err(rejected) => (Some(format!("{:?}", rejected.error.kind())), None),
    }
}
