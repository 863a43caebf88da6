//! Reads what a guest wrote about a cell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::cell::{Cell, Doctor, Failure, Finding, Mismatch, Pattern, Suite};
use crate::conformance::ledger::{self, Ended, Entry};

/// What is wrong on purpose, and the finding that must name it first.
const MISMATCHES: &[(&str, &str)] =
    &[("no-driver", "D01"), ("strange-driver", "D01"), ("no-device-file", "D11")];

const PATTERNS: [&str; 3] = ["PUB/SUB", "PUSH/PULL", "REQ/REP"];

/// Whether a cell was begun.
pub(super) fn is_begun(dir: &Path) -> bool {
    dir.exists()
}

/// Whether it came to its end.
pub(super) fn is_done(dir: &Path) -> bool {
    dir.join("done").exists()
}

/// What the guest says of itself, in a file of the row's directory.
pub(super) fn said(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_default().trim().to_owned()
}

/// Everything that is in the directory; what is missing there did not run.
pub(super) fn cell(dir: &Path) -> Cell {
    Cell {
        taken_at: said(dir, "taken_at").parse().unwrap_or_default(),
        commit: said(dir, "commit"),
        seconds: said(dir, "seconds").parse().unwrap_or_default(),
        codes: codes(&said(dir, "ended")),
        doctor: doctor(&said(dir, "doctor.out")),
        conformance: suite(&said(dir, "conformance.out"), &said(dir, "ledger.jsonl")),
        patterns: step_patterns(dir, "patterns"),
        libfabric: step_patterns(dir, "libfabric"),
        mismatches: MISMATCHES.iter().map(|(name, id)| mismatch(dir, name, id)).collect(),
        ..Cell::default()
    }
}

/// A line for each step: name and exit code.
fn codes(text: &str) -> BTreeMap<String, i32> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, code)| Some((name.to_owned(), code.parse().ok()?))).collect()
}

fn mismatch(dir: &Path, name: &str, expected: &str) -> Mismatch {
    let found = doctor(&said(dir, &format!("{name}.out"))).and_then(|doctor| doctor.first);
    Mismatch { name: name.to_owned(), expected: expected.to_owned(), found }
}

fn doctor(json: &str) -> Option<Doctor> {
    let report: Value = serde_json::from_str(json).ok()?;
    let choices = report["choices"].as_array()?;
    let verbs = choices.iter().find(|choice| choice["scheme"] == "verbs");
    let uses = verbs.and_then(|choice| choice["uses"].as_str()).map(str::to_owned);
    let first = report["findings"].get(0).map(finding);
    Some(Doctor { verdict: report["verdict"].as_str()?.to_owned(), uses, first })
}

fn finding(finding: &Value) -> Finding {
    let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    Finding {
        id: text("id"),
        severity: text("severity"),
        title: text("title"),
        seen: text("seen"),
        command: text("command"),
    }
}

/// The ledger says how cases ended, the test program how many there are.
fn suite(output: &str, ledger: &str) -> Suite {
    // A guest that dies may cut the last line short.
    let complete = ledger.lines().filter_map(|line| ledger::parse(line).ok()).flatten();
    let entries: Vec<Entry> = complete.collect();
    let of = |ended: Ended| entries.iter().filter(|entry| entry.outcome == ended).count();
    let failed = entries.iter().filter(|entry| entry.outcome == Ended::Failed);
    Suite {
        passed: of(Ended::Passed),
        failed: of(Ended::Failed),
        skipped: of(Ended::Skipped),
        missing: listed(output).saturating_sub(entries.len()),
        failures: failed.map(failure).collect(),
    }
}

fn failure(entry: &Entry) -> Failure {
    let reason = entry.reason.as_deref().unwrap_or("no reason given");
    let reason = reason.lines().next().unwrap_or_default().to_owned();
    Failure { case: entry.case.clone(), reason }
}

/// `running 155 tests`, as test programs begin.
fn listed(output: &str) -> usize {
    let line = output.lines().find_map(|line| line.strip_prefix("running "));
    line.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or_default()
}

fn step_patterns(dir: &Path, step: &str) -> Vec<Pattern> {
    let (table, errors) = (said(dir, &format!("{step}.out")), said(dir, &format!("{step}.err")));
    if table.is_empty() && errors.is_empty() {
        return Vec::new();
    }
    patterns(&table, errors.lines().last().unwrap_or("it did not end"))
}

/// The demo prints a row for each process of the patterns that came to their end.
fn patterns(table: &str, error: &str) -> Vec<Pattern> {
    let mut why = error;
    let pattern = |name: &&str| {
        let checks: Vec<&str> = table.lines().filter_map(|line| check_of(line, name)).collect();
        let wrong = checks.iter().find(|check| !check.starts_with('✓'));
        let passed = !checks.is_empty() && wrong.is_none();
        let said = match (wrong, passed) {
            (Some(check), _) => (*check).to_owned(),
            (None, true) => format!("{} processes", checks.len()),
            (None, false) => std::mem::replace(&mut why, "not tried").to_owned(),
        };
        Pattern { name: (*name).to_owned(), passed, said }
    };
    PATTERNS.iter().map(pattern).collect()
}

/// The last column of a row, if the row is of that pattern.
fn check_of<'a>(line: &'a str, pattern: &str) -> Option<&'a str> {
    let columns: Vec<&str> = line.trim_matches('│').split('┆').map(str::trim).collect();
    (columns.first() == Some(&pattern)).then(|| columns.last().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
┌──────────┬─────────┐
│ pattern  ┆ check   │
╞══════════╪═════════╡
│ PUB/SUB  ┆ ✓ 1 of 1 │
│ PUB/SUB  ┆ ✓ 2 of 2 │
│ PUSH/PULL ┆ ✗ 1 of 2 │
└──────────┴─────────┘
";

    #[test]
    fn a_pattern_passed_when_each_of_its_processes_did() {
        let patterns = patterns(TABLE, "error: no such device");
        let passed: Vec<bool> = patterns.iter().map(|pattern| pattern.passed).collect();
        assert_eq!(passed, [true, false, false]);
        assert_eq!(patterns[0].said, "2 processes");
        assert_eq!(patterns[1].said, "✗ 1 of 2");
        assert_eq!(patterns[2].said, "error: no such device");
    }

    #[test]
    fn what_came_after_the_pattern_that_failed_was_not_tried() {
        let patterns = patterns("", "error: no such device");
        assert_eq!(patterns[0].said, "error: no such device");
        assert_eq!(patterns[2].said, "not tried");
    }

    #[test]
    fn cases_without_an_end_are_missed_and_failures_have_reasons() {
        let line = |case: &str, outcome: &str| {
            format!(
                r#"{{"provider":"verbs","case":"{case}","group":"g","outcome":"{outcome}","reason":"one\ntwo"}}"#
            )
        };
        let ledger = [line("a", "passed"), line("b", "failed"), "{\"provider\":\"ve".into()];
        let suite = suite("\nrunning 4 tests\ntest a ... ok\n", &ledger.join("\n"));
        assert_eq!((suite.passed, suite.failed, suite.skipped, suite.missing), (1, 1, 0, 2));
        assert_eq!(suite.failures[0].reason, "one");
        assert!(!suite.is_good());
    }

    fn report(findings: &str) -> String {
        let choices = r#"[{"scheme":"tcp","uses":"any"},{"scheme":"verbs","uses":"rxe0 port 1"}]"#;
        format!(r#"{{"verdict":"errors","choices":{choices},"findings":{findings}}}"#)
    }

    const D01: &str =
        r#"[{"id":"D01","severity":"error","title":"t","seen":"s","command":"c"},{"id":"D32"}]"#;
    const D11: &str = r#"[{"id":"D11","severity":"error","title":"t","seen":"s","command":"c"}]"#;

    #[test]
    fn the_doctors_first_finding_is_the_one_that_counts() {
        let told = doctor(&report(D01)).unwrap();
        assert_eq!(told.uses.as_deref(), Some("rxe0 port 1"));
        assert_eq!(told.first.unwrap().id, "D01");
        assert_eq!(doctor(&report("[]")).unwrap().first, None);
        assert_eq!(doctor("fabric: not found"), None);
    }

    #[test]
    fn each_mismatch_has_a_finding_of_its_own() {
        let dir = std::env::temp_dir().join(format!("mismatches-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for (name, findings) in
            [("no-driver", D01), ("strange-driver", D11), ("no-device-file", D11)]
        {
            fs::write(dir.join(format!("{name}.out")), report(findings)).unwrap();
        }
        let named: Vec<_> = cell(&dir).mismatches.iter().map(Mismatch::is_named).collect();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(named, [true, false, true]);
    }

    #[test]
    fn each_step_has_an_exit_code() {
        let codes = codes("doctor 0\nconformance 139\npatt");
        assert_eq!((codes.len(), codes["doctor"], codes["conformance"]), (2, 0, 139));
    }

    #[test]
    fn a_directory_with_nothing_in_it_is_a_cell_in_which_nothing_ran() {
        let read = cell(Path::new("/no such directory"));
        assert!(read.doctor.is_none() && read.patterns.is_empty() && !read.is_good());
        assert_eq!(read.conformance, Suite::default());
    }
}
