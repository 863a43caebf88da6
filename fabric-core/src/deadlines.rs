//! Time limits of one kind: all span the same time, so they fall due in the order they began.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::EpId;

/// Deadlines of endpoints, for providers to keep their time limits.
#[derive(Debug)]
pub struct Deadlines {
    span: Duration,
    queue: VecDeque<(Instant, EpId)>,
}

impl Deadlines {
    /// Deadlines that each fall due `span` after they begin.
    pub fn new(span: Duration) -> Self {
        Self { span, queue: VecDeque::new() }
    }

    /// How long each of them is.
    pub fn span(&self) -> Duration {
        self.span
    }

    /// Begins one at `now`, which is no earlier than that of the last one.
    pub fn push(&mut self, ep: EpId, now: Instant) {
        self.queue.push_back((now + self.span, ep));
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The earliest deadline of those that still matter. Forgets others on the way.
    pub fn next(&mut self, matters: impl Fn(EpId) -> bool) -> Option<Instant> {
        while let Some((due, ep)) = self.queue.front() {
            if matters(*ep) {
                return Some(*due);
            }
            self.queue.pop_front();
        }
        None
    }

    /// Takes the oldest, if it is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<EpId> {
        let (due, _) = self.queue.front()?;
        if *due <= now { self.pop() } else { None }
    }

    /// Takes the oldest, due or not.
    pub fn pop(&mut self) -> Option<EpId> {
        self.queue.pop_front().map(|(_, ep)| ep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_fall_due_in_order_and_stale_ones_are_skipped() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(Duration::from_secs(1));
        deadlines.push(EpId(1), start);
        deadlines.push(EpId(2), start + Duration::from_secs(1));
        assert_eq!(deadlines.pop_due(start), None);
        let due = deadlines.next(|ep| ep == EpId(2));
        assert_eq!(due, Some(start + Duration::from_secs(2)));
        assert_eq!(deadlines.pop_due(start + Duration::from_secs(9)), Some(EpId(2)));
        assert!(deadlines.is_empty());
    }
}
