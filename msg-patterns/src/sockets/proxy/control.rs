//! Steering a proxy, and what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

use parking_lot::Mutex;

/// What a proxy is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wanted {
    #[default]
    Run,
    Pause,
    /// End once nothing is held.
    Stop,
    /// End at once.
    Leave,
}

/// Steers a [`Proxy`](super::Proxy) from any thread or task. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProxyControl(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: Mutex<(Wanted, Option<Waker>)>,
    counts: Counts,
}

/// As in [`ProxyStats`], the two ways as one each.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) passed: [Passing; 2],
    pub(super) refused: AtomicU64,
    pub(super) captured: AtomicU64,
    pub(super) not_captured: AtomicU64,
}

/// One way.
#[derive(Debug, Default)]
pub(super) struct Passing {
    pub(super) messages: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) held: AtomicU64,
}

/// What a proxy has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProxyStats {
    /// From front to back: what is published, work, or requests.
    pub to_back: Passed,
    /// From back to front: subscriptions and what XSUB sends, or replies.
    pub to_front: Passed,
    /// Messages that can never be passed on: longer than the other side takes, or of no router's
    /// making.
    pub refused: u64,
    /// Copies that the capturing socket took.
    pub captured: u64,
    /// Copies that it had no room or no peer for.
    pub not_captured: u64,
}

/// What was passed on one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Passed {
    /// Messages; subscriptions and cancellations count too.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Messages that were taken and wait for room: at most one.
    pub held: u64,
}

impl ProxyControl {
    /// Passes nothing on until [`resume`](Self::resume). What comes meanwhile waits in the sockets.
    pub fn pause(&self) {
        self.change(|wanted| if wanted == Wanted::Run { Wanted::Pause } else { wanted });
    }

    /// Goes on.
    pub fn resume(&self) {
        self.change(|wanted| if wanted == Wanted::Pause { Wanted::Run } else { wanted });
    }

    /// Ends the run, or the next one, as soon as what was taken is passed on; that may wait for room.
    /// All else stays in the sockets.
    pub fn stop(&self) {
        self.change(|wanted| if wanted == Wanted::Leave { wanted } else { Wanted::Stop });
    }

    /// As `stop`, without waiting: what was taken stays in the proxy, for its next run.
    pub fn stop_now(&self) {
        self.change(|_| Wanted::Leave);
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.wanted() == Wanted::Pause
    }

    /// What was done until now.
    pub fn stats(&self) -> ProxyStats {
        let counts = self.counts();
        let [to_back, to_front] = counts.passed.each_ref().map(|passing| Passed {
            messages: passing.messages.load(Relaxed),
            bytes: passing.bytes.load(Relaxed),
            held: passing.held.load(Relaxed),
        });
        ProxyStats {
            to_back,
            to_front,
            refused: counts.refused.load(Relaxed),
            captured: counts.captured.load(Relaxed),
            not_captured: counts.not_captured.load(Relaxed),
        }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    pub(super) fn wanted(&self) -> Wanted {
        self.0.wanted.lock().0
    }

    /// As `wanted`; the task is woken when that changes.
    pub(super) fn watch(&self, waker: &Waker) -> Wanted {
        let (wanted, known) = &mut *self.0.wanted.lock();
        match known {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        *wanted
    }

    /// A run has ended: the next one runs.
    pub(super) fn end(&self) {
        *self.0.wanted.lock() = (Wanted::Run, None);
    }

    fn change(&self, to: impl FnOnce(Wanted) -> Wanted) {
        let waker = {
            let (wanted, waker) = &mut *self.0.wanted.lock();
            *wanted = to(*wanted);
            waker.take()
        };
        // Foreign code: not with the lock held.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
