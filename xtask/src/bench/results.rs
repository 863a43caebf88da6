//! Everything that was measured, with its medians.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cells::{Cell, Mode, Test};
use super::contender::Contender;
use super::metric::{Metric, Sample};
use super::play::Ground;
use super::targets::{Judged, Target, judge};
use crate::circumstances::{commit, kernel, now, processor};

/// A run of the benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    /// Raised when a field changes its meaning.
    pub(crate) version: u32,
    /// Seconds since 1970.
    pub(crate) taken_at: u64,
    /// The processors.
    pub(crate) processor: String,
    /// How many.
    pub(crate) processors: usize,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The commit that was measured.
    pub(crate) commit: String,
    /// Turns of each contender.
    pub(crate) repetitions: usize,
    /// What all turns took.
    pub(crate) seconds: u64,
    /// Processors of the measuring and of the serving side.
    pub(crate) pin: Option<(usize, usize)>,
    /// Who was left out of everything, with the reason.
    pub(crate) left_out: Vec<String>,
    pub(crate) cells: Vec<Row>,
    pub(crate) targets: Vec<Judged>,
}

/// The outcome of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) cell: String,
    pub(crate) test: Test,
    pub(crate) mode: Mode,
    pub(crate) size: usize,
    pub(crate) peers: usize,
    pub(crate) contenders: Vec<Entry>,
}

/// A contender in a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) contender: Contender,
    /// What is known about each figure.
    pub(crate) figures: BTreeMap<Metric, Stat>,
    /// Why it has no more turns, if it has none.
    pub(crate) failed: Option<String>,
}

/// A figure over all turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Each turn, in order.
    pub(crate) turns: Vec<f64>,
}

impl Stat {
    fn add(&mut self, value: f64) {
        self.turns.push(value);
        let mut sorted = self.turns.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        self.median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        (self.min, self.max) = (sorted[0], sorted[sorted.len() - 1]);
    }
}

impl Results {
    /// Nothing measured yet.
    pub(super) fn new(ground: &Ground, repetitions: usize) -> Self {
        let drivers = ground.drivers.iter();
        let left_out =
            drivers.filter_map(|(driver, outcome)| Some((driver, outcome.as_ref().err()?)));
        Self {
            version: 1,
            taken_at: now(),
            processor: processor(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel(),
            commit: commit(),
            repetitions,
            seconds: 0,
            pin: ground.pin,
            left_out: left_out.map(|(driver, why)| format!("{driver:?}: {why}")).collect(),
            cells: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, cell: &Cell, contender: Contender, sample: &Sample) {
        let entry = self.entry(cell, contender);
        for (&metric, &value) in &sample.figures {
            entry.figures.entry(metric).or_default().add(value);
        }
    }

    /// Notes why a contender has no more turns in a cell.
    pub(super) fn fail(&mut self, cell: &Cell, contender: Contender, why: String) {
        self.entry(cell, contender).failed = Some(why);
    }

    /// Whether it has none.
    pub(super) fn is_out(&mut self, cell: &Cell, contender: Contender) -> bool {
        self.entry(cell, contender).failed.is_some()
    }

    /// Compares with the targets.
    pub(super) fn judge(&mut self, targets: &[Target]) {
        self.targets = judge(targets, self);
    }

    /// The cell of that name.
    pub(crate) fn cell(&self, name: &str) -> Option<&Row> {
        self.cells.iter().find(|row| row.cell == name)
    }

    fn entry(&mut self, cell: &Cell, contender: Contender) -> &mut Entry {
        let name = cell.name();
        let at = self.cells.iter().position(|row| row.cell == name).unwrap_or_else(|| {
            self.cells.push(Row::of(cell));
            self.cells.len() - 1
        });
        self.cells[at].entry(contender)
    }
}

impl Row {
    pub(super) fn of(cell: &Cell) -> Self {
        let (test, mode, size, peers) = (cell.test, cell.mode, cell.size, cell.peers);
        Self { cell: cell.name(), test, mode, size, peers, contenders: Vec::new() }
    }

    pub(super) fn entry(&mut self, contender: Contender) -> &mut Entry {
        let at = self.contenders.iter().position(|entry| entry.contender == contender);
        let at = at.unwrap_or_else(|| {
            let (figures, failed) = (BTreeMap::new(), None);
            self.contenders.push(Entry { contender, figures, failed });
            self.contenders.len() - 1
        });
        &mut self.contenders[at]
    }

    /// The median of a contender's figure.
    pub(crate) fn median(&self, contender: Contender, metric: Metric) -> Option<f64> {
        let entry = self.contenders.iter().find(|entry| entry.contender == contender)?;
        entry.figures.get(&metric).map(|stat| stat.median)
    }

    /// The best median of the plain sockets: what is possible.
    pub(crate) fn limit(&self, metric: Metric) -> Option<f64> {
        let raw = self.contenders.iter().map(|entry| entry.contender).filter(|one| one.is_raw());
        let medians = raw.filter_map(|contender| self.median(contender, metric));
        medians.reduce(if metric.is_rate() { f64::max } else { f64::min })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::all;
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let mut stat = Stat::default();
        [5.0, 1.0, 100.0].into_iter().for_each(|value| stat.add(value));
        assert_eq!((stat.median, stat.min, stat.max), (5.0, 1.0, 100.0));
        stat.add(3.0);
        assert_eq!((stat.median, stat.turns.len()), (4.0, 4));
    }

    #[test]
    fn the_limit_is_the_better_of_the_plain_ones() {
        let mut row = Row::of(&all()[0]);
        for (contender, rate) in
            [(Contender::RawTcp, 1.0), (Contender::RawTcpBatch, 3.0), (Contender::Libzmq, 9.0)]
        {
            let entry = row.entry(contender);
            entry.figures.entry(Metric::MessagesPerSecond).or_default().add(rate);
            entry.figures.entry(Metric::P50Us).or_default().add(rate);
        }
        assert_eq!(row.limit(Metric::MessagesPerSecond), Some(3.0));
        assert_eq!(row.limit(Metric::P50Us), Some(1.0));
    }
}
