//! Waking a domain that sleeps: one descriptor, written only when somebody waits for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use fabric_core::{Error, ErrorKind, Wake};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

use crate::Bug;

pub(crate) struct Bell {
    fd: OwnedFd,
    armed: AtomicBool,
    woken: AtomicBool,
    bug: Option<Bug>,
}

impl Bell {
    pub(crate) fn new(bug: Option<Bug>) -> Result<Self, Error> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|e| host("no event descriptor: raise the limit of open files", e))?;
        Ok(Self { fd, armed: AtomicBool::new(false), woken: AtomicBool::new(false), bug })
    }

    /// Something happened in the domain.
    pub(crate) fn ring(&self) {
        if self.armed.swap(false, SeqCst) && self.bug != Some(Bug::ArmStaysSilent) {
            self.write();
        }
    }

    /// Makes the descriptor silent and the next ring heard. Says `false` if the waker was called
    /// since it was last asked: then there is no reason to sleep.
    pub(crate) fn arm(&self) -> bool {
        self.drain();
        self.armed.store(true, SeqCst);
        // The waker sets its flag before it looks whether this is armed, so one of the two sees
        // the other.
        let woken = self.woken.swap(false, SeqCst);
        if woken {
            self.armed.store(false, SeqCst);
        }
        !woken
    }

    /// Sleeps until the descriptor is readable or `timeout` is over.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> Result<(), Error> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let slept = match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(host("cannot wait for the event descriptor", e)),
        };
        self.armed.store(false, SeqCst);
        self.woken.store(false, SeqCst);
        slept
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn write(&self) {
        // A full counter refuses, and then it is readable already.
        let _ = write(&self.fd, &1u64.to_ne_bytes());
    }

    fn drain(&self) {
        // An empty counter refuses, and then there is nothing to drain.
        let _ = read(&self.fd, &mut [0u8; 8]);
    }
}

impl Wake for Bell {
    fn wake(&self) {
        if self.bug == Some(Bug::WaitIgnoresWaker) {
            return;
        }
        self.woken.store(true, SeqCst);
        if self.armed.swap(false, SeqCst) {
            self.write();
        }
    }
}

fn host(what: &str, errno: Errno) -> Error {
    Error::new(ErrorKind::Host, what).with_source(std::io::Error::from(errno))
}
