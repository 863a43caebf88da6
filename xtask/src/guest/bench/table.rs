//! The figures as tables.

use comfy_table::{ContentArrangement, Table};

use super::Turn;
use super::contender::Contender;
use super::counts::Counts;
use super::verdict::{median, ratio, word};

/// Every round, and what follows from them.
pub(super) fn turns(turns: &[Turn]) -> Table {
    let mut table = plain("round trip of 64 bytes, µs");
    for (round, turn) in (1..).zip(turns) {
        table.add_row(row(&format!("round {round}"), turn.map(micros)));
    }
    let over = |summary: fn(&[f64]) -> f64| {
        Contender::ALL.map(|contender| {
            let values: Vec<f64> = turns.iter().map(|turn| turn[contender as usize]).collect();
            micros(summary(&values))
        })
    };
    table.add_row(row("median", over(|values| median(values.iter().copied()))));
    table.add_row(row("min", over(|values| values.iter().copied().fold(f64::INFINITY, f64::min))));
    table.add_row(row("max", over(|values| values.iter().copied().fold(0.0, f64::max))));
    let ratios = Contender::ALL.map(|contender| format!("{:.2}", ratio(turns, contender)));
    table.add_row(row("median of ratios", ratios));
    let verdicts = Contender::ALL.map(|contender| match contender.target() {
        Some(target) => format!("{target}: {}", word(ratio(turns, contender), target)),
        None => String::new(),
    });
    table.add_row(row("target", verdicts));
    table
}

/// What a trip costs the side that measures, besides time.
pub(super) fn counts(counts: &[Counts; Contender::ALL.len()]) -> Table {
    let mut table = plain("for each round trip, at the client");
    let each = |value: fn(&Counts) -> Option<f64>| counts.each_ref().map(|one| number(value(one)));
    debug_assert!(counts.iter().map(|one| one.contender).eq(Contender::ALL));
    table.add_row(row("system calls, polling", each(|one| one.polling_calls)));
    table.add_row(row("system calls, sleeping", each(|one| one.sleeping_calls)));
    table.add_row(row("instructions outside the kernel, sleeping", each(|one| one.instructions)));
    table
}

fn plain(title: &str) -> Table {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(row(title, Contender::ALL.map(|contender| contender.name().to_owned())));
    table
}

fn row(name: &str, cells: [String; Contender::ALL.len()]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn micros(value: f64) -> String {
    format!("{value:.2}")
}

fn number(value: Option<f64>) -> String {
    value.map_or("not available".to_owned(), |value| format!("{value:.2}"))
}
