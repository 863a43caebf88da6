//! `cargo xtask test-libfabric`: what runs over libfabric, with the version of this host and with a
//! newer one that is fetched and unpacked beside it. Both run the same programs, built once.

mod newer;
mod programs;

use std::path::Path;

use crate::conformance;
use crate::report::Outcome;
use newer::Newer;
use programs::Program;

/// Providers that must pass every case without an exception to their name.
const REQUIRED: &[&str] = &["ofi+tcp", "ofi+shm"];

/// What to test.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Only tests whose names contain this; then the suite is not judged
    #[arg(default_value = "")]
    filter: String,
    /// Leave the newer version out
    #[arg(long)]
    installed_only: bool,
}

/// Runs everything over libfabric, unless this host has none and cannot be given one.
pub(crate) fn step(root: &Path) -> Outcome {
    match newer::ensure_installed() {
        Ok(()) => test(root, &Arguments::default()),
        Err(why) => Ok(format!("LEFT OUT: {why}")),
    }
}

/// Runs everything over libfabric.
pub(crate) fn test(root: &Path, arguments: &Arguments) -> Outcome {
    newer::ensure_installed()?;
    let programs = programs::build(root)?;
    let installed = run_all(root, &programs, &arguments.filter, None)?;
    println!("libfabric of this host: {installed}");
    if arguments.installed_only {
        return Ok(installed);
    }
    let newer = Newer::fetch(root)?;
    let with_newer = run_all(root, &programs, &arguments.filter, Some(&newer))?;
    Ok(format!("this host's: {installed}; {}'s: {with_newer}", newer::SUITE))
}

fn run_all(root: &Path, programs: &[Program], filter: &str, newer: Option<&Newer>) -> Outcome {
    let ledger = conformance::fresh_ledger(root)?;
    let failed: Vec<String> =
        programs.iter().filter_map(|program| program.run(filter, &ledger, newer).err()).collect();
    let judged = match filter {
        "" => conformance::judge(root, &ledger, REQUIRED, false),
        filter => Ok(format!("tests named `{filter}` passed")),
    };
    if failed.is_empty() { judged } else { Err(failed.join(", ")) }
}
