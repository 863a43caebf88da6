//! The report of all cells that have run: for programs as it is, for people as tables.

use serde::Serialize;

use super::cell::{Cell, Mismatch, count};
use super::grid::{Choice, ROWS, STACKS, chosen};
use crate::circumstances::{date, kernel, now, processor};
use crate::report::Outcome;

/// Everything that is known.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Raised when a field changes its meaning.
    format: u32,
    /// Seconds since 1970.
    written_at: u64,
    /// The host: its processors, and its own kernel.
    machine: String,
    cells: Vec<Cell>,
}

impl Report {
    /// Of cells in the order of their rows.
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let machine = format!("{processors} × {}, Linux {}", processor(), kernel());
        Self { format: 1, written_at: now(), machine, cells }
    }

    /// Whether all chosen cells are good.
    pub(super) fn verdict(&self, choices: &[Choice]) -> Outcome {
        let wanted = ROWS
            .iter()
            .flat_map(|row| chosen(row, choices).into_iter().map(|stack| (row.name, stack.name)));
        let (mut good, mut bad) = (0, Vec::new());
        for (row, stack) in wanted {
            match self.cell(row, stack) {
                Some(cell) if cell.is_good() => good += 1,
                Some(cell) => bad.push(format!("{row}/{stack}: {}", why(cell))),
                None => bad.push(format!("{row}/{stack} did not run")),
            }
        }
        match &bad[..] {
            [] => Ok(format!("{good} cells, all good: target/matrix/report.md")),
            [first, rest @ ..] => {
                Err(format!("{first} (and {} more; {good} cells are good)", rest.len()))
            }
        }
    }

    fn cell(&self, row: &str, stack: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.kernel == row && cell.stack == stack)
    }
}

/// The report as tables.
pub(super) fn markdown(report: &Report) -> String {
    [overview(report), cells(report), failures(report), versions(report)].concat()
}

fn overview(report: &Report) -> String {
    let mut text = format!(
        "# Kernels against user-space stacks\n\n{} of {} cells, written on {}. Guests on {}.\n\n",
        report.cells.len(),
        ROWS.len() * STACKS.len(),
        date(report.written_at),
        report.machine
    );
    text += "Cases of the conformance suite that passed on verbs, of all:\n\n";
    let stacks = STACKS.iter().map(|stack| match newest(report, stack.name, "libibverbs1") {
        Some(version) => format!("rdma-core {version}"),
        None => format!("rdma-core {}", stack.name),
    });
    text += &row(std::iter::once("kernel".to_owned()).chain(stacks));
    text += &rule(STACKS.len() + 1);
    for kernel in ROWS {
        let cells = STACKS.iter().map(|stack| short(report.cell(kernel.name, stack.name)));
        text += &row(std::iter::once(kernel_name(report, kernel.name)).chain(cells));
    }
    text
}

/// What was found under a name such as `newest`, without the distribution's part of the version.
fn newest(report: &Report, stack: &str, package: &str) -> Option<String> {
    let mut cells = report.cells.iter().filter(|cell| cell.stack == stack);
    let version = cells.find_map(|cell| cell.packages.get(package))?;
    Some(version.split('-').next().unwrap_or(version).to_owned())
}

fn kernel_name(report: &Report, name: &str) -> String {
    let mut cells = report.cells.iter().filter(|cell| cell.kernel == name);
    let cell = cells.find(|cell| !cell.version.is_empty());
    let kind = if name.ends_with("siw") { ", siw" } else { "" };
    cell.map_or_else(|| name.to_owned(), |cell| format!("{}{kind}", upstream(&cell.version)))
}

/// `6.1.192` of `#1 SMP … Debian 6.1.192-3 (2026-11-26)`.
fn upstream(version: &str) -> &str {
    let after = version.split_once("Debian ").map_or(version, |(_, after)| after);
    after.split(['-', ' ']).next().unwrap_or(after)
}

fn short(cell: Option<&Cell>) -> String {
    let Some(cell) = cell else { return "not run".to_owned() };
    let suite = &cell.conformance;
    let all = suite.passed + suite.failed + suite.skipped + suite.missing;
    let mark = if cell.is_good() { "✓" } else { "✗" };
    if all == 0 { format!("{mark} none ran") } else { format!("{mark} {} of {all}", suite.passed) }
}

fn cells(report: &Report) -> String {
    let mut text = "\nEach cell:\n\n".to_owned();
    let head = [
        "cell",
        "doctor",
        "suite: passed, failed, skipped, not ended",
        "patterns over verbs",
        "over libfabric",
        "mismatches named",
        "seconds",
        "taken",
    ];
    text += &row(head.map(str::to_owned));
    text += &rule(head.len());
    for cell in &report.cells {
        text += &row([
            format!("{}/{}", cell.kernel, cell.stack),
            doctor(cell),
            suite(cell),
            format!("{} of 3", count(&cell.patterns)),
            format!("{} of 3", count(&cell.libfabric)),
            mismatches(cell),
            cell.seconds.to_string(),
            format!("{}, {}", date(cell.taken_at), cell.commit),
        ]);
    }
    text
}

fn doctor(cell: &Cell) -> String {
    let Some(doctor) = &cell.doctor else { return "said nothing".to_owned() };
    let first = doctor.first.as_ref().map(|found| format!(", {}: {}", found.id, found.title));
    format!("{}{}", doctor.verdict, first.unwrap_or_default())
}

fn suite(cell: &Cell) -> String {
    let suite = &cell.conformance;
    format!("{}, {}, {}, {}", suite.passed, suite.failed, suite.skipped, suite.missing)
}

fn mismatches(cell: &Cell) -> String {
    let named = cell.mismatches.iter().filter(|mismatch| mismatch.is_named());
    let others = cell.mismatches.iter().filter(|mismatch| !mismatch.is_named());
    let missed = others.map(|Mismatch { name, found, .. }| {
        let found = found.as_ref().map_or("nothing", |finding| &finding.id);
        format!("; {name}: {found}")
    });
    format!("{} of {}{}", named.count(), cell.mismatches.len(), missed.collect::<String>())
}

fn failures(report: &Report) -> String {
    let bad: Vec<&Cell> = report.cells.iter().filter(|cell| !cell.is_good()).collect();
    if bad.is_empty() {
        return String::new();
    }
    let mut text = "\nWhat explains the cells that are not good:\n\n".to_owned();
    for cell in bad {
        text += &format!("- {}/{}: {}\n", cell.kernel, cell.stack, why(cell));
        for failure in &cell.conformance.failures {
            text += &format!("  - {}: {}\n", failure.case, failure.reason);
        }
        let patterns = [("verbs", &cell.patterns), ("libfabric", &cell.libfabric)];
        for (over, patterns) in patterns {
            for pattern in patterns.iter().filter(|pattern| !pattern.passed) {
                text += &format!("  - {} over {over}: {}\n", pattern.name, pattern.said);
            }
        }
    }
    text
}

fn why(cell: &Cell) -> String {
    cell.explanation().unwrap_or_default()
}

fn versions(report: &Report) -> String {
    let mut text = "\nUser spaces:\n\n".to_owned();
    let head = ["stack", "release", "libibverbs1", "librdmacm1", "libfabric1", "libc6"];
    text += &row(head.map(str::to_owned));
    text += &rule(head.len());
    for stack in STACKS {
        let version = |package: &str| {
            let mut cells = report.cells.iter().filter(|cell| cell.stack == stack.name);
            let found = cells
                .find_map(|cell| cell.packages.iter().find(|(name, _)| name.starts_with(package)));
            found.map_or_else(|| "–".to_owned(), |(_, version)| version.clone())
        };
        let libc = stack.libc.map(|suite| format!(" of {suite}")).unwrap_or_default();
        text += &row([
            stack.name.to_owned(),
            stack.suite.to_owned(),
            version("libibverbs1"),
            version("librdmacm1"),
            version("libfabric1"),
            version("libc6") + &libc,
        ]);
    }
    text + &kernels(report)
}

fn kernels(report: &Report) -> String {
    let mut text = "\nKernels:\n\n".to_owned();
    for kernel in ROWS {
        let mut cells = report.cells.iter().filter(|cell| cell.kernel == kernel.name);
        if let Some(cell) = cells.find(|cell| !cell.release.is_empty()) {
            text += &format!("- {}: {}, {}\n", kernel.name, cell.release, cell.version);
        }
    }
    text
}

fn row(columns: impl IntoIterator<Item = String>) -> String {
    let columns = columns.into_iter().map(|text| text.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", columns.collect::<Vec<_>>().join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

#[cfg(test)]
mod tests {
    use super::super::cell::samples::{finding, good, patterns};
    use super::super::cell::{Doctor, Failure};
    use super::*;

    fn report() -> Report {
        let mut bad = good("6.1-siw", "newest");
        bad.version = "#1 SMP Debian 6.1.192-3 (2026-11-26)".into();
        bad.conformance.failed = 1;
        let failure = Failure { case: "a_case".into(), reason: "it |did| not".into() };
        bad.conformance.failures.push(failure);
        bad.libfabric = patterns(false);
        bad.mismatches[0].found = Some(finding("D07", "warning"));
        let first = Some(finding("D20", "warning"));
        bad.doctor = Some(Doctor { verdict: "warnings".into(), uses: None, first });
        let cells = vec![good("6.12", "56"), bad];
        Report { format: 1, written_at: 1_796_000_000, machine: "2 × a CPU".into(), cells }
    }

    #[test]
    fn the_tables_are_what_they_were() {
        assert_eq!(markdown(&report()), include_str!("sample.md"));
    }

    #[test]
    fn programs_find_the_same_in_the_json() {
        let json: serde_json::Value = serde_json::to_value(report()).unwrap();
        assert_eq!(json["cells"][0]["conformance"]["passed"], 155);
        assert_eq!(json["cells"][1]["mismatches"][0]["found"]["id"], "D07");
    }

    #[test]
    fn a_chosen_cell_that_did_not_run_is_a_failure_and_others_are_not() {
        let report = report();
        let verdict = |cell: &str| report.verdict(&[cell.parse().unwrap()]);
        assert!(verdict("6.12/56").unwrap().starts_with("1 cells"));
        assert!(verdict("6.1-siw/newest").unwrap_err().contains("a_case"));
        assert!(verdict("6.12/44").unwrap_err().contains("did not run"));
    }
}
