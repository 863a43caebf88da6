//! Where and when something was run.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs())
}

/// The day in UTC, by the calendar's own arithmetic (proleptic Gregorian, days since 1970-01-01).
pub(crate) fn date(seconds: u64) -> String {
    let mut days = seconds / 86_400;
    let mut year = 1970;
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = if leap { 366 } else { 365 };
        if days < length {
            return month_and_day(year, days, leap);
        }
        days -= length;
        year += 1;
    }
}

fn month_and_day(year: u64, mut days: u64, leap: bool) -> String {
    let february = if leap { 29 } else { 28 };
    for (month, length) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].iter().enumerate()
    {
        if days < *length {
            return format!("{year}-{:02}-{:02}", month + 1, days + 1);
        }
        days -= length;
    }
    format!("{year}-12-31")
}

/// The processor's model.
pub(crate) fn processor() -> String {
    let text = read("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_owned())
}

/// The release of this host's kernel.
pub(crate) fn kernel() -> String {
    read("/proc/sys/kernel/osrelease")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The commit that is checked out, and whether files differ from it.
pub(crate) fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_found_from_seconds() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }
}
