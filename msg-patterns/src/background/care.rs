//! How one socket is looked after.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::{ATTENDED, BLOCKED, Driven, Flags, IDLE_MIN, Key, Next, WATCHED};
use crate::driver::SENDS_PER_LOOK;

/// Turns before other sockets are looked after.
const TURNS_MAX: usize = 64;
/// While calls go on, how seldom at most to look whether they stopped.
const LOOK_MAX: Duration = Duration::from_millis(8);
/// A call that sleeps for so long needs no looking after.
const BLOCKED_MIN: Duration = Duration::from_millis(100);

/// How a socket is looked after.
#[derive(Debug, Clone, Copy)]
enum Care {
    /// Calls drive it; look again at `at`.
    Calls { at: Instant, every: Duration },
    /// A call sleeps in it and rouses this thread when it leaves.
    Unattended,
    /// This thread drives it: at the latest at `at`, and when a descriptor says so.
    Watched { at: Option<Instant> },
}

/// A socket that this thread looks after.
pub(super) struct Socket {
    key: Key,
    driven: Weak<dyn Driven>,
    care: Care,
    activity: u64,
    active_at: Instant,
    /// Kept while it is not watched, too.
    fds: Vec<OwnedFd>,
    watched: bool,
}

/// What stands in for a tail from one tick to the next.
pub(super) type Seen = (u64, u64);

impl Socket {
    /// A socket that calls drive, for all we know.
    pub(super) fn new(key: Key, driven: Weak<dyn Driven>, now: Instant) -> Self {
        let care = Care::Calls { at: now + IDLE_MIN, every: IDLE_MIN };
        Self { key, driven, care, activity: 0, active_at: now, fds: Vec::new(), watched: false }
    }

    pub(super) fn driven(&self) -> &Weak<dyn Driven> {
        &self.driven
    }

    /// When to look at it, unless something comes up before.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.care {
            Care::Calls { at, .. } => Some(at),
            Care::Unattended => None,
            Care::Watched { at } => at,
        }
    }

    /// Does what is due, or what a descriptor that is ready says.
    pub(super) fn look_after(
        &mut self,
        driven: &dyn Driven,
        ready: bool,
        now: Instant,
        registry: &Registry,
    ) {
        let flags = driven.flags();
        let active = self.note_activity(flags, now);
        let awaited = flags.is_awaited();
        match self.care {
            Care::Calls { .. } | Care::Unattended if awaited => self.drive(driven, now, registry),
            Care::Calls { at, .. } if now < at => {}
            Care::Calls { every, .. } if active => self.let_calls(now, every * 2),
            Care::Calls { every, .. } if flags.blocked.load(Ordering::Relaxed) => {
                self.while_blocked(flags, now, every);
            }
            Care::Unattended if flags.is_unattended() => {}
            Care::Unattended => self.let_calls(now, IDLE_MIN),
            Care::Watched { .. } if awaited && (active || !flags.is_watched()) => {
                self.drive(driven, now, registry);
            }
            Care::Watched { .. } if active || !flags.is_watched() => {
                self.unwatch(registry);
                flags.reliance.store(ATTENDED, Ordering::SeqCst);
                self.let_calls(now, IDLE_MIN);
            }
            Care::Watched { at } if !ready && at.is_none_or(|at| now < at) => {}
            Care::Calls { .. } | Care::Watched { .. } => self.drive(driven, now, registry),
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

    fn let_calls(&mut self, now: Instant, every: Duration) {
        let every = every.min(LOOK_MAX);
        self.care = Care::Calls { at: now + every, every };
    }

    fn while_blocked(&mut self, flags: &Flags, now: Instant, every: Duration) {
        if now.duration_since(self.active_at) < BLOCKED_MIN {
            return self.let_calls(now, every * 2);
        }
        flags.reliance.store(BLOCKED, Ordering::SeqCst);
        self.care = Care::Unattended;
        // It may have left just before it could see the flag.
        let left = !flags.blocked.load(Ordering::SeqCst)
            || flags.activity.load(Ordering::Relaxed) != self.activity;
        if left {
            flags.reliance.store(ATTENDED, Ordering::SeqCst);
            self.let_calls(now, IDLE_MIN);
        }
    }

    fn drive(&mut self, driven: &dyn Driven, now: Instant, registry: &Registry) {
        let flags = driven.flags();
        // Before its turn: whoever has the socket's lock after it sees this, and says what it left.
        flags.reliance.store(WATCHED, Ordering::SeqCst);
        match driven.turn(TURNS_MAX) {
            Some(Next { within, fds }) if self.watch(driven, fds, registry) => {
                self.care = Care::Watched { at: within.map(|within| Instant::now() + within) };
            }
            _ => {
                self.unwatch(registry);
                flags.reliance.store(ATTENDED, Ordering::SeqCst);
                match self.care {
                    Care::Calls { every, .. } if flags.blocked.load(Ordering::Relaxed) => {
                        self.while_blocked(flags, now, every);
                    }
                    _ => self.let_calls(now, IDLE_MIN),
                }
            }
        }
    }

    /// Sleeps on the socket's descriptors from now on. What is ready already counts, too, since
    /// (re-)registering looks. False if a call has the socket or the host no descriptors.
    fn watch(&mut self, driven: &dyn Driven, fds: usize, registry: &Registry) -> bool {
        if self.fds.len() != fds {
            self.unwatch(registry);
            let Some(fds) = driven.fds() else { return false };
            self.fds = fds;
        }
        for fd in &self.fds {
            let fd = fd.as_raw_fd();
            let (mut fd, token) = (SourceFd(&fd), Token(self.key as usize));
            let registered = if self.watched {
                registry.reregister(&mut fd, token, Interest::READABLE)
            } else {
                registry.register(&mut fd, token, Interest::READABLE)
            };
            if let Err(error) = registered {
                tracing::error!(%error, "the background thread cannot watch a socket");
            }
        }
        self.watched = true;
        true
    }

    /// Does not sleep on its descriptors any more.
    pub(super) fn unwatch(&mut self, registry: &Registry) {
        if std::mem::take(&mut self.watched) {
            for fd in &self.fds {
                // Cannot fail: it was registered; if it was not, there is nothing to undo.
                drop(registry.deregister(&mut SourceFd(&fd.as_raw_fd())));
            }
        }
    }
}

/// Flushes a tail that nobody flushed since it was `seen`; says what was seen now, or nothing if
/// there is none.
pub(super) fn flush_tail(driven: &dyn Driven, seen: Option<Seen>) -> Option<Seen> {
    let flags = driven.flags();
    if !flags.deferred.load(Ordering::SeqCst) {
        return None;
    }
    let flushes = flags.flushes.load(Ordering::Relaxed);
    let activity = flags.activity.load(Ordering::Relaxed);
    let is_left = |(then, before): Seen| {
        // A sender in full swing looks at the clock itself.
        then == flushes && activity.wrapping_sub(before) < u64::from(SENDS_PER_LOOK)
    };
    if seen.is_some_and(is_left) {
        driven.flush_tail();
    }
    Some((flushes, activity))
}
