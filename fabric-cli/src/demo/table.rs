//! What each process did and whether it is right.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{HumanBytes, HumanCount};

use super::data::Expected;
use crate::report::Summary;

/// One process.
pub(crate) struct Row {
    pattern: &'static str,
    process: String,
    did: String,
    summary: Summary,
    right: bool,
    checks: Vec<String>,
}

impl Row {
    /// What a process did, not checked yet.
    pub(crate) fn new(pattern: &'static str, process: &str, did: &str, summary: Summary) -> Self {
        let (process, did) = (process.into(), did.into());
        Self { pattern, process, did, summary, right: true, checks: Vec::new() }
    }

    /// Compares count, bytes and whichever checksum the process made.
    pub(crate) fn check(self, expected: &Expected) -> Self {
        let (messages, bytes) = (self.summary.messages, self.summary.bytes);
        let counted = (messages, bytes) == (expected.messages, expected.bytes);
        let count = format!("{} of {}", HumanCount(messages), HumanCount(expected.messages));
        let digest = &expected.digest;
        let ordered =
            self.summary.sha256.as_ref().map(|sum| Some(sum) == digest.ordered().as_ref());
        let any =
            self.summary.sha256_sum.as_ref().map(|sum| Some(sum) == digest.unordered().as_ref());
        let row = self.and(counted, &count);
        // A process that made no checksum was started wrongly.
        row.and(ordered.or(any).unwrap_or(false), "SHA-256")
    }

    /// Adds a check.
    pub(crate) fn and(mut self, right: bool, check: &str) -> Self {
        self.right &= right;
        self.checks.push(if right { check.into() } else { format!("WRONG: {check}") });
        self
    }

    /// Messages it counted.
    pub(crate) fn messages(&self) -> u64 {
        self.summary.messages
    }

    /// What is wrong, if anything.
    pub(crate) fn failure(&self) -> Option<String> {
        (!self.right).then(|| format!("{} ({})", self.process, self.checks.join(", ")))
    }

    fn rate(&self) -> String {
        let rate = self.summary.messages as f64 / self.summary.seconds;
        if rate.is_finite() { HumanCount(rate as u64).to_string() } else { String::new() }
    }

    fn cells(&self) -> [String; 7] {
        [
            self.pattern.into(),
            self.process.clone(),
            self.did.clone(),
            HumanCount(self.summary.messages).to_string(),
            HumanBytes(self.summary.bytes).to_string(),
            self.rate(),
            format!("{} {}", if self.right { "✓" } else { "✗" }, self.checks.join(", ")),
        ]
    }
}

/// All rows as text.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "pattern",
        "process",
        "what it does",
        "messages",
        "bytes",
        "a second",
        "check",
    ]);
    for row in rows {
        table.add_row(row.cells());
    }
    for column in [3, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use msg_patterns::Bytes;

    use super::*;

    fn row(summary: Summary, messages: &[&'static str]) -> Row {
        let messages = messages.iter().map(|text| Bytes::from_static(text.as_bytes()));
        Row::new("PUSH/PULL", "sink", "", summary).check(&Expected::of(messages))
    }

    fn summary(messages: &[&'static str]) -> Summary {
        let expected =
            Expected::of(messages.iter().map(|text| Bytes::from_static(text.as_bytes())));
        Summary {
            messages: expected.messages,
            bytes: expected.bytes,
            sha256: expected.digest.ordered(),
            ..Summary::default()
        }
    }

    #[test]
    fn what_arrived_whole_is_right() {
        assert_eq!(row(summary(&["a", "b"]), &["a", "b"]).failure(), None);
    }

    #[test]
    fn whatever_differs_is_wrong() {
        for other in [&["a"][..], &["a", "c"], &["a", "b", "b"], &["b", "a"]] {
            assert!(row(summary(other), &["a", "b"]).failure().is_some(), "{other:?}");
        }
        let unchecked = Summary { sha256: None, ..summary(&["a", "b"]) };
        assert!(row(unchecked, &["a", "b"]).failure().is_some());
    }
}
