//! The tables of the report, as rows of text.

use std::collections::BTreeSet;

use comfy_table::Table as TextTable;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::super::cells::Test;
use super::super::metric::Metric;
use super::super::results::{Entry, Results, Row, Stat};
use super::super::targets::{Judged, Verdict};
use crate::circumstances::date;

/// Rows of text below a head.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let mut table = TextTable::new();
        table.load_style(UTF8_FULL_CONDENSED).set_header(&self.head);
        for row in &self.rows {
            table.add_row(row);
        }
        table.to_string()
    }
}

/// Targets of the cells that were measured, and what became of them.
pub(super) fn targets(results: &Results) -> Table {
    let measured = results.targets.iter().filter(|one| results.cell(&one.cell).is_some());
    let head = ["cell", "figure", "fabric", "compared with", "ratio", "must", "aim", "verdict"];
    Table { head: head.map(String::from).into(), rows: measured.map(target).collect() }
}

fn target(one: &Judged) -> Vec<String> {
    let some = |value: Option<f64>| value.map_or_else(|| "–".into(), short);
    let theirs = match (one.of.as_str(), one.theirs) {
        ("one", _) => "itself".into(),
        (of, theirs) => format!("{} {of}", some(theirs)),
    };
    let ratio = if one.of == "one" { String::new() } else { some(one.ratio) };
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        one.cell.clone(),
        one.metric.title().into(),
        some(one.ours),
        theirs,
        ratio,
        or_nothing(&one.must),
        or_nothing(&one.aim),
        words(one).into(),
    ]
}

fn words(one: &Judged) -> &'static str {
    match (one.verdict, one.aim.is_some(), one.must.is_some()) {
        (Verdict::AimMet, true, _) => "met, and the aim",
        (Verdict::AimMet, false, _) | (Verdict::Met, _, true) => "met",
        (Verdict::Met, _, false) => "aim not met",
        (Verdict::NotMet, ..) => "NOT MET",
        (Verdict::NotMeasured, ..) => "not measured",
    }
}

/// One table a measurement: a line for each contender in each of its cells.
pub(super) fn figures(results: &Results) -> Vec<(&'static str, Table)> {
    let tests = [
        (Test::Lat, "Round trips"),
        (Test::Bw, "One-way streams"),
        (Test::Fanout, "Fan-out"),
        (Test::Idle, "Silent peers"),
    ];
    let named = tests.map(|(test, title)| (title, of(results, test)));
    named.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}

fn of(results: &Results, test: Test) -> Table {
    let cells: Vec<&Row> = results.cells.iter().filter(|row| row.test == test).collect();
    let entries = cells.iter().flat_map(|row| &row.contenders);
    let metrics: BTreeSet<Metric> =
        entries.flat_map(|entry| entry.figures.keys().copied()).collect();
    let mut head = vec!["cell".to_owned(), "contender".to_owned()];
    head.extend(metrics.iter().map(|metric| metric.title().to_owned()));
    let line = |row: &Row, entry: &Entry| {
        let mut cells = vec![row.cell.clone(), entry.contender.name().to_owned()];
        cells.extend(metrics.iter().map(|metric| figure(entry, *metric)));
        cells
    };
    let lines = cells.iter().flat_map(|row| row.contenders.iter().map(|entry| line(row, entry)));
    Table { head, rows: lines.collect() }
}

fn figure(entry: &Entry, metric: Metric) -> String {
    let Some(Stat { median, min, max, .. }) = entry.figures.get(&metric) else {
        return String::new();
    };
    format!("{} ({}–{})", short(*median), short(*min), short(*max))
}

/// Who has no figures or not all, with the reason.
pub(super) fn left_out(results: &Results) -> Vec<String> {
    let failed = results.cells.iter().flat_map(|row| {
        let failed =
            row.contenders.iter().filter_map(|entry| Some((entry, entry.failed.as_ref()?)));
        failed.map(|(entry, why)| format!("{}, {}: {why}", row.cell, entry.contender.name()))
    });
    results.left_out.iter().cloned().chain(failed).collect()
}

/// Where and how it was measured.
pub(super) fn circumstances(results: &Results) -> String {
    let pinned = match results.pin {
        Some((client, server)) => format!(", client on {client} and server on {server}"),
        None => String::new(),
    };
    format!(
        "Commit {}, {} × {}, Linux {}{pinned}; {} turns of each contender, in turns; median \
         (smallest–largest). Taken on {}, {} s.",
        results.commit,
        results.processors,
        results.processor,
        results.kernel,
        results.repetitions,
        date(results.taken_at),
        results.seconds
    )
}

/// Three digits that count.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 999_500.0 => format!("{:.2} M", value / 1e6),
        v if v >= 9_995.0 => format!("{:.1} k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::results;
    use super::*;

    #[test]
    fn figures_are_short() {
        let cases = [(0.0444, "0.044"), (23.14, "23.1"), (12_345.0, "12.3 k"), (3.1e6, "3.10 M")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn every_line_is_as_long_as_its_head() {
        let results = results();
        let all = figures(&results).into_iter().map(|(_, table)| table);
        for table in all.chain([targets(&results)]) {
            assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
        }
        assert!(left_out(&results).iter().any(|line| line.ends_with("it <broke>")));
    }
}
