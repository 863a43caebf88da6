//! Sockets in foreign event loops, and several sockets at once for threads.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::driver::{SignalSource, Tells};
use crate::sockets::Sealed;
use crate::{Error, ErrorKind};

/// A descriptor that is readable exactly as long as something may be done at a socket without
/// waiting; for epoll, mio or any other loop. Made by [`Receives::readable`] and
/// [`Sends::writable`].
///
/// The descriptor's meaning is level-triggered: it does not matter when it is looked at or what was
/// called before. A loop that waits for levels calls `try_recv` (or `try_send`) once each time; one
/// that waits for edges, as mio does, calls it until it says `WouldBlock`. Never read from it: the
/// socket does that. Once the socket is closed it stays readable, and the call says `Terminated`.
///
/// Whoever drives the socket when no call does, mostly the context's thread, keeps it up to date.
/// Dropping it ends that.
pub struct Readiness {
    fd: Arc<OwnedFd>,
    key: usize,
    socket: Weak<dyn SignalSource>,
}

impl Readiness {
    pub(crate) fn new((fd, key): (Arc<OwnedFd>, usize), socket: Weak<dyn SignalSource>) -> Self {
        Self { fd, key, socket }
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Readiness {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.upgrade() {
            socket.remove_signal(self.key);
        }
    }
}

impl std::fmt::Debug for Readiness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readiness").field("fd", &self.fd).finish_non_exhaustive()
    }
}

/// A socket that receives. Implemented by sockets of this crate and by no other type.
pub trait Receives: Sealed {
    /// A descriptor that is readable as long as `try_recv` finds something. With [`Sub`](crate::Sub)
    /// that may be a message that was unsubscribed meanwhile, and with [`Req`](crate::Req) the reply
    /// for another handle.
    ///
    /// # Errors
    /// `Limit` when the host has no descriptor to spare.
    fn readable(&self) -> Result<Readiness, Error>;
}

/// A socket that may have to wait for room. Implemented by sockets of this crate and by no other
/// type.
pub trait Sends: Sealed {
    /// A descriptor that is readable (sic) as long as a small message can be sent. With
    /// [`Req`](crate::Req) that is a request, whether or not the last one was answered; with
    /// [`Router`](crate::Router) a message to some peer, and without `mandatory` to any: it never waits.
    ///
    /// # Errors
    /// `Limit` when the host has no descriptor to spare.
    fn writable(&self) -> Result<Readiness, Error>;
}

macro_rules! ready {
    ($tells:ident, $trait:ident, $call:ident: $($socket:ident)*) => {$(
        impl $trait for crate::$socket {
            fn $call(&self) -> Result<Readiness, Error> {
                self.handle.readiness(Tells::$tells)
            }
        }
    )*};
}
ready!(Incoming, Receives, readable: Dealer Pair Pull Rep Req Router Sub XPub XSub);
ready!(Room, Sends, writable: Dealer Pair Push Req Router);

/// Names what a [`Poller`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PollKey(usize);

/// Waits for several sockets at once, on a thread.
///
/// ```
/// use std::time::Duration;
/// use msg_patterns::{Context, Poller, Pull, Push};
///
/// let context = Context::new();
/// let (first, second) = (Pull::new(&context)?, Pull::new(&context)?);
/// let mut poller = Poller::new();
/// let keys = [poller.add_readable(&first)?, poller.add_readable(&second)?];
/// assert!(poller.wait(Some(Duration::ZERO))?.is_empty());
///
/// let push = Push::new(&context)?;
/// push.connect(&second.bind("tcp://127.0.0.1:0")?.to_string())?;
/// push.send("hello")?;
/// assert_eq!(poller.wait(None)?, [keys[1]]);
/// assert_eq!(second.try_recv()?.first(), "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Poller {
    entries: Vec<(PollKey, Readiness)>,
    next: usize,
}

impl Poller {
    /// One that waits for nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also waits until something can be received at `socket`.
    ///
    /// # Errors
    /// As [`Receives::readable`].
    pub fn add_readable(&mut self, socket: &impl Receives) -> Result<PollKey, Error> {
        Ok(self.add(socket.readable()?))
    }

    /// Also waits until something can be sent at `socket`.
    ///
    /// # Errors
    /// As [`Sends::writable`].
    pub fn add_writable(&mut self, socket: &impl Sends) -> Result<PollKey, Error> {
        Ok(self.add(socket.writable()?))
    }

    fn add(&mut self, readiness: Readiness) -> PollKey {
        let key = PollKey(self.next);
        self.next += 1;
        self.entries.push((key, readiness));
        key
    }

    /// Does not wait for that any more.
    pub fn remove(&mut self, key: PollKey) {
        self.entries.retain(|(own, _)| *own != key);
    }

    /// Waits until something that was added can be done, for at most `timeout` (`None`: without
    /// limit); says what, and nothing when the time is over. What holds is said again and again, until
    /// it is done. A closed socket counts as ready.
    ///
    /// # Errors
    /// `Limit` when the host cannot wait for so many descriptors.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Vec<PollKey>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let entries = self.entries.iter();
        let mut fds: Vec<_> =
            entries.map(|(_, readiness)| PollFd::new(&*readiness.fd, PollFlags::IN)).collect();
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut fds, left.as_ref()) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::new(ErrorKind::Limit, error.to_string())),
            }
        }
        let ready = self.entries.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((key, _), _)| *key).collect())
    }
}
