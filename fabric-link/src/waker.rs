//! Waking the thread that waits in a domain, by a descriptor (`eventfd(2)`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fabric_core::Wake;
use rustix::event::{EventfdFlags, eventfd};

/// Remembers a call, so that many calls cost one system call and none is lost between two waits.
pub struct FdWaker {
    called: AtomicBool,
    counter: OwnedFd,
}

impl FdWaker {
    /// One that nobody called yet.
    ///
    /// # Errors
    /// When the host has no descriptor left.
    pub fn new() -> io::Result<Arc<Self>> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { called: AtomicBool::new(false), counter }))
    }

    /// Readable once it was called.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }

    /// Whether it was called since the last time this was asked.
    #[inline]
    pub fn take(&self) -> bool {
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

impl Wake for FdWaker {
    fn wake(&self) {
        if !self.called.swap(true, Ordering::AcqRel)
            && let Err(error) = rustix::io::write(&self.counter, &1u64.to_ne_bytes())
        {
            // Only a full counter can fail here, and a full counter wakes.
            tracing::debug!(%error, "the waker could not write");
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(waker: &FdWaker) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn calls_are_told_once_and_readable_until_then() {
        let waker = FdWaker::new().unwrap();
        assert!(!waker.take() && !is_readable(&waker));
        waker.wake();
        waker.wake();
        assert!(is_readable(&waker));
        assert!(waker.take());
        assert!(!waker.take() && !is_readable(&waker));
        waker.wake();
        assert!(is_readable(&waker) && waker.take());
    }
}
