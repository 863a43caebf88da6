//! Waking the thread that waits in a domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fabric_core::Wake;

/// Remembers a call, so that many calls cost one system call and none is lost between two waits.
pub(crate) struct TcpWaker {
    called: AtomicBool,
    mio: mio::Waker,
}

impl TcpWaker {
    pub(crate) fn new(mio: mio::Waker) -> Arc<Self> {
        Arc::new(Self { called: AtomicBool::new(false), mio })
    }

    /// Whether it was called since the last time this was asked.
    pub(crate) fn take(&self) -> bool {
        // A plain load first: this is asked before each wait and nearly always says no.
        self.called.load(Ordering::Acquire) && self.called.swap(false, Ordering::AcqRel)
    }
}

impl Wake for TcpWaker {
    fn wake(&self) {
        if !self.called.swap(true, Ordering::AcqRel)
            && let Err(error) = self.mio.wake()
        {
            // Only a full counter can fail here, and a full counter wakes.
            tracing::debug!(%error, "the waker could not write");
        }
    }
}
