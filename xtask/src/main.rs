//! The tasks of this workspace. `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod api;
mod bench;
mod circumstances;
mod conformance;
mod files;
mod guest;
#[cfg(test)]
mod guide;
mod instructions;
mod layers;
mod left_out;
mod lex;
mod libfabric;
mod matrix;
mod package;
mod process;
mod report;
mod rules;
mod source;
mod steps;
mod suite;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use report::Outcome;
use steps::OnFailure;

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Everything that must pass, in order, with a summary
    Test(TestArguments),
    /// What continuous integration runs: the same as `test`
    Ci(TestArguments),
    /// Installs what building and testing RDMA takes: as root, on Debian or Ubuntu
    Setup,
    /// Which crate may depend on which, and what crates promise about themselves
    Layers,
    /// Checks on the text of the workspace
    Tidy,
    /// Runs the conformance suite and prints providers against groups of cases
    Conformance {
        /// Print every case
        #[arg(long)]
        cases: bool,
    },
    /// Prints each rule of docs/patterns.md with the tests that carry its number
    Rules {
        /// Also rules that do not bind yet and have no test
        #[arg(long)]
        all: bool,
    },
    /// Compares the public items of every library with the lists in docs/api
    Api(api::Arguments),
    /// Packs every crate that is meant for a registry, and builds it from its package
    Package(package::Arguments),
    /// Counts the instructions of the hot paths and compares them with the baseline
    Instructions(instructions::Arguments),
    /// Compares with peers and plain sockets, in turns, and writes target/bench/report.html
    Bench(bench::Arguments),
    /// Runs a command in a virtual machine that has a soft-RoCE link
    Guest(guest::Arguments),
    /// Compares round trips over verbs:// with perftest's, in such a machine or on a device of this host
    BenchVerbs(guest::BenchArguments),
    /// Runs the tests that need an RDMA device in such a machine
    TestSoftroce(guest::TestArguments),
    /// Runs what goes over libfabric, with this host's version and with a newer one
    TestLibfabric(libfabric::Arguments),
    /// Runs kernels against user-space stacks of RDMA, and writes target/matrix/report.md
    Matrix(matrix::Arguments),
    /// Runs the tests that need an RDMA device on a device of this host
    TestVerbs(guest::HardwareArguments),
}

#[derive(Debug, clap::Args)]
struct TestArguments {
    /// Run the other steps too when one fails
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    let root = files::workspace_root();
    match Arguments::parse().task {
        Task::Bench(arguments) => told(bench::run(&root, &arguments)),
        Task::Guest(arguments) => guest::main(&root, &arguments),
        Task::BenchVerbs(arguments) => told(guest::bench(&root, &arguments)),
        Task::TestSoftroce(arguments) => told(guest::test(&root, &arguments)),
        Task::TestLibfabric(arguments) => told(libfabric::test(&root, &arguments)),
        Task::Matrix(arguments) => told(matrix::run(&root, &arguments)),
        Task::TestVerbs(arguments) => told(guest::test_hardware(&root, &arguments)),
        Task::Test(arguments) | Task::Ci(arguments) => {
            told(steps::run(&root, on_failure(&arguments)))
        }
        Task::Instructions(arguments) => told(instructions::main(&root, &arguments)),
        Task::Api(arguments) => told(api::run(&root, &arguments)),
        Task::Package(arguments) => told(package::run(&root, &arguments)),
        Task::Setup => told(guest::setup()),
        Task::Layers => told(layers::run(&root)),
        Task::Tidy => told(tidy::run(&root)),
        Task::Conformance { cases } => told(conformance::run(&root, cases)),
        Task::Rules { all } => told(rules::run(&root, all)),
    }
}

fn told(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("failed: {line}");
            ExitCode::FAILURE
        }
    }
}

fn on_failure(arguments: &TestArguments) -> OnFailure {
    if arguments.keep_going { OnFailure::KeepGoing } else { OnFailure::Stop }
}
