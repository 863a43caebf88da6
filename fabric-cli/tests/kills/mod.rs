//! What happens to survivors when a process of theirs is killed in traffic, on any fabric.

// Each test file uses its own part of this.
#![allow(dead_code)]

mod pipe;
mod publish;
mod service;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::wait_until;

pub(crate) use pipe::{pushers, workers};
pub(crate) use publish::{publishers, subscribers};
pub(crate) use service::{repliers, repliers_without_retry, requesters};

/// Far longer than anything here takes; it ends what hangs.
const LONG: Duration = Duration::from_secs(60);
/// Between two messages where the traffic need not fill the queues.
const PAUSE: Duration = Duration::from_micros(200);

/// Where to kill, and how often.
pub(crate) struct Ground {
    /// An address that picks a free port, which a process that comes back finds free.
    pub(crate) any: fn() -> String,
    /// Kills of each role.
    pub(crate) kills: usize,
    /// Topics of a subscriber whose publisher is killed.
    pub(crate) topics: usize,
}

/// Numbered traffic from a thread of its own until it is stopped.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Traffic {
    /// Calls `send` with 0, 1, 2…, with a `pause` in between, and `end` after the last one.
    pub(crate) fn start(
        pause: Duration,
        send: impl Fn(u64) + Send + 'static,
        end: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counter) = (stop.clone(), done.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                send(counter.load(Ordering::SeqCst));
                counter.fetch_add(1, Ordering::SeqCst);
                if !pause.is_zero() {
                    thread::sleep(pause);
                }
            }
            end();
        });
        Self { stop, done, thread }
    }

    pub(crate) fn wait_for_more(&self, count: u64) {
        let goal = self.done.load(Ordering::SeqCst) + count;
        wait_until("more traffic", || {
            self.done.load(Ordering::SeqCst) >= goal || self.thread.is_finished()
        });
        assert!(!self.thread.is_finished(), "the traffic has ended");
    }

    /// How many there were.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        self.done.load(Ordering::SeqCst)
    }
}

pub(crate) fn numbers(out: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(out).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
