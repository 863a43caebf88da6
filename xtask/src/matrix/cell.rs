//! What came of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kernel with a user space: what ran there and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// The row's name.
    pub(super) kernel: String,
    /// The column's name.
    pub(super) stack: String,
    /// Seconds since 1970.
    pub(super) taken_at: u64,
    /// The commit that was tested.
    pub(super) commit: String,
    /// The kernel's own words: release and version.
    pub(super) release: String,
    pub(super) version: String,
    /// The user space: names and versions of packages.
    pub(super) packages: BTreeMap<String, String>,
    /// What it took in the guest.
    pub(super) seconds: u64,
    /// Why nothing, or not all, of it ran.
    pub(super) failure: Option<String>,
    /// The exit code of each step.
    pub(super) codes: BTreeMap<String, i32>,
    /// What the doctor says while nothing is wrong on purpose.
    pub(super) doctor: Option<Doctor>,
    /// The suite on verbs.
    pub(super) conformance: Suite,
    /// The three patterns over verbs.
    pub(super) patterns: Vec<Pattern>,
    /// The same over libfabric's verbs.
    pub(super) libfabric: Vec<Pattern>,
    /// What was wrong on purpose, and whether the doctor named it.
    pub(super) mismatches: Vec<Mismatch>,
}

/// What `fabric doctor` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Doctor {
    /// `good`, `warnings` or `errors`.
    pub(super) verdict: String,
    /// What `verbs://` would use, if anything.
    pub(super) uses: Option<String>,
    /// The most important finding, if there is any.
    pub(super) first: Option<Finding>,
}

/// A finding of the doctor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) id: String,
    pub(super) severity: String,
    pub(super) title: String,
    pub(super) seen: String,
    pub(super) command: String,
}

/// What became of the conformance suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suite {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// Cases that did not run or did not end.
    pub(super) missing: usize,
    /// Why each failed.
    pub(super) failures: Vec<Failure>,
}

/// A case that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) case: String,
    pub(super) reason: String,
}

/// A pattern of the demo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pattern {
    pub(super) name: String,
    pub(super) passed: bool,
    /// Why not, or what was checked.
    pub(super) said: String,
}

/// Something wrong on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mismatch {
    pub(super) name: String,
    /// The finding that must come first.
    pub(super) expected: String,
    pub(super) found: Option<Finding>,
}

impl Mismatch {
    /// Whether the doctor said it first.
    pub(super) fn is_named(&self) -> bool {
        self.found.as_ref().is_some_and(|finding| finding.id == self.expected)
    }
}

/// Steps that end with 0 when all is well.
const STEPS: [&str; 4] = ["doctor", "conformance", "patterns", "libfabric"];

impl Suite {
    /// Whether every case passed or was skipped for a reason.
    pub(super) fn is_good(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.missing == 0
    }
}

impl Cell {
    /// Whether all went well.
    pub(super) fn is_good(&self) -> bool {
        let well = |patterns: &[Pattern]| count(patterns) == 3;
        let doctor = self.doctor.as_ref().is_some_and(|doctor| doctor.verdict != "errors");
        let named = !self.mismatches.is_empty() && self.mismatches.iter().all(Mismatch::is_named);
        let ran = self.conformance.is_good() && well(&self.patterns) && well(&self.libfabric);
        self.failure.is_none() && doctor && ran && named && self.bad_end().is_none()
    }

    /// What explains that it did not: what the doctor found, and what failed first.
    pub(super) fn explanation(&self) -> Option<String> {
        if self.is_good() {
            return None;
        }
        let first = self.doctor.as_ref().and_then(|doctor| doctor.first.as_ref());
        let found = first.filter(|finding| finding.severity != "note");
        let found = found.map(|found| format!("{}, {}: {}", found.id, found.title, found.seen));
        let failed = self.failure.clone().or_else(|| self.first_failure());
        let known: Vec<String> = found.into_iter().chain(failed).collect();
        let missing = || "not all of it ran".to_owned();
        Some(if known.is_empty() { missing() } else { known.join("; ") })
    }

    fn first_failure(&self) -> Option<String> {
        let case = self.conformance.failures.first();
        let case = case.map(|failure| format!("{}: {}", failure.case, failure.reason));
        let missing = self.conformance.missing;
        let missing = (missing > 0).then(|| format!("{missing} cases did not end"));
        let mut patterns = self.patterns.iter().chain(&self.libfabric);
        let pattern = patterns.find(|pattern| !pattern.passed);
        let pattern = pattern.map(|pattern| format!("{}: {}", pattern.name, pattern.said));
        let unnamed = self.mismatches.iter().find(|mismatch| !mismatch.is_named());
        let unnamed = unnamed.map(|mismatch| {
            let found = mismatch.found.as_ref().map_or("nothing", |finding| &finding.id);
            format!("{}: {} expected, {found} found", mismatch.name, mismatch.expected)
        });
        case.or(missing).or(pattern).or(unnamed).or_else(|| self.bad_end())
    }

    /// A step that failed, whatever it wrote before.
    fn bad_end(&self) -> Option<String> {
        let bad = STEPS.iter().find(|step| self.codes.get(**step) != Some(&0))?;
        Some(match self.codes.get(*bad) {
            Some(code) => format!("{bad} ended with {code}"),
            None => format!("{bad} did not end"),
        })
    }
}

/// How many passed.
pub(super) fn count(patterns: &[Pattern]) -> usize {
    patterns.iter().filter(|pattern| pattern.passed).count()
}

/// Cells for tests of what is made of them.
#[cfg(test)]
pub(super) mod samples {
    use super::*;

    pub(in super::super) fn finding(id: &str, severity: &str) -> Finding {
        let (title, seen) = ("no driver".into(), "lib | missing".into());
        let command = "apt-get install it".into();
        Finding { id: id.into(), severity: severity.into(), title, seen, command }
    }

    pub(in super::super) fn patterns(passed: bool) -> Vec<Pattern> {
        let pattern = |name: &str| Pattern { name: name.into(), passed, said: "as it was".into() };
        ["PUB/SUB", "PUSH/PULL", "REQ/REP"].map(pattern).into()
    }

    pub(in super::super) fn good(kernel: &str, stack: &str) -> Cell {
        let found = Some(finding("D01", "error"));
        Cell {
            kernel: kernel.into(),
            stack: stack.into(),
            taken_at: 1_796_000_000,
            commit: "abc1234".into(),
            release: "6.12.118+deb13-amd64".into(),
            version: "#1 SMP Debian 6.12.118-1".into(),
            packages: BTreeMap::from([("libibverbs1".into(), "56.1-1".into())]),
            seconds: 90,
            codes: STEPS.map(|step| (step.to_owned(), 0)).into(),
            doctor: Some(Doctor { verdict: "good".into(), uses: Some("rxe0".into()), first: None }),
            conformance: Suite { passed: 155, ..Suite::default() },
            patterns: patterns(true),
            libfabric: patterns(true),
            mismatches: vec![Mismatch { name: "no-driver".into(), expected: "D01".into(), found }],
            failure: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{finding, good, patterns};
    use super::*;

    #[test]
    fn a_cell_is_good_when_everything_is() {
        assert!(good("6.12", "56").is_good());
        let spoil: [fn(&mut Cell); 8] = [
            |cell| cell.codes.clear(),
            |cell| cell.failure = Some("panic".into()),
            |cell| cell.doctor = None,
            |cell| cell.conformance.missing = 1,
            |cell| cell.conformance.passed = 0,
            |cell| cell.patterns = patterns(false),
            |cell| cell.libfabric.truncate(2),
            |cell| cell.mismatches[0].found = Some(finding("D02", "error")),
        ];
        for change in spoil {
            let mut cell = good("6.12", "56");
            change(&mut cell);
            assert!(cell.explanation().is_some_and(|why| !why.is_empty()), "{cell:?}");
        }
    }

    #[test]
    fn what_the_doctor_found_explains_what_failed() {
        let mut cell = good("6.12", "56");
        assert_eq!(cell.explanation(), None);
        cell.conformance.failed = 1;
        cell.conformance.failures = vec![Failure { case: "a".into(), reason: "b".into() }];
        let mut explained = |severity: &str| {
            let first = Some(finding("D43", severity));
            cell.doctor = Some(Doctor { verdict: "warnings".into(), uses: None, first });
            cell.explanation().unwrap()
        };
        assert_eq!(explained("note"), "a: b");
        assert_eq!(explained("warning"), "D43, no driver: lib | missing; a: b");
    }

    #[test]
    fn a_program_that_crashed_at_its_end_is_told_by_its_code() {
        let mut cell = good("6.12", "56");
        cell.codes.insert("patterns".into(), 139);
        assert_eq!(cell.explanation().unwrap(), "patterns ended with 139");
    }

    #[test]
    fn a_mismatch_that_was_not_named_says_what_was() {
        let mut cell = good("6.12", "56");
        cell.mismatches[0].found = None;
        assert_eq!(cell.explanation().unwrap(), "no-driver: D01 expected, nothing found");
    }
}
