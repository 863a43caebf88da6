//! What the guest says: its reports on how far it is, and its kernel's messages.

use std::fs;
use std::path::{Path, PathBuf};

/// A line of the guest's third port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The link is up and the command begins.
    Ready,
    /// It still runs.
    Beat,
    /// The command ended with this status.
    Exit(u8),
    /// An order was carried out.
    Done {
        /// The order's number.
        number: u32,
        /// The status it ended with.
        code: u8,
    },
    /// There will be no link, and no command.
    Failed(String),
}

/// The file into which the guest's reports are written, read as it grows.
#[derive(Debug)]
pub(super) struct Reports {
    path: PathBuf,
    read_bytes: usize,
}

impl Reports {
    /// Of a file that need not exist yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read_bytes: 0 }
    }

    /// The reports that came since the last call. An incomplete line is left for the next.
    pub(super) fn fresh(&mut self) -> Vec<Report> {
        let text = fs::read(&self.path).unwrap_or_default();
        let fresh = String::from_utf8_lossy(text.get(self.read_bytes..).unwrap_or_default());
        let Some(end) = fresh.rfind('\n') else { return Vec::new() };
        self.read_bytes += end + 1;
        fresh[..end].lines().filter_map(parse).collect()
    }
}

fn parse(line: &str) -> Option<Report> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "ready" => Some(Report::Ready),
        "beat" => Some(Report::Beat),
        "exit" => rest.parse().ok().map(Report::Exit),
        "done" => done(rest),
        "failed" => Some(Report::Failed(rest.to_owned())),
        _ => None,
    }
}

fn done(words: &str) -> Option<Report> {
    let (number, code) = words.split_once(' ')?;
    Some(Report::Done { number: number.parse().ok()?, code: code.parse().ok()? })
}

/// The last words of a kernel that gave up.
pub(super) fn panic_in(console: &Path) -> Option<String> {
    const SIGNS: [&str; 3] = ["Kernel panic", "guest: ", "Oops: "];
    let text = lossy(console);
    let line = SIGNS.iter().find_map(|sign| text.lines().find(|line| line.contains(sign)))?;
    Some(line.trim().to_owned())
}

/// The last `count` lines of the kernel's messages.
pub(super) fn tail(console: &Path, count: usize) -> String {
    let text = lossy(console);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn lossy(console: &Path) -> String {
    String::from_utf8_lossy(&fs::read(console).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("guest-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn each_report_is_read_once_and_only_when_complete() {
        let path = file("reports", "ready\nbeat\nex");
        let mut reports = Reports::new(path.clone());
        assert_eq!(reports.fresh(), [Report::Ready, Report::Beat]);
        assert_eq!(reports.fresh(), []);
        fs::write(&path, "ready\nbeat\nexit 7\nfailed no link\nnonsense\nexit x\n").unwrap();
        let failed = Report::Failed("no link".into());
        assert_eq!(reports.fresh(), [Report::Exit(7), failed]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_order_that_was_carried_out_is_reported_with_its_number() {
        let path = file("orders", "done 12 130\ndone 3\ndone x 1\ndone 4 256\n");
        let done = Report::Done { number: 12, code: 130 };
        assert_eq!(Reports::new(path.clone()).fresh(), [done]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_panic_is_named_rather_than_what_led_to_it() {
        let text = "[1] Oops: 0000\r\n[1] Kernel panic - not syncing: Fatal\r\n[1] end\r\n\r\n";
        let path = file("panic", text);
        assert_eq!(panic_in(&path).unwrap(), "[1] Kernel panic - not syncing: Fatal");
        assert_eq!(tail(&path, 1), "[1] end");
        fs::write(&path, "all well").unwrap();
        assert_eq!(panic_in(&path), None);
        fs::remove_file(path).unwrap();
    }
}
