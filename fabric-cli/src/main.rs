//! The `fabric` command: messaging patterns over any fabric from the shell.
//!
//! # Features
//!
//! - `verbs`: RDMA behind `verbs://` addresses; needs the RDMA libraries to build.
//! - `softroce`: RDMA on soft-RoCE links behind `softroce://` addresses, and all of `verbs`.
//! - `libfabric`: libfabric's providers behind `ofi+tcp://`, `ofi+shm://` and others.
//! - `tokio`: `fabric perf lat --level tasks`, round trips by tasks of tokio's runtime.

#![forbid(unsafe_code)]

mod args;
mod demo;
mod digest;
mod doctor;
mod exit;
mod input;
mod interrupt;
mod notes;
mod output;
mod program;
mod report;
mod run;
mod socket;
mod stage;
mod tally;
mod top;
mod units;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tracing_subscriber::EnvFilter;

use crate::args::{Cli, Global};
use crate::exit::Failure;

/// A thousand sockets with a connection each.
const DESCRIPTORS: u64 = 4096;

fn main() -> ExitCode {
    // Before any thread is there to wait for it.
    msg_patterns::reserve_descriptors(DESCRIPTORS);
    let cli = Cli::parse();
    start_tracing(cli.global.verbose);
    match prepare(&cli.global).and_then(|()| run::run(cli.command, &cli.global)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(&failure),
    }
}

fn end(failure: &Failure) -> ExitCode {
    if let Some(line) = failure.line() {
        report::say(&format!("fabric: {line}"));
    }
    ExitCode::from(failure)
}

fn start_tracing(verbose: u8) {
    let default = match verbose {
        0 => "off",
        1 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("FABRIC_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
}

fn prepare(global: &Global) -> Result<(), Failure> {
    let Some(parent) = global.die_with_parent else { return Ok(()) };
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|error| Failure::io("cannot follow the parent")(error.into()))?;
    // It may have ended before it was followed.
    if getppid().map(Pid::as_raw_pid) == Some(parent) { Ok(()) } else { Err(Failure::Interrupted) }
}
