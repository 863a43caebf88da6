//! The descriptor on which a domain sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What a watched descriptor is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    /// The provider's queues, the waker, the timer: to look is all there is to do.
    pub(crate) const LOOK: Self = Self(u64::MAX);
}

/// Whether a descriptor is watched for what comes in, or also for room to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    In,
    InOut,
}

impl Watch {
    fn flags(self) -> EventFlags {
        match self {
            Self::In => EventFlags::IN,
            Self::InOut => EventFlags::IN | EventFlags::OUT,
        }
    }
}

/// An epoll instance with a timer in it. Readiness is told as long as it lasts, so nothing is lost by
/// not looking.
pub(crate) struct Sleeper {
    epoll: OwnedFd,
    timer: OwnedFd,
    is_timed: bool,
}

impl Sleeper {
    /// # Errors
    /// When the host has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &timer, EventData::new_u64(Token::LOOK.0), EventFlags::IN)?;
        Ok(Self { epoll, timer, is_timed: false })
    }

    /// Watches a descriptor, which leaves by being closed.
    ///
    /// # Errors
    /// When the host has no room for it.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: Token, watch: Watch) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token.0), watch.flags())?)
    }

    /// Watches it for something else.
    ///
    /// # Errors
    /// When it is not watched.
    pub(crate) fn change(&self, fd: BorrowedFd<'_>, token: Token, watch: Watch) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token.0), watch.flags())?)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// What is ready now.
    ///
    /// # Errors
    /// When the host cannot tell.
    pub(crate) fn ready(&self) -> io::Result<Vec<Token>> {
        let mut ready = Vec::with_capacity(64);
        let now = timespec(Duration::ZERO);
        match epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&now)) {
            Ok(_) => Ok(ready.iter().map(|event| Token(event.data.u64())).collect()),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps until something is ready or time is over.
    ///
    /// # Errors
    /// When the host cannot wait.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(timespec);
        let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
        // Finer than epoll_wait, which knows no less than a millisecond on older kernels.
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the descriptor readable after `nap`, or never.
    ///
    /// # Errors
    /// When the host cannot set its timer.
    pub(crate) fn ring_after(&mut self, nap: Option<Duration>) -> io::Result<()> {
        if nap.is_none() && !self.is_timed {
            return Ok(());
        }
        self.is_timed = nap.is_some();
        // Zero would turn it off.
        let it_value = nap.map_or(timespec(Duration::ZERO), |nap| timespec(nap.max(TICK)));
        let new = Itimerspec { it_interval: timespec(Duration::ZERO), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &new)?;
        Ok(())
    }
}

const TICK: Duration = Duration::from_nanos(1);

fn timespec(time: Duration) -> Timespec {
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX / 2);
    Timespec { tv_sec, tv_nsec: i64::from(time.subsec_nanos()) as _ }
}
