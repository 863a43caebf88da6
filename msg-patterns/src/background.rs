//! The context's background thread: drives sockets that no call drives.
//!
//! It never costs a call a system call on its fast path. While calls drive a socket it only looks
//! now and then whether they still do; once they stopped for about a millisecond it takes over and
//! sleeps on the fabric's descriptor. A burst whose tail was put off is flushed within about 50 µs.
//!
//! It touches only sockets that something came up at: those that put themselves on its list, whose
//! time has come, or whose descriptor is ready. A thousand idle sockets cost it nothing.

mod care;
mod due;
#[cfg(all(test, feature = "tcp"))]
mod tests;
mod worker;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use mio::Waker;
use parking_lot::Mutex;

use crate::Error;

/// Calls that stop for so long are relieved.
const IDLE_MIN: Duration = Duration::from_millis(1);

/// The thread looks now and then whether calls still drive the socket, or drives it itself.
const ATTENDED: u8 = 0;
/// The thread does not look after the socket until the call that sleeps in it leaves.
const BLOCKED: u8 = 1;
/// The thread relies on the socket's descriptors.
const WATCHED: u8 = 2;

/// Names a socket to the background thread; never used twice.
pub(crate) type Key = u64;

/// What a socket and the background thread tell each other without a lock.
#[derive(Debug)]
pub(crate) struct Flags {
    key: Key,
    activity: AtomicU64,
    flushes: AtomicU64,
    deferred: AtomicBool,
    /// The thread looks at `deferred` at each tick.
    ticked: AtomicBool,
    /// The socket stands on the thread's list.
    listed: AtomicBool,
    /// A call sleeps in the fabric.
    pub(crate) blocked: AtomicBool,
    /// How the thread learns that it must look after the socket.
    reliance: AtomicU8,
    /// Tasks wait for the socket, and no call drives it for them.
    awaited: AtomicBool,
    pub(crate) terminated: AtomicBool,
    pub(crate) closed: AtomicBool,
    /// Wakes the task that drives the socket, if it is not the thread that does.
    #[cfg(feature = "tokio")]
    bell: OnceLock<Arc<crate::runtime::Bell>>,
}

impl Flags {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            key,
            activity: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            deferred: AtomicBool::new(false),
            ticked: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            reliance: AtomicU8::new(ATTENDED),
            awaited: AtomicBool::new(false),
            terminated: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            #[cfg(feature = "tokio")]
            bell: OnceLock::new(),
        }
    }

    /// A call did something, `count` times. Only called with the socket's lock held.
    #[inline]
    pub(crate) fn count_activity(&self, count: u32) {
        let before = self.activity.load(Ordering::Relaxed);
        self.activity.store(before.wrapping_add(u64::from(count)), Ordering::Relaxed);
    }

    /// Everything was flushed. Only called with the socket's lock held.
    pub(crate) fn count_flush(&self) {
        let count = self.flushes.load(Ordering::Relaxed);
        self.flushes.store(count.wrapping_add(1), Ordering::Relaxed);
        if self.deferred.load(Ordering::Relaxed) {
            self.deferred.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a tail is put off.
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::Relaxed)
    }

    /// A tail was put off.
    pub(crate) fn defer(&self, background: &Background) {
        if !self.deferred.load(Ordering::Relaxed) {
            self.deferred.store(true, Ordering::SeqCst);
            if !self.ticked.load(Ordering::SeqCst) {
                background.nudge_now(self);
            }
        }
    }

    /// Whether tasks wait for the socket. Only set with the socket's lock held.
    pub(crate) fn set_awaited(&self, awaited: bool) {
        self.awaited.store(awaited, Ordering::SeqCst);
    }

    fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::SeqCst)
    }

    /// Tasks wait for the socket: it is to be driven at once, and not only when calls have stopped
    /// for a while. Whoever relies on its descriptors does already.
    pub(crate) fn drive_for_tasks(&self, background: &Background) {
        self.set_awaited(true);
        if !self.is_watched() {
            background.nudge_now(self);
        }
    }

    /// Whether nobody looks after the socket until something happens at it.
    #[inline]
    pub(crate) fn is_left_alone(&self) -> bool {
        self.reliance.load(Ordering::Relaxed) != ATTENDED
    }

    /// Whether the background thread relies on the socket's descriptors.
    pub(crate) fn is_watched(&self) -> bool {
        self.reliance.load(Ordering::SeqCst) == WATCHED
    }

    /// Wakes the task that drives the socket; false if none does.
    fn ring(&self) -> bool {
        #[cfg(feature = "tokio")]
        return self.bell.get().is_some_and(|bell| bell.ring());
        #[cfg(not(feature = "tokio"))]
        false
    }

    /// Whether nobody drives the socket but a task of a runtime with one thread.
    pub(crate) fn is_driven_by_one_thread(&self) -> bool {
        #[cfg(feature = "tokio")]
        return self.bell.get().is_some_and(|bell| bell.has_one_thread());
        #[cfg(not(feature = "tokio"))]
        false
    }

    /// Whether a task of the runtime that this is called in drives the socket.
    pub(crate) fn is_driven_around_here(&self) -> bool {
        #[cfg(feature = "tokio")]
        return self.bell.get().is_some_and(|bell| bell.is_around_here());
        #[cfg(not(feature = "tokio"))]
        false
    }

    fn is_unattended(&self) -> bool {
        self.reliance.load(Ordering::SeqCst) == BLOCKED
    }

    /// Makes the background thread look after the socket again.
    #[cold]
    pub(crate) fn attend(&self, background: &Background) {
        if self.reliance.swap(ATTENDED, Ordering::SeqCst) != ATTENDED {
            background.nudge(self);
        }
    }

    /// As `attend`, of a call that leaves without having looked for what came in.
    #[inline]
    pub(crate) fn rouse(&self, background: &Background) {
        if self.reliance.load(Ordering::Relaxed) == BLOCKED {
            self.attend(background);
        }
    }
}

#[cfg(feature = "tokio")]
impl Flags {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// From now on a task drives the socket, unless there has been one.
    pub(crate) fn set_bell(
        &self,
        bell: Arc<crate::runtime::Bell>,
    ) -> Result<(), Arc<crate::runtime::Bell>> {
        self.bell.set(bell)
    }

    pub(crate) fn rely_on_descriptors(&self) {
        self.reliance.store(WATCHED, Ordering::SeqCst);
    }

    pub(crate) fn attend_again(&self) {
        self.reliance.store(ATTENDED, Ordering::SeqCst);
    }

    /// Leaves the socket to a call that sleeps in it, which tells when it leaves. False if there is
    /// none.
    pub(crate) fn leave_to_call(&self) -> bool {
        let activity = self.activity.load(Ordering::Relaxed);
        self.reliance.store(BLOCKED, Ordering::SeqCst);
        // It may have left just before it could see that.
        let sleeps = self.blocked.load(Ordering::SeqCst)
            && self.activity.load(Ordering::Relaxed) == activity;
        if !sleeps {
            self.attend_again();
        }
        sleeps
    }
}

/// When a socket needs its next turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Next {
    /// At the latest; `None`: when its descriptors say so.
    pub(crate) within: Option<Duration>,
    /// How many descriptors it has.
    pub(crate) fds: usize,
}

/// A socket as the background thread sees it.
pub(crate) trait Driven: Send + Sync {
    fn flags(&self) -> &Flags;
    /// Flushes if no call holds the socket.
    fn flush_tail(&self);
    /// Takes turns if no call holds the socket, until nothing happens any more or `turns_max` were
    /// taken.
    fn turn(&self, turns_max: usize) -> Option<Next>;
    /// The descriptors to sleep on, if no call holds the socket and the host has some to spare.
    fn fds(&self) -> Option<Vec<OwnedFd>>;
    /// Makes all calls end with `Terminated`.
    fn terminate(&self);
}

/// What the background thread has not seen yet.
#[derive(Default)]
struct News {
    added: Vec<(Key, Weak<dyn Driven>)>,
    /// Sockets that something came up at, each once.
    listed: Vec<Key>,
}

impl News {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.listed.is_empty()
    }
}

/// The handle to the background thread.
pub(crate) struct Background {
    /// There once the thread is.
    waker: OnceLock<Waker>,
    starting: Mutex<()>,
    asleep: AtomicBool,
    /// Until when it sleeps, in microseconds since `start`.
    asleep_until_us: AtomicU64,
    start: Instant,
    stopping: AtomicBool,
    news: Mutex<News>,
    next_key: AtomicU64,
    effort: Effort,
}

/// What the thread did, to be judged by tests.
#[derive(Debug, Default)]
struct Effort {
    /// Times that it looked at a socket.
    looks: AtomicU64,
    /// Times that it woke up.
    rounds: AtomicU64,
    /// Sockets that it knows.
    held: AtomicU64,
}

impl Background {
    /// The thread starts when it has a socket to look after.
    pub(crate) fn new() -> Self {
        Self {
            waker: OnceLock::new(),
            starting: Mutex::new(()),
            asleep: AtomicBool::new(false),
            asleep_until_us: AtomicU64::new(0),
            start: Instant::now(),
            stopping: AtomicBool::new(false),
            news: Mutex::new(News::default()),
            next_key: AtomicU64::new(0),
            effort: Effort::default(),
        }
    }

    pub(crate) fn new_key(&self) -> Key {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    /// Looks after a socket from now on.
    ///
    /// # Errors
    /// `Limit` when the host has no thread or descriptor to spare.
    pub(crate) fn add(self: &Arc<Self>, socket: &Arc<dyn Driven>) -> Result<(), Error> {
        self.start_once()?;
        self.news.lock().added.push((socket.flags().key, Arc::downgrade(socket)));
        self.wake_soon();
        Ok(())
    }

    fn start_once(self: &Arc<Self>) -> Result<(), Error> {
        let _starting = self.starting.lock();
        if self.waker.get().is_none() {
            worker::start(self)?;
        }
        Ok(())
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Makes the thread look at a socket within some milliseconds.
    pub(crate) fn nudge(&self, flags: &Flags) {
        if !flags.ring() && self.list(flags) {
            self.wake_soon();
        }
    }

    /// Makes the thread look at a socket at once.
    fn nudge_now(&self, flags: &Flags) {
        if !flags.ring() {
            self.list(flags);
            self.wake();
        }
    }

    /// False if the thread has yet to look at the socket anyway.
    fn list(&self, flags: &Flags) -> bool {
        let fresh = !flags.listed.swap(true, Ordering::SeqCst);
        if fresh {
            self.news.lock().listed.push(flags.key);
        }
        fresh
    }

    /// A thread that is about to wake up by itself need not be woken.
    fn wake_soon(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            let soon = self.start.elapsed() + IDLE_MIN;
            if u128::from(self.asleep_until_us.load(Ordering::SeqCst)) > soon.as_micros() {
                self.wake();
            }
        }
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // Cannot fail but for a full counter, and then a wake-up is already due.
            self.waker.get().map(Waker::wake).transpose().ok();
        }
    }
}
