//! Times that somebody waits for.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::mem;
use core::time::Duration;

/// Times with ids, earliest first. Nothing is taken out when it loses its meaning; `prune` finds
/// and drops what has none any more.
#[derive(Debug, Clone)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Duration, u64)>>,
}

/// So many meaningless entries are never worth looking for.
const STALE_MIN: usize = 16;

impl Timers {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new() }
    }

    pub(crate) fn arm(&mut self, at: Duration, id: u64) {
        self.heap.push(Reverse((at, id)));
    }

    /// The earliest time, exact after `prune`.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out the earliest entry if its time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<u64> {
        let due = self.next()? <= now;
        due.then(|| self.heap.pop().map(|Reverse((_, id))| id)).flatten()
    }

    /// Drops entries that are not `valid` from the front, and from everywhere when there are many:
    /// more than four for each of the `live` ids, which have at most two each.
    pub(crate) fn prune(&mut self, live: usize, valid: impl Fn(Duration, u64) -> bool) {
        while self.heap.peek().is_some_and(|Reverse((at, id))| !valid(*at, *id)) {
            self.heap.pop();
        }
        if self.heap.len() > 4 * live + STALE_MIN {
            let mut entries = mem::take(&mut self.heap).into_vec();
            entries.retain(|Reverse((at, id))| valid(*at, *id));
            entries.sort_unstable();
            entries.dedup();
            self.heap = entries.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_early_time_does_not_keep_later_ones_that_mean_nothing() {
        let mut timers = Timers::new();
        timers.arm(Duration::ZERO, 0);
        for id in 1..10_000 {
            timers.arm(Duration::from_secs(id), id);
            timers.prune(1, |_, id| id == 0);
            assert!(timers.heap.len() <= 4 + STALE_MIN);
        }
        assert_eq!(timers.next(), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn what_is_valid_comes_due_in_order_and_the_rest_does_not_pile_up(
            ops in prop::collection::vec((0u8..4, 0u64..8, 0u64..50), 0..400),
        ) {
            let (mut timers, mut model) = (Timers::new(), BTreeSet::new());
            let mut now = Duration::ZERO;
            for (op, id, ms) in ops {
                let at = now + Duration::from_millis(ms);
                match op {
                    0 | 1 => {
                        timers.arm(at, id);
                        model.retain(|(_, known)| *known != id);
                        model.insert((at, id));
                    }
                    2 => model.retain(|(_, known)| *known != id),
                    _ => {
                        now = at;
                        let due = core::iter::from_fn(|| timers.pop_due(now)).collect::<Vec<_>>();
                        let (mine, later) = model.iter().partition(|(at, _)| *at <= now);
                        model = later;
                        let mine: BTreeSet<(Duration, u64)> = mine;
                        prop_assert!(mine.iter().all(|(_, id)| due.contains(id)));
                    }
                }
                timers.prune(model.len(), |at, id| model.contains(&(at, id)));
                prop_assert_eq!(timers.next(), model.first().map(|(at, _)| *at));
                prop_assert!(timers.heap.len() <= 4 * model.len() + STALE_MIN);
            }
        }
    }
}
