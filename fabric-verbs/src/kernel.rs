//! The descriptor on which a domain sleeps: completions, connection events and the waker.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// Which of a domain's descriptors are ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    /// The completion queue was armed and something came.
    pub(crate) completions: bool,
    /// There are connection events.
    pub(crate) connections: bool,
    /// The waker was called.
    pub(crate) woken: bool,
}

impl Ready {
    /// Nobody could be asked, so each has to be looked at.
    pub(crate) const UNKNOWN: Self = Self { completions: true, connections: true, woken: true };

    /// Whether one of them is.
    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }
}

/// An epoll instance. Readiness is told as long as it lasts, so nothing is lost by not looking.
pub(crate) struct Sleeper(OwnedFd);

impl Sleeper {
    /// Watches the descriptors of completions, of connections and of the waker, which must stay open
    /// as long as this is used.
    ///
    /// # Errors
    /// When the host has no descriptor left.
    pub(crate) fn new(fds: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (fd, number) in fds.iter().zip(0..) {
            epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN)?;
        }
        Ok(Self(epoll))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sleeps until one of them is ready or time is over, and says which are.
    ///
    /// # Errors
    /// When the host cannot wait.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> io::Result<Ready> {
        let timeout = timeout.map(timespec);
        let mut room = [const { MaybeUninit::uninit() }; 3];
        match epoll::wait(&self.0, &mut room, timeout.as_ref()) {
            Ok((events, _)) => Ok(ready(events)),
            Err(rustix::io::Errno::INTR) => Ok(Ready::default()),
            Err(error) => Err(error.into()),
        }
    }
}

fn ready(events: &[epoll::Event]) -> Ready {
    let has = |number| events.iter().any(|event| event.data.u64() == number);
    Ready { completions: has(0), connections: has(1), woken: has(2) }
}

/// Rounded up to milliseconds: older kernels know no finer, and waking before a deadline would spin.
fn timespec(timeout: Duration) -> Timespec {
    let ms = timeout.as_nanos().div_ceil(1_000_000);
    let ms = i64::try_from(ms).unwrap_or(i64::MAX / 2);
    Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn it_is_told_which_descriptor_is_ready() {
        let fds: [OwnedFd; 3] = std::array::from_fn(|_| eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let sleeper = Sleeper::new(fds.each_ref().map(AsFd::as_fd)).unwrap();
        let look = || sleeper.sleep(Some(Duration::ZERO)).unwrap();
        assert!(!look().any());
        rustix::io::write(&fds[1], &1u64.to_ne_bytes()).unwrap();
        assert_eq!(look(), Ready { connections: true, ..Ready::default() });
        rustix::io::write(&fds[0], &1u64.to_ne_bytes()).unwrap();
        assert_eq!(look(), Ready { completions: true, connections: true, woken: false });
    }
}
