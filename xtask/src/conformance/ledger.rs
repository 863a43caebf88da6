//! What the suite wrote: one line of JSON for each case on each provider.

use serde::Deserialize;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Entry {
    /// Who was tested.
    pub(crate) provider: String,
    /// With which case.
    pub(crate) case: String,
    /// How it ended.
    pub(crate) outcome: Ended,
    /// Why it was skipped or how it failed.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// As it should.
    Passed,
    /// Not as it should.
    Failed,
    /// It did not run.
    Skipped,
}

/// Reads a ledger.
///
/// # Errors
/// With the number of the line that is none: a line cut short is a test that died.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line)
                .map_err(|error| format!("ledger, line {}: {error}", index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_entry() {
        let text = "{\"provider\":\"sim\",\"case\":\"a\",\"group\":\"g\",\"outcome\":\"skipped\",\"reason\":\"r\"}\n\n";
        let entries = parse(text).unwrap();
        assert_eq!((entries[0].outcome, entries[0].reason.as_deref()), (Ended::Skipped, Some("r")));
    }

    #[test]
    fn a_line_cut_short_is_an_error() {
        assert!(parse("{\"provider\":\"sim\",\"ca").unwrap_err().contains("line 1"));
    }
}
