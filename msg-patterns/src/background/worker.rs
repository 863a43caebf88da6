//! The thread itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};

use super::care::{self, Seen, Socket};
use super::due::Due;
use super::{Background, Driven, IDLE_MIN, Key, News};
use crate::ids::IdMap;
use crate::{Error, ErrorKind};

/// How long the tail of a burst may wait.
const TAIL_MAX: Duration = Duration::from_micros(50);
/// Ticks without a put-off tail before a socket is not looked at at each tick any more.
const QUIET_TICKS: u32 = 20;
/// Sockets looked after, because it was time, before tails and descriptors have their turn.
const DUE_MAX: usize = 64;
/// Descriptors that are ready, likewise.
const READY_MAX: usize = 64;

const WAKE: Token = Token(usize::MAX);

/// Starts the thread.
pub(super) fn start(background: &Arc<Background>) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Limit, format!("the background thread cannot start: {error}"))
    };
    let poll = Poll::new().map_err(failed)?;
    let waker = Waker::new(poll.registry(), WAKE).map_err(failed)?;
    let worker = Worker {
        background: background.clone(),
        poll,
        sockets: IdMap::default(),
        due: Due::default(),
        tails: Vec::new(),
        news: News::default(),
    };
    let builder = std::thread::Builder::new().name("msg-patterns".into());
    builder.spawn(move || worker.run()).map_err(failed)?;
    // Cannot fail: it is started once.
    drop(background.waker.set(waker));
    Ok(())
}

/// A socket that put off a tail lately.
struct Tail {
    key: Key,
    seen: Option<Seen>,
    quiet_ticks: u32,
}

struct Worker {
    background: Arc<Background>,
    poll: Poll,
    sockets: IdMap<Key, Socket>,
    due: Due,
    /// Those that are looked at at each tick.
    tails: Vec<Tail>,
    /// Memory for the news that are taken.
    news: News,
}

impl Worker {
    fn run(mut self) {
        let mut events = Events::with_capacity(READY_MAX);
        while !self.background.stopping.load(Ordering::SeqCst) {
            self.background.effort.rounds.fetch_add(1, Ordering::Relaxed);
            self.take_news();
            self.flush_tails();
            self.look_after_due();
            self.sleep(&mut events);
            self.look_after_ready(&events);
        }
    }

    fn take_news(&mut self) {
        let mut news = std::mem::take(&mut self.news);
        std::mem::swap(&mut news, &mut self.background.news.lock());
        if !news.is_empty() {
            let now = Instant::now();
            for (key, driven) in news.added.drain(..) {
                let socket = Socket::new(key, driven, now);
                self.due.set(key, socket.due());
                self.sockets.insert(key, socket);
            }
            for key in news.listed.drain(..) {
                self.hear_of(key, now);
            }
        }
        self.news = news;
        self.background.effort.held.store(self.sockets.len() as u64, Ordering::Relaxed);
    }

    /// Something came up at a socket.
    fn hear_of(&mut self, key: Key, now: Instant) {
        // A socket may be gone while it is on the list.
        let Some(driven) = self.driven(key) else { return };
        // Before its state is looked at: what comes up later puts it on the list again.
        driven.flags().listed.swap(false, Ordering::SeqCst);
        self.tick(key, &*driven);
        self.look_after(key, &*driven, false, now);
    }

    fn driven(&mut self, key: Key) -> Option<Arc<dyn Driven>> {
        let driven = self.sockets.get(&key)?.driven().upgrade();
        if driven.is_none() {
            self.remove(key);
        }
        driven
    }

    /// Looks at a socket at each tick from now on, if it put off a tail.
    fn tick(&mut self, key: Key, driven: &dyn Driven) {
        let flags = driven.flags();
        let deferred = flags.deferred.load(Ordering::SeqCst);
        if deferred && !flags.ticked.swap(true, Ordering::SeqCst) {
            self.tails.push(Tail { key, seen: None, quiet_ticks: 0 });
        }
    }

    /// Flushes tails that nobody flushed since the last tick.
    fn flush_tails(&mut self) {
        let Self { tails, sockets, background, .. } = self;
        tails.retain_mut(|tail| {
            let driven = sockets.get(&tail.key).and_then(|socket| socket.driven().upgrade());
            let Some(driven) = driven else { return false };
            background.effort.looks.fetch_add(1, Ordering::Relaxed);
            tail.seen = care::flush_tail(&*driven, tail.seen);
            tail.quiet_ticks = if tail.seen.is_some() { 0 } else { tail.quiet_ticks + 1 };
            tail.quiet_ticks < QUIET_TICKS || is_ticked_on(&*driven)
        });
    }

    fn look_after_due(&mut self) {
        if self.due.next().is_none() {
            return;
        }
        let now = Instant::now();
        for _ in 0..DUE_MAX {
            let Some(key) = self.due.pop(now) else { return };
            if let Some(driven) = self.driven(key) {
                self.look_after(key, &*driven, false, now);
            }
        }
    }

    fn look_after_ready(&mut self, events: &Events) {
        if events.is_empty() {
            return;
        }
        let now = Instant::now();
        for event in events.iter().filter(|event| event.token() != WAKE) {
            let key = event.token().0 as Key;
            if let Some(driven) = self.driven(key) {
                self.look_after(key, &*driven, true, now);
            }
        }
    }

    fn look_after(&mut self, key: Key, driven: &dyn Driven, ready: bool, now: Instant) {
        self.background.effort.looks.fetch_add(1, Ordering::Relaxed);
        if driven.flags().closed.load(Ordering::SeqCst) {
            return self.remove(key);
        }
        let Some(socket) = self.sockets.get_mut(&key) else { return };
        socket.look_after(driven, ready, now, self.poll.registry());
        self.due.set(key, socket.due());
    }

    fn remove(&mut self, key: Key) {
        self.due.set(key, None);
        if let Some(mut socket) = self.sockets.remove(&key) {
            socket.unwatch(self.poll.registry());
        }
    }

    fn sleep(&mut self, events: &mut Events) {
        events.clear();
        if !self.tails.is_empty() {
            std::thread::sleep(TAIL_MAX);
            return self.poll(events, Some(Duration::ZERO));
        }
        let next = self.due.next();
        self.background.fall_asleep(next);
        let timeout = if self.background.news.lock().is_empty() {
            next.map(|at| at.saturating_duration_since(Instant::now()))
        } else {
            Some(Duration::ZERO)
        };
        self.poll(events, timeout);
        self.background.asleep.store(false, Ordering::SeqCst);
    }

    fn poll(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if let Err(error) = self.poll.poll(events, timeout)
            && error.kind() != std::io::ErrorKind::Interrupted
        {
            tracing::error!(%error, "the background thread cannot sleep");
            std::thread::sleep(IDLE_MIN);
        }
    }
}

impl Background {
    /// From now on the thread must be woken. Whoever puts something on its list either sees that, or
    /// did so before the thread looks at the list for the last time.
    pub(super) fn fall_asleep(&self, until: Option<Instant>) {
        let until_us = |at: Instant| at.saturating_duration_since(self.start).as_micros();
        let until_us = until.map_or(u64::MAX, |at| until_us(at) as u64);
        self.asleep_until_us.store(until_us, Ordering::SeqCst);
        self.asleep.store(true, Ordering::SeqCst);
    }
}

/// Whether a socket put off a tail just when it was not to be looked at any more.
fn is_ticked_on(driven: &dyn Driven) -> bool {
    let flags = driven.flags();
    flags.ticked.store(false, Ordering::SeqCst);
    let deferred = flags.deferred.load(Ordering::SeqCst);
    deferred && !flags.ticked.swap(true, Ordering::SeqCst)
}
