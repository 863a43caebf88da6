//! What ours is to reach, as ratios to somebody in the same run. `targets.toml` is the table.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::metric::Metric;
use super::results::Results;

const TABLE: &str = include_str!("targets.toml");

/// Something to reach.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// Where.
    cell: String,
    /// Which figure.
    metric: Metric,
    /// Compared with whom: a contender, `limit` for the better of the plain sockets, `one` for the
    /// figure by itself, or another cell of ours.
    of: String,
    /// The ratio may be at most so much.
    at_most: Option<f64>,
    /// The ratio must be at least so much.
    at_least: Option<f64>,
    /// What we want, where that is more.
    aim: Option<f64>,
    /// Whether nothing must be, and the bound is what we want.
    #[serde(default)]
    wish: bool,
    /// Where the number comes from.
    why: String,
}

#[derive(Debug, Deserialize)]
struct Table {
    target: Vec<Target>,
}

/// A target and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) cell: String,
    pub(crate) metric: Metric,
    pub(crate) of: String,
    /// Ours, the median.
    pub(crate) ours: Option<f64>,
    /// Whom it is compared with, the median.
    pub(crate) theirs: Option<f64>,
    /// One through the other.
    pub(crate) ratio: Option<f64>,
    /// The target in words, if anything must be.
    pub(crate) must: Option<String>,
    /// What we want, if that is more.
    pub(crate) aim: Option<String>,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
}

/// What became of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// What we want.
    AimMet,
    /// What must be, and less than what we want.
    Met,
    /// Not even what must be.
    NotMet,
    /// The run had no figure for it.
    NotMeasured,
}

/// The table.
///
/// # Errors
/// When it is broken.
pub(super) fn all() -> Result<Vec<Target>, String> {
    let table: Result<Table, _> = toml::from_str(TABLE);
    table.map(|table| table.target).map_err(|error| format!("targets.toml: {error}"))
}

/// What became of each target.
pub(super) fn judge(targets: &[Target], results: &Results) -> Vec<Judged> {
    targets.iter().map(|target| target.judge(results)).collect()
}

impl Target {
    fn judge(&self, results: &Results) -> Judged {
        let ours = median(results, &self.cell, self.metric);
        let theirs = self.reference(results);
        let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        Judged {
            cell: self.cell.clone(),
            metric: self.metric,
            of: self.of.clone(),
            ours,
            theirs,
            ratio,
            must: (!self.wish).then(|| self.words(self.bound())),
            aim: self.aim.or(self.wish.then(|| self.bound())).map(|aim| self.words(aim)),
            verdict: ratio.map_or(Verdict::NotMeasured, |ratio| self.verdict(ratio)),
            why: self.why.clone(),
        }
    }

    fn reference(&self, results: &Results) -> Option<f64> {
        let row = results.cell(&self.cell);
        match (self.of.as_str(), Contender::named(&self.of)) {
            ("one", _) => Some(1.0),
            ("limit", _) => row?.limit(self.metric),
            (_, Some(contender)) => row?.median(contender, self.metric),
            (cell, None) => median(results, cell, self.metric),
        }
    }

    fn verdict(&self, ratio: f64) -> Verdict {
        let keeps =
            |bound: f64| if self.at_most.is_some() { ratio <= bound } else { ratio >= bound };
        let (must, aim) = (self.wish || keeps(self.bound()), self.aim.unwrap_or(self.bound()));
        match (must, keeps(aim)) {
            (true, true) => Verdict::AimMet,
            (true, false) => Verdict::Met,
            (false, _) => Verdict::NotMet,
        }
    }

    fn bound(&self) -> f64 {
        self.at_most.or(self.at_least).unwrap_or(f64::NAN)
    }

    fn words(&self, bound: f64) -> String {
        let sign = if self.at_most.is_some() { "≤" } else { "≥" };
        let of = if self.of == "one" { String::new() } else { format!(" × {}", self.of) };
        format!("{sign} {bound}{of}")
    }
}

fn median(results: &Results, cell: &str, metric: Metric) -> Option<f64> {
    results.cell(cell)?.median(Contender::Fabric, metric)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::cells::{self, Cell};
    use super::*;

    #[test]
    fn every_target_is_about_a_cell_that_has_both_sides() {
        let cells = cells::all();
        let find = |name: &str| cells.iter().find(|cell| cell.name() == name);
        for target in all().unwrap() {
            let cell = find(&target.cell).unwrap_or_else(|| panic!("{target:?}"));
            assert!(cell.contenders.contains(&Contender::Fabric), "{target:?}");
            assert!(target.at_most.is_some() != target.at_least.is_some(), "{target:?}");
            assert!(!target.why.is_empty());
            match (target.of.as_str(), Contender::named(&target.of)) {
                ("one", _) => {}
                ("limit", _) => assert!(cell.contenders.iter().any(|one| one.is_raw())),
                (_, Some(contender)) => assert!(cell.contenders.contains(&contender), "{target:?}"),
                (other, None) => assert!(find(other).is_some(), "{target:?}"),
            }
        }
    }

    #[test]
    fn an_aim_is_never_less_than_what_must_be() {
        for target in all().unwrap() {
            let Some(aim) = target.aim else { continue };
            assert!(target.verdict(aim) == Verdict::AimMet, "{target:?}");
        }
    }

    #[test]
    fn every_cell_of_tcp_sockets_has_a_target() {
        let targets = all().unwrap();
        let named: BTreeSet<&str> = targets.iter().map(|target| target.cell.as_str()).collect();
        let ours = cells::all();
        let ours = ours.iter().filter(|cell| cell.contenders.contains(&Contender::Fabric));
        let without: Vec<String> =
            ours.map(Cell::name).filter(|name| !named.contains(&**name)).collect();
        assert_eq!(
            without,
            [
                "bw 64 B, domain",
                "bw 8 KiB, domain",
                "bw 64 KiB, domain",
                "fanout 64 B x 1000",
                "idle 1",
                "lat 64 B, shared memory",
                "lat 64 KiB, shared memory",
                "lat 1 MiB, shared memory",
                "bw 64 B, shared memory",
                "bw 64 KiB, shared memory",
            ]
        );
    }

    fn target(at_most: Option<f64>, at_least: Option<f64>, aim: Option<f64>) -> Target {
        let (cell, of, why) = ("lat 64 B".into(), "raw-tcp".into(), "x".into());
        Target { cell, metric: Metric::P50Us, of, at_most, at_least, aim, wish: false, why }
    }

    #[test]
    fn a_ratio_is_judged_from_the_right_side() {
        let most = target(Some(1.2), None, Some(1.1));
        let verdicts = [1.0, 1.15, 1.3].map(|ratio| most.verdict(ratio));
        assert_eq!(verdicts, [Verdict::AimMet, Verdict::Met, Verdict::NotMet]);
        let least = target(None, Some(3.0), None);
        assert_eq!(
            [4.0, 2.0].map(|ratio| least.verdict(ratio)),
            [Verdict::AimMet, Verdict::NotMet]
        );
        assert_eq!(least.words(3.0), "≥ 3 × raw-tcp");
        let wish = Target { wish: true, ..least };
        assert_eq!([4.0, 2.0].map(|ratio| wish.verdict(ratio)), [Verdict::AimMet, Verdict::Met]);
    }
}
