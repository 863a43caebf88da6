//! How many messages a turn has: about as many as fit the time for it.

use std::collections::HashMap;

use super::cells::{Cell, Test};
use super::contender::Contender;
use super::metric::Sample;

/// How many times more messages the next trial has, at most.
const GROWTH_MAX: f64 = 40.0;
/// A trial is long enough to judge by from this part of a turn on.
const LONG_ENOUGH: f64 = 0.4;
/// Trials until whatever was found has to do.
const TRIALS_MAX: usize = 6;

/// Counts that were found.
#[derive(Debug)]
pub(super) struct Amounts {
    turn_seconds: f64,
    counts: HashMap<(String, Contender), u64>,
}

impl Amounts {
    /// For turns of this length.
    pub(super) fn new(turn_seconds: f64) -> Self {
        Self { turn_seconds, counts: HashMap::new() }
    }

    /// The count for a contender in a cell, the same for all its turns; found by trials.
    ///
    /// # Errors
    /// Those of a trial.
    pub(super) fn count(
        &mut self,
        cell: &Cell,
        contender: Contender,
        trial: impl Fn(u64) -> Result<Sample, String>,
    ) -> Result<u64, String> {
        let key = (cell.name(), contender);
        if let Some(&count) = self.counts.get(&key) {
            return Ok(count);
        }
        let count = self.find(first(cell), trial)?;
        self.counts.insert(key, count);
        Ok(count)
    }

    fn find(
        &self,
        first: u64,
        trial: impl Fn(u64) -> Result<Sample, String>,
    ) -> Result<u64, String> {
        let mut count = first;
        for _ in 0..TRIALS_MAX {
            let seconds = trial(count)?.seconds.max(1e-9);
            let growth = (self.turn_seconds / seconds).min(GROWTH_MAX);
            count = ((count as f64 * growth) as u64).max(first.min(count));
            if seconds >= self.turn_seconds * LONG_ENOUGH {
                break;
            }
        }
        Ok(count)
    }
}

/// Short for everybody.
fn first(cell: &Cell) -> u64 {
    let large = cell.size >= 64 << 10;
    match cell.test {
        Test::Lat => 200,
        Test::Bw if large => 50,
        Test::Bw | Test::Idle => 2000,
        Test::Fanout => (20_000 / cell.peers as u64).max(20),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Counter;

    use super::super::cells::all;
    use super::*;

    #[test]
    fn a_turn_gets_as_many_messages_as_fit() {
        let mut amounts = Amounts::new(0.5);
        let trials = Counter::new(0);
        let trial = |count: u64| {
            trials.set(trials.get() + 1);
            // A million a second, after a start of a millisecond.
            Ok(Sample::new(0.001 + count as f64 / 1e6))
        };
        let count = amounts.count(&all()[0], Contender::Fabric, trial).unwrap();
        assert!((400_000..=500_000).contains(&count), "{count}");
        let again = amounts.count(&all()[0], Contender::Fabric, trial).unwrap();
        assert_eq!((again, trials.get()), (count, 3));
    }

    #[test]
    fn whoever_is_slow_gets_fewer_but_some() {
        let amounts = Amounts::new(0.5);
        assert_eq!(amounts.find(200, |count| Ok(Sample::new(count as f64))).unwrap(), 200);
        assert!(amounts.find(200, |_| Err("broken".into())).is_err());
    }
}
