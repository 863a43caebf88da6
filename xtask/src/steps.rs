//! `cargo xtask test`: everything that must pass, in order.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::process::{Cargo, has_nextest};
use crate::report::Outcome;
use crate::{api, conformance, instructions, layers, libfabric, package, rules, tidy};

/// Whether to stop at the first step that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// Stop.
    Stop,
    /// Go on, and fail at the end.
    KeepGoing,
}

struct Step {
    name: &'static str,
    run: fn(&Ground) -> Outcome,
}

/// What all steps share.
struct Ground {
    root: PathBuf,
    ledger: PathBuf,
}

struct Done {
    name: &'static str,
    outcome: Outcome,
    seconds: u64,
}

const STEPS: &[Step] = &[
    Step { name: "format", run: format },
    Step { name: "clippy", run: clippy },
    Step { name: "tests", run: tests },
    Step { name: "doc tests", run: doc_tests },
    Step { name: "docs", run: docs },
    Step { name: "api", run: |ground| api::step(&ground.root) },
    Step { name: "packages", run: |ground| package::step(&ground.root) },
    Step { name: "layers", run: |ground| layers::run(&ground.root) },
    Step { name: "tidy", run: |ground| tidy::run(&ground.root) },
    Step {
        name: "conformance",
        run: |ground| {
            conformance::judge(&ground.root, &ground.ledger, conformance::REQUIRED, false)
        },
    },
    Step { name: "libfabric", run: |ground| libfabric::step(&ground.root) },
    Step { name: "instructions", run: |ground| instructions::step(&ground.root) },
    Step { name: "rules", run: |ground| rules::run(&ground.root, false) },
];

/// Runs all steps and prints a summary.
pub(crate) fn run(root: &Path, on_failure: OnFailure) -> Outcome {
    let ledger = conformance::fresh_ledger(root)?;
    let ground = Ground { root: root.to_owned(), ledger };
    let done = run_all(STEPS, &ground, on_failure);
    summarise(STEPS, &done)
}

fn run_all(steps: &[Step], ground: &Ground, on_failure: OnFailure) -> Vec<Done> {
    let mut done = Vec::new();
    for step in steps {
        done.push(run_one(step, ground));
        let failed = done.last().is_some_and(|last| last.outcome.is_err());
        if failed && on_failure == OnFailure::Stop {
            break;
        }
    }
    done
}

fn run_one(step: &Step, ground: &Ground) -> Done {
    println!("\n=== {} ===", step.name);
    let start = Instant::now();
    let outcome = (step.run)(ground);
    Done { name: step.name, outcome, seconds: start.elapsed().as_secs() }
}

fn summarise(steps: &[Step], done: &[Done]) -> Outcome {
    println!("\n=== summary ===");
    for Done { name, outcome, seconds } in done {
        let (word, line) = match outcome {
            Ok(line) => ("passed", line),
            Err(line) => ("FAILED", line),
        };
        println!("{word}  {name:12} {seconds:4} s  {line}");
    }
    for step in &steps[done.len()..] {
        println!("not run {}", step.name);
    }
    verdict(done)
}

fn verdict(done: &[Done]) -> Outcome {
    let failed: Vec<_> = done.iter().filter(|one| one.outcome.is_err()).collect();
    let Some(Done { name, outcome: Err(why), .. }) = failed.first() else {
        return Ok(format!("all {} steps passed", done.len()));
    };
    let more = failed.len() - 1;
    let more = if more > 0 { format!(" (and {more} more failed)") } else { String::new() };
    Err(format!("{name}: {why}{more}"))
}

fn format(ground: &Ground) -> Outcome {
    Cargo::new(&ground.root, "fmt").args(["--all", "--check"]).run()?;
    Ok("formatted".to_owned())
}

/// Once as users get it and once with all features.
fn clippy(ground: &Ground) -> Outcome {
    let clippy = || Cargo::new(&ground.root, "clippy");
    for clippy in [clippy().workspace(), clippy().workspace_featured(&ground.root)] {
        clippy.args(["--all-targets", "--", "-D", "warnings"]).run()?;
    }
    Ok("no warnings".to_owned())
}

/// Also writes the ledger of the conformance suite, so that it runs once.
fn tests(ground: &Ground) -> Outcome {
    let tests = Cargo::tests(&ground.root).workspace_featured(&ground.root);
    let tests = tests.args(["--no-fail-fast"]);
    tests.env(conformance::LEDGER_VARIABLE, &ground.ledger).run()?;
    Ok("all tests of the workspace".to_owned())
}

fn doc_tests(ground: &Ground) -> Outcome {
    if !has_nextest(&ground.root) {
        return Ok("ran with the tests".to_owned());
    }
    Cargo::new(&ground.root, "test").workspace_featured(&ground.root).args(["--doc"]).run()?;
    Ok("all examples in documentation".to_owned())
}

fn docs(ground: &Ground) -> Outcome {
    let doc = Cargo::new(&ground.root, "doc").workspace_featured(&ground.root).args(["--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings").run()?;
    Ok("no warnings".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKEN: &[Step] = &[
        Step { name: "a", run: |_| Ok("fine".into()) },
        Step { name: "b", run: |_| Err("broken".into()) },
        Step { name: "c", run: |_| Err("too".into()) },
    ];

    fn outcome(steps: &[Step], on_failure: OnFailure) -> (usize, Outcome) {
        let ground = Ground { root: PathBuf::new(), ledger: PathBuf::new() };
        let done = run_all(steps, &ground, on_failure);
        (done.len(), summarise(steps, &done))
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        assert_eq!(outcome(BROKEN, OnFailure::Stop), (2, Err("b: broken".into())));
    }

    #[test]
    fn keeping_going_runs_all_and_still_fails() {
        let failed = Err("b: broken (and 1 more failed)".into());
        assert_eq!(outcome(BROKEN, OnFailure::KeepGoing), (3, failed));
    }

    #[test]
    fn all_passed_is_a_pass() {
        assert_eq!(outcome(&BROKEN[..1], OnFailure::Stop), (1, Ok("all 1 steps passed".into())));
    }
}
