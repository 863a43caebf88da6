//! What ran: one line of JSON for each case, appended to the file that `FABRIC_CONFORMANCE_LEDGER`
//! names.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::Outcome;

/// The environment variable that names the file.
pub const VARIABLE: &str = "FABRIC_CONFORMANCE_LEDGER";

#[derive(Serialize)]
struct Line<'a> {
    provider: &'a str,
    case: &'a str,
    group: &'a str,
    outcome: &'static str,
    reason: Option<&'a str>,
}

/// Writes down how a case ended, if somebody wants to know.
///
/// # Errors
/// When the file cannot be opened or written.
pub(crate) fn record(provider: &str, case: &str, group: &str, outcome: &Outcome) -> io::Result<()> {
    let Some(path) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let (outcome, reason) = match outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed(reason) => ("failed", Some(reason.as_str())),
        Outcome::Skipped(reason) => ("skipped", Some(reason.as_str())),
    };
    append(Path::new(&path), &Line { provider, case, group, outcome, reason })
}

/// One write in append mode, so that lines of several processes do not mix.
fn append(path: &Path, line: &Line<'_>) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    OpenOptions::new().create(true).append(true).open(path)?.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_one_line_of_json() {
        let path = std::env::temp_dir().join(format!("ledger-{}", std::process::id()));
        let line =
            |reason| Line { provider: "p", case: "c", group: "g", outcome: "failed", reason };
        append(&path, &line(Some("two\nlines"))).unwrap();
        append(&path, &line(None)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let values: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(values.len(), 2);
        assert_eq!(values[0]["reason"], "two\nlines");
        assert_eq!(values[1]["outcome"], "failed");
    }
}
