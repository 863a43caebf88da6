//! What the programs that measure round trips share: their arguments and their result.

use std::time::Duration;

const USAGE: &str = "measures round trips of 64 bytes between two processes:
    --listen ADDR [--sleep]
    --connect ADDR [--sleep] [--trips N]
`cargo xtask bench-verbs` starts both and compares them with perftest.";

/// Bytes of a message.
pub(crate) const SIZE_BYTES: usize = 64;

/// Round trips before those that count.
pub(crate) const WARM_UP: usize = 100;

/// What one process does.
#[derive(Debug)]
pub(crate) struct Args {
    /// Which end it is.
    pub(crate) side: Side,
    /// Where.
    pub(crate) addr: String,
    /// Round trips that count.
    pub(crate) trips: usize,
    /// Sleep for a message instead of polling for it.
    pub(crate) sleep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Listen,
    Connect,
}

impl Args {
    /// `None` when it is not said which end to be; then how to use the program was printed.
    pub(crate) fn parse() -> Option<Self> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let parsed = parse(&args);
        if parsed.is_none() {
            println!("{USAGE}");
        }
        parsed
    }
}

fn parse(args: &[String]) -> Option<Args> {
    let value = |name: &str| Some(args.get(args.iter().position(|arg| arg == name)? + 1)?.clone());
    let (side, addr) = match (value("--listen"), value("--connect")) {
        (Some(addr), None) => (Side::Listen, addr),
        (None, Some(addr)) => (Side::Connect, addr),
        _ => return None,
    };
    let trips = value("--trips").map_or(Some(1000), |text| text.parse().ok())?;
    Some(Args { side, addr, trips, sleep: args.iter().any(|arg| arg == "--sleep") })
}

/// Prints the result as `cargo xtask bench-verbs` reads it, in microseconds.
pub(crate) fn report(mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| micros(times[(times.len() - 1) * percent / 100]);
    println!("min {:.2} median {:.2} p99 {:.2}", at(0), at(50), at(99));
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}
