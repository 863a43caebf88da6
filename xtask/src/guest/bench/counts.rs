//! What a round trip costs one side besides time: system calls and instructions.
//!
//! Each is the difference between a long and a short run, so that starting and connecting cancel
//! out. Times are noisy where machines are; these are not.

use std::path::PathBuf;

use super::contender::{Contender, Mode, Place};
use super::pair;

const SHORT: u32 = 500;
const LONG: u32 = 1500;

/// Counts for each round trip, where they could be had.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) contender: Contender,
    /// System calls of a side that polls.
    pub(super) polling_calls: Option<f64>,
    /// System calls of a side that sleeps.
    pub(super) sleeping_calls: Option<f64>,
    /// Instructions outside the kernel of a side that sleeps; polling would count the time, too.
    pub(super) instructions: Option<f64>,
}

/// Counts at the client, which sends one message a trip and receives one.
pub(super) fn of(place: &Place, contender: Contender) -> Counts {
    println!("counting {}", contender.name());
    let calls = |mode| slope(|trips| perf(place, contender, mode, trips, "raw_syscalls:sys_enter"));
    let counted = slope(|trips| perf(place, contender, Mode::Sleeping, trips, "instructions:u"));
    Counts {
        contender,
        polling_calls: told(calls(Mode::Polling)),
        sleeping_calls: told(calls(Mode::Sleeping)),
        instructions: told(counted.or_else(|_| slope(|trips| callgrind(place, contender, trips)))),
    }
}

fn told(count: Result<f64, String>) -> Option<f64> {
    count.inspect_err(|why| eprintln!("not available: {why}")).ok()
}

fn slope(count: impl Fn(u32) -> Result<u64, String>) -> Result<f64, String> {
    let (short, long) = (count(SHORT)?, count(LONG)?);
    Ok((long as f64 - short as f64) / f64::from(LONG - SHORT))
}

/// Counted by the kernel or the processor.
fn perf(
    place: &Place,
    contender: Contender,
    mode: Mode,
    trips: u32,
    event: &str,
) -> Result<u64, String> {
    let file = scratch_file();
    let name = file.to_string_lossy();
    let wrapper = ["perf", "stat", "-x,", "-o", &name, "-e", event];
    let ran = pair::run(place, contender, mode, trips, &wrapper);
    let report = std::fs::read_to_string(&file).unwrap_or_default();
    // Fails only if perf did not write it.
    let _ = std::fs::remove_file(&file);
    ran?;
    perf_count(&report, event).ok_or_else(|| format!("perf counts no {event} here"))
}

fn perf_count(report: &str, event: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains(event))?;
    line.split(',').next()?.parse().ok()
}

/// Counted by running the program on a processor made of software.
fn callgrind(place: &Place, contender: Contender, trips: u32) -> Result<u64, String> {
    let wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = pair::run(place, contender, Mode::Sleeping, trips, &wrapper)?;
    collected(&output).ok_or_else(|| format!("callgrind printed no count:\n{output}"))
}

fn collected(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains("Collected :"))?;
    line.split_whitespace().last()?.parse().ok()
}

fn scratch_file() -> PathBuf {
    std::env::temp_dir().join(format!("bench-verbs-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_costs_cancel_out() {
        assert_eq!(slope(|trips| Ok(70_000 + 3 * u64::from(trips))), Ok(3.0));
    }

    #[test]
    fn counts_are_read_where_there_are_any() {
        let report = "# started on\n\n229942,,raw_syscalls:sys_enter,5344608108,100.00,,\n\
                      <not supported>,,instructions:u,0,100.00,,\n";
        assert_eq!(perf_count(report, "raw_syscalls:sys_enter"), Some(229_942));
        assert_eq!(perf_count(report, "instructions:u"), None);
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 229767\n"), Some(229_767));
    }
}
