//! Waking the thread that waits in a domain.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fabric_core::Wake;
use rustix::event::{EventfdFlags, eventfd};

/// Remembers a call, so that many calls cost one system call and none is lost between two waits.
pub(crate) struct LibfabricWaker {
    called: AtomicBool,
    counter: OwnedFd,
}

impl LibfabricWaker {
    /// # Errors
    /// When the host has no descriptor left.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { called: AtomicBool::new(false), counter }))
    }

    /// Readable once it was called.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }

    /// Whether it was called since the last time this was asked.
    pub(crate) fn take(&self) -> bool {
        // A plain load first: this is asked before each wait and nearly always says no.
        if !self.called.load(Ordering::Acquire) {
            return false;
        }
        // The counter before the flag: a call in between then writes once more.
        let mut count = [0; 8];
        if let Err(error) = rustix::io::read(&self.counter, &mut count) {
            // The caller may be between its flag and its write.
            tracing::trace!(%error, "the waker's counter is empty");
        }
        self.called.swap(false, Ordering::AcqRel)
    }
}

impl Wake for LibfabricWaker {
    fn wake(&self) {
        if !self.called.swap(true, Ordering::AcqRel)
            && let Err(error) = rustix::io::write(&self.counter, &1u64.to_ne_bytes())
        {
            // Only a full counter can fail here, and a full counter wakes.
            tracing::debug!(%error, "the waker could not write");
        }
    }
}
