//! The tasks of this workspace. `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod conformance;
mod files;
mod layers;
mod lex;
mod process;
mod report;
mod rules;
mod source;
mod steps;
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
}

#[derive(Debug, clap::Args)]
struct TestArguments {
    /// Run the other steps too when one fails
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
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

fn run(task: &Task) -> Outcome {
    let root = files::workspace_root();
    match task {
        Task::Test(arguments) | Task::Ci(arguments) => steps::run(&root, on_failure(arguments)),
        Task::Layers => layers::run(&root),
        Task::Tidy => tidy::run(&root),
        Task::Conformance { cases } => conformance::run(&root, *cases),
        Task::Rules { all } => rules::run(&root, *all),
    }
}

fn on_failure(arguments: &TestArguments) -> OnFailure {
    if arguments.keep_going { OnFailure::KeepGoing } else { OnFailure::Stop }
}
