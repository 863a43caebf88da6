//! `cargo xtask bench-verbs`: what a message of 64 bytes costs over `verbs://`, beside perftest's
//! `ib_send_lat` on the same link in the same run.
//!
//! Each contender is two processes on a processor each, which poll. They take turns, so that whatever
//! slows the machine down meets all of them.

mod build;
mod contender;
mod counts;
mod inside;
mod pair;
mod table;
mod verdict;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::Options;
use crate::report::Outcome;
use contender::{Contender, Mode, Place};

/// `cargo xtask bench-verbs [OPTIONS]`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BenchArguments {
    /// Measure on this device of this host instead of in a guest
    #[arg(long, value_name = "NAME", requires = "address")]
    device: Option<String>,
    /// An IP address of that device
    #[arg(long, requires = "device")]
    address: Option<IpAddr>,
    /// How often each contender has its turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Round trips of a turn
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(100..))]
    iterations: u32,
    /// The processors of the two processes
    #[arg(long, default_value = "0,1", value_name = "A,B", value_parser = cpus)]
    cpus: (u32, u32),
    #[command(flatten)]
    guest: Options,
    /// Programs that were built before: over domains, and over REQ/REP
    #[arg(long, hide = true, num_args = 2)]
    programs: Vec<PathBuf>,
}

/// Measures, prints all figures, and fails when one misses its target.
pub(crate) fn bench(root: &Path, arguments: &BenchArguments) -> Outcome {
    let programs = match &arguments.programs[..] {
        [domain, requests] => {
            build::Programs { domain: domain.clone(), requests: requests.clone() }
        }
        _ => build::programs(root)?,
    };
    match (&arguments.device, arguments.address) {
        (Some(device), Some(address)) => {
            let (device, cpus) = (device.clone(), arguments.cpus);
            measure(&Place { device, address, cpus, programs }, arguments)
        }
        _ => inside::run(root, arguments, &programs),
    }
}

fn measure(place: &Place, arguments: &BenchArguments) -> Outcome {
    let turns = turns(place, arguments)?;
    println!("{}", table::turns(&turns));
    let counts = Contender::ALL.map(|contender| counts::of(place, contender));
    println!("{}", table::counts(&counts));
    verdict::of(&turns)
}

/// A round's results, one of each contender, in microseconds for a round trip.
type Turn = [f64; Contender::ALL.len()];

fn turns(place: &Place, arguments: &BenchArguments) -> Result<Vec<Turn>, String> {
    let mut turns = Vec::new();
    for round in 1..=arguments.rounds {
        println!("round {round} of {}", arguments.rounds);
        let mut turn = Turn::default();
        for (contender, micros) in Contender::ALL.into_iter().zip(&mut turn) {
            let trips = arguments.iterations;
            let output = pair::run(place, contender, Mode::Polling, trips, &[])?;
            *micros = contender.median_micros(&output)?;
        }
        turns.push(turn);
    }
    Ok(turns)
}

fn cpus(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    pair.ok_or_else(|| "write two numbers like 0,1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_come_in_pairs() {
        assert_eq!(cpus("2,3"), Ok((2, 3)));
        assert!(cpus("2").is_err() && cpus("a,b").is_err());
    }
}
