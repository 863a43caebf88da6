//! Tables for people.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{HumanBytes, HumanCount};

use super::Line;

/// The lines as a table; figures stand at the right.
pub(super) fn table<L: Line>(lines: &[L]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(L::HEADER.iter().copied());
    for line in lines {
        table.add_row(line.cells().iter().map(|cell| plain(cell)));
    }
    for column in L::WORDS..L::HEADER.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// What a foreign process calls itself must not command the terminal.
fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// So many a second; what is less than ten has a decimal.
pub(super) fn rate(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { count(rate.round()) }
}

/// So many.
pub(super) fn count(number: f64) -> String {
    HumanCount(number as u64).to_string()
}

/// So many bytes.
pub(super) fn bytes(number: f64) -> String {
    HumanBytes(number as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_command_the_terminal() {
        assert_eq!(plain("a\x1b[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn small_rates_have_a_decimal() {
        assert_eq!(
            [0.0, 0.26, 9.94, 12.6, 1234567.0].map(rate),
            ["0", "0.3", "9.9", "13", "1,234,567"]
        );
    }
}
