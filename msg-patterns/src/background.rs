//! The context's background thread: drives sockets that no call drives.
//!
//! It never costs a call a system call on its fast path. While calls drive a socket it only looks
//! now and then whether they still do; once they stopped for about a millisecond it takes over and
//! sleeps on the fabric's descriptor. A burst whose tail was put off is flushed within about 50 µs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use parking_lot::Mutex;

use crate::driver::SENDS_PER_LOOK;
use crate::{Error, ErrorKind};

/// Calls that stop for so long are relieved.
const IDLE_MIN: Duration = Duration::from_millis(1);
/// While calls go on, how seldom at most to look whether they stopped.
const LOOK_MAX: Duration = Duration::from_millis(8);
/// A call that sleeps for so long needs no looking after.
const BLOCKED_MIN: Duration = Duration::from_millis(100);
/// How long the tail of a burst may wait.
const TAIL_MAX: Duration = Duration::from_micros(50);
/// Ticks without a put-off tail before the thread sleeps again.
const QUIET_TICKS: u32 = 20;

const WAKE: Token = Token(usize::MAX);

/// What a socket and the background thread tell each other without a lock.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    activity: AtomicU64,
    flushes: AtomicU64,
    deferred: AtomicBool,
    /// A call sleeps in the fabric.
    pub(crate) blocked: AtomicBool,
    /// The background thread does not look after the socket until it is roused.
    unattended: AtomicBool,
    pub(crate) terminated: AtomicBool,
    pub(crate) closed: AtomicBool,
}

impl Flags {
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
            background.nudge();
        }
    }

    /// A call leaves: if nobody looks after the socket, the background thread must.
    #[inline]
    pub(crate) fn rouse(&self, background: &Background) {
        if self.unattended.load(Ordering::Relaxed) {
            self.attend(background);
        }
    }

    #[cold]
    fn attend(&self, background: &Background) {
        if self.unattended.swap(false, Ordering::SeqCst) {
            background.nudge();
        }
    }
}

/// When a socket needs its next turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Next {
    /// At the latest; `None`: when its descriptor says so.
    pub(crate) within: Option<Duration>,
}

impl Next {
    pub(crate) fn again() -> Self {
        Self { within: Some(Duration::ZERO) }
    }
}

/// A socket as the background thread sees it.
pub(crate) trait Driven: Send + Sync {
    fn flags(&self) -> &Flags;
    /// Flushes if no call holds the socket.
    fn flush_tail(&self);
    /// Takes turns if no call holds the socket, until nothing happens any more.
    fn turn(&self) -> Option<Next>;
    /// The descriptors to sleep on, if no call holds the socket and the host has some to spare.
    fn fds(&self) -> Option<Vec<OwnedFd>>;
    /// Makes all calls end with `Terminated`.
    fn terminate(&self);
}

/// The handle to the background thread.
pub(crate) struct Background {
    waker: Waker,
    asleep: AtomicBool,
    /// Something came up since the thread last looked.
    nudged: AtomicBool,
    stopping: AtomicBool,
    added: Mutex<Vec<Weak<dyn Driven>>>,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start() -> Result<Arc<Self>, Error> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Limit, format!("the background thread cannot start: {error}"))
        };
        let poll = Poll::new().map_err(failed)?;
        let background = Arc::new(Self {
            waker: Waker::new(poll.registry(), WAKE).map_err(failed)?,
            asleep: AtomicBool::new(false),
            nudged: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            added: Mutex::new(Vec::new()),
        });
        let worker = Worker {
            background: background.clone(),
            poll,
            sockets: slab::Slab::new(),
            quiet_ticks: QUIET_TICKS,
        };
        let builder = std::thread::Builder::new().name("msg-patterns".into());
        builder.spawn(move || worker.run()).map_err(failed)?;
        Ok(background)
    }

    pub(crate) fn add(&self, socket: Weak<dyn Driven>) {
        self.added.lock().push(socket);
        self.nudge();
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.nudge();
    }

    /// Makes the thread look at all sockets soon.
    pub(crate) fn nudge(&self) {
        self.nudged.store(true, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // Cannot fail but for a full counter, and then a wake-up is already due.
            drop(self.waker.wake());
        }
    }
}

/// How a socket is looked after.
#[derive(Debug, Clone, Copy)]
enum Care {
    /// Calls drive it; look again at `at`.
    Calls { at: Instant, every: Duration },
    /// A call sleeps in it and rouses this thread when it leaves.
    Unattended,
    /// This thread drives it: at the latest at `at`, and when a descriptor says so.
    Watched { at: Option<Instant>, ready: bool },
}

struct Socket {
    driven: Weak<dyn Driven>,
    care: Care,
    activity: u64,
    active_at: Instant,
    /// Flushes and activity when a tail was last seen.
    tail_seen: Option<(u64, u64)>,
    fds: Vec<OwnedFd>,
}

struct Worker {
    background: Arc<Background>,
    poll: Poll,
    sockets: slab::Slab<Socket>,
    quiet_ticks: u32,
}

impl Worker {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        while !self.background.stopping.load(Ordering::SeqCst) {
            self.take_added();
            let ticking = self.flush_tails();
            let next = self.look_after_all();
            self.sleep(&mut events, ticking, next);
        }
    }

    fn take_added(&mut self) {
        let now = Instant::now();
        for driven in std::mem::take(&mut *self.background.added.lock()) {
            let care = Care::Calls { at: now + IDLE_MIN, every: IDLE_MIN };
            self.sockets.insert(Socket {
                driven,
                care,
                activity: 0,
                active_at: now,
                tail_seen: None,
                fds: Vec::new(),
            });
        }
    }

    /// Flushes tails that nobody flushed since the last tick; says whether to tick on.
    fn flush_tails(&mut self) -> bool {
        let mut deferred = false;
        for (_, socket) in &mut self.sockets {
            deferred |= socket.flush_tail();
        }
        self.quiet_ticks = if deferred { 0 } else { self.quiet_ticks.saturating_add(1) };
        self.quiet_ticks < QUIET_TICKS
    }

    /// Looks after every socket; gives the time of the next look.
    fn look_after_all(&mut self) -> Option<Instant> {
        let registry = self.poll.registry();
        let mut next: Option<Instant> = None;
        self.sockets.retain(|key, socket| {
            let Some(driven) = socket.driven.upgrade() else {
                socket.unwatch(registry);
                return false;
            };
            if driven.flags().closed.load(Ordering::SeqCst) {
                socket.unwatch(registry);
                return false;
            }
            let at = socket.look_after(&*driven, key, registry);
            next = [next, at].into_iter().flatten().min();
            true
        });
        next
    }

    fn sleep(&mut self, events: &mut Events, ticking: bool, next: Option<Instant>) {
        if ticking {
            std::thread::sleep(TAIL_MAX);
            return self.poll(events, Some(Duration::ZERO));
        }
        self.background.asleep.store(true, Ordering::SeqCst);
        let timeout = if self.has_news() {
            Some(Duration::ZERO)
        } else {
            next.map(|at| at.saturating_duration_since(Instant::now()))
        };
        self.poll(events, timeout);
        self.background.asleep.store(false, Ordering::SeqCst);
    }

    /// Whether something came up between looking and falling asleep.
    fn has_news(&self) -> bool {
        self.background.nudged.swap(false, Ordering::SeqCst)
            || self.sockets.iter().any(|(_, socket)| socket.driven.strong_count() == 0)
    }

    fn poll(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if let Err(error) = self.poll.poll(events, timeout) {
            if error.kind() != std::io::ErrorKind::Interrupted {
                tracing::error!(%error, "the background thread cannot sleep");
                std::thread::sleep(IDLE_MIN);
            }
            return;
        }
        for event in events.iter() {
            let socket = self.sockets.get_mut(event.token().0);
            if let Some(Socket { care: Care::Watched { ready, .. }, .. }) = socket {
                *ready = true;
            }
        }
    }
}

impl Socket {
    fn flush_tail(&mut self) -> bool {
        let Some(driven) = self.driven.upgrade() else { return false };
        let flags = driven.flags();
        if !flags.deferred.load(Ordering::SeqCst) {
            self.tail_seen = None;
            return false;
        }
        let flushes = flags.flushes.load(Ordering::Relaxed);
        let activity = flags.activity.load(Ordering::Relaxed);
        let is_left = |(then, before): (u64, u64)| {
            // A sender in full swing looks at the clock itself.
            then == flushes && activity.wrapping_sub(before) < u64::from(SENDS_PER_LOOK)
        };
        if self.tail_seen.is_some_and(is_left) {
            driven.flush_tail();
        }
        self.tail_seen = Some((flushes, activity));
        true
    }

    /// Does what is due; gives the time of the next look.
    fn look_after(
        &mut self,
        driven: &dyn Driven,
        key: usize,
        registry: &mio::Registry,
    ) -> Option<Instant> {
        let now = Instant::now();
        let flags = driven.flags();
        let active = self.note_activity(flags, now);
        match self.care {
            Care::Calls { at, .. } if now < at => Some(at),
            Care::Calls { every, .. } if active => self.let_calls(now, every * 2),
            Care::Calls { every, .. } if flags.blocked.load(Ordering::Relaxed) => {
                self.while_blocked(flags, now, every)
            }
            Care::Unattended if flags.unattended.load(Ordering::SeqCst) => None,
            Care::Unattended => self.let_calls(now, IDLE_MIN),
            Care::Watched { .. } if active => {
                self.unwatch(registry);
                self.let_calls(now, IDLE_MIN)
            }
            Care::Watched { at, ready } if !ready && at.is_none_or(|at| now < at) => at,
            Care::Calls { .. } | Care::Watched { .. } => {
                self.unwatch(registry);
                self.drive(driven, key, registry, now)
            }
        }
    }

    fn note_activity(&mut self, flags: &Flags, now: Instant) -> bool {
        let activity = flags.activity.load(Ordering::Relaxed);
        let active = activity != self.activity;
        if active {
            self.activity = activity;
            self.active_at = now;
        }
        active
    }

    fn let_calls(&mut self, now: Instant, every: Duration) -> Option<Instant> {
        let every = every.min(LOOK_MAX);
        let at = now + every;
        self.care = Care::Calls { at, every };
        Some(at)
    }

    fn while_blocked(&mut self, flags: &Flags, now: Instant, every: Duration) -> Option<Instant> {
        if now.duration_since(self.active_at) < BLOCKED_MIN {
            return self.let_calls(now, every * 2);
        }
        flags.unattended.store(true, Ordering::SeqCst);
        self.care = Care::Unattended;
        // It may have left just before it could see the flag.
        let left = !flags.blocked.load(Ordering::SeqCst)
            || flags.activity.load(Ordering::Relaxed) != self.activity;
        if left {
            flags.unattended.store(false, Ordering::SeqCst);
            return self.let_calls(now, IDLE_MIN);
        }
        None
    }

    fn drive(
        &mut self,
        driven: &dyn Driven,
        key: usize,
        registry: &mio::Registry,
        now: Instant,
    ) -> Option<Instant> {
        let turned = driven.turn();
        let (Some(Next { within }), Some(fds)) = (turned, driven.fds()) else {
            return self.let_calls(now, IDLE_MIN);
        };
        self.watch(fds, key, registry);
        let at = within.map(|within| Instant::now() + within);
        self.care = Care::Watched { at, ready: false };
        at
    }

    fn watch(&mut self, fds: Vec<OwnedFd>, key: usize, registry: &mio::Registry) {
        self.fds = fds;
        for fd in &self.fds {
            let registered =
                registry.register(&mut SourceFd(&fd.as_raw_fd()), Token(key), Interest::READABLE);
            if let Err(error) = registered {
                tracing::error!(%error, "the background thread cannot watch a socket");
            }
        }
    }

    fn unwatch(&mut self, registry: &mio::Registry) {
        for fd in self.fds.drain(..) {
            // Cannot fail: it was registered; and if it was not, there is nothing to undo.
            drop(registry.deregister(&mut SourceFd(&fd.as_raw_fd())));
        }
    }
}
