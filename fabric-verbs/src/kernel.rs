//! The descriptor on which a domain sleeps: completions, connection events and the waker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// An epoll instance. Readiness is told as long as it lasts, so nothing is lost by not looking.
pub(crate) struct Sleeper(OwnedFd);

impl Sleeper {
    /// Watches `fds`, which must stay open as long as this is used.
    ///
    /// # Errors
    /// When the host has no descriptor left.
    pub(crate) fn new(fds: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (fd, number) in fds.iter().zip(0..) {
            epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN)?;
        }
        Ok(Self(epoll))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sleeps until one of them is ready or time is over, and says whether one is.
    ///
    /// # Errors
    /// When the host cannot wait.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(timespec);
        let mut ready = Vec::with_capacity(4);
        match epoll::wait(&self.0, spare_capacity(&mut ready), timeout.as_ref()) {
            Ok(_) => Ok(!ready.is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Rounded up to milliseconds: older kernels know no finer, and waking before a deadline would spin.
fn timespec(timeout: Duration) -> Timespec {
    let ms = timeout.as_nanos().div_ceil(1_000_000);
    let ms = i64::try_from(ms).unwrap_or(i64::MAX / 2);
    Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
}
