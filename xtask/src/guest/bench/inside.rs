//! The same measurement in a guest: this program runs there once more, with the guest's device.

use std::path::Path;

use super::super::{packages, run as run_guest, script};
use super::BenchArguments;
use super::build::Programs;
use crate::report::Outcome;

/// On a processor that is polled on, the kernel's own threads get their turn only when the
/// scheduler ticks. Soft-RoCE does its work in them; a device has its own processor.
const KERNEL_FIRST: &str = "for task in /proc/[0-9]*; do case $(cat $task/comm 2>/dev/null) in \
                            ksoftirqd/*) chrt -f -p 10 ${task#/proc/};; esac; done; exec \"$@\"";

/// Boots a guest and measures there.
///
/// # Errors
/// When there is no guest, or a target is missed in it.
pub(super) fn run(root: &Path, arguments: &BenchArguments, programs: &Programs) -> Outcome {
    if let Err(why) = packages::ensure_counters() {
        println!("system calls and instructions may not be available: {why}");
    }
    let command = command(arguments, programs)?;
    match run_guest(root, &arguments.guest, &command).map_err(|failure| failure.to_string())? {
        0 => Ok(format!("all targets met on kernel {}", arguments.guest.kernel)),
        _ => Err("a target was missed in the guest, or nothing was measured: see above".to_owned()),
    }
}

fn command(arguments: &BenchArguments, programs: &Programs) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let (a, b) = arguments.cpus;
    let mut words = ["sh", "-c", KERNEL_FIRST, "sh"].map(str::to_owned).to_vec();
    words.push(program.to_string_lossy().into_owned());
    words.push("bench-verbs".to_owned());
    for (name, value) in [
        ("--device", script::DEVICE.to_owned()),
        ("--address", script::ADDRESS.to_owned()),
        ("--rounds", arguments.rounds.to_string()),
        ("--iterations", arguments.iterations.to_string()),
        ("--cpus", format!("{a},{b}")),
        ("--programs", programs.domain.to_string_lossy().into_owned()),
    ] {
        words.extend([name.to_owned(), value]);
    }
    words.push(programs.requests.to_string_lossy().into_owned());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: BenchArguments,
    }

    #[test]
    fn the_guest_is_told_what_the_host_was() {
        let line = ["x", "--rounds", "7", "--iterations", "900", "--cpus", "1,0"];
        let told = Line::try_parse_from(line).unwrap().arguments;
        let programs = Programs { domain: "/a".into(), requests: "/b".into() };
        let command = command(&told, &programs).unwrap();
        let start = command.iter().position(|word| word == "bench-verbs").unwrap();
        let inside = Line::try_parse_from(&command[start..]).unwrap().arguments;
        assert_eq!((inside.rounds, inside.iterations, inside.cpus), (7, 900, (1, 0)));
        assert_eq!(inside.device.as_deref(), Some("rxe0"));
        assert_eq!(inside.programs, [Path::new("/a"), Path::new("/b")]);
    }
}
