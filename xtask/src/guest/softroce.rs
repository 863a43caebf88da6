//! `cargo xtask test-softroce`: the tests that need an RDMA device, in a guest that has one.

use std::fs;
use std::path::Path;

use super::script::quoted;
use super::suites::{self, Program};
use super::{Options, run, share_dir};
use crate::conformance::{self, LEDGER_VARIABLE};
use crate::report::Outcome;

/// Providers that must pass every case of the suite.
const REQUIRED: &[&str] = &["verbs", "verbs-boxed", "verbs-trace", "softroce"];

/// The guest's free Ethernet interface.
const INTERFACE: &str = "roce1";

/// Emulated and on a busy host, each test takes a second or two.
const TIMEOUT_S: u64 = 5400;

const LEDGER: &str = "ledger.jsonl";

/// `cargo xtask test-softroce [OPTIONS]`
#[derive(Debug, clap::Args)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    options: Options,
    /// Run only tests whose names contain this; nothing is then missed that did not run
    #[arg(long, default_value = "", value_name = "TEXT")]
    filter: String,
    /// Print every case of the conformance suite
    #[arg(long)]
    cases: bool,
}

/// Builds the tests, runs them in a guest, and judges what they wrote down.
pub(crate) fn test(root: &Path, arguments: &TestArguments) -> Outcome {
    let programs = suites::build(root, &arguments.filter)?;
    let share = share_dir(root);
    let ledger = share.join(LEDGER);
    emptied(&share, &ledger)?;
    let command = ["sh", "-c", &script(&programs)].map(str::to_owned);
    let options = completed(&arguments.options);
    let code = run(root, &options, &command).map_err(|failure| failure.to_string())?;
    let tests: usize = programs.iter().map(|program| program.tests.len()).sum();
    let judged = judge(root, &ledger, arguments);
    if code != 0 {
        return judged.and(Err("tests failed in the guest, see above".to_owned()));
    }
    judged.map(|line| format!("{tests} tests on kernel {}; {line}", arguments.options.kernel))
}

fn judge(root: &Path, ledger: &Path, arguments: &TestArguments) -> Outcome {
    let all = arguments.filter.is_empty();
    if !all && !ledger.exists() {
        return Ok("no case of the suite among them".to_owned());
    }
    let required = if all { REQUIRED } else { &[] };
    conformance::judge(root, ledger, required, arguments.cases)
}

fn completed(options: &Options) -> Options {
    let mut options = options.clone();
    let ours = [
        format!("{LEDGER_VARIABLE}=/share/{LEDGER}"),
        format!("FABRIC_SOFTROCE_INTERFACE={INTERFACE}"),
        "FABRIC_REQUIRE_RXE=1".to_owned(),
        "FABRIC_REQUIRE_VERBS=1".to_owned(),
    ];
    options.variables.extend(ours);
    options.timeout_s.get_or_insert(TIMEOUT_S);
    options
}

/// Runs all programs, whatever becomes of the first.
fn script(programs: &[Program]) -> String {
    let mut script = String::from("failed=0\n");
    for program in programs {
        let (dir, path) = (program.dir.to_string_lossy(), program.path.to_string_lossy());
        let tests: Vec<_> = program.tests.iter().map(|test| quoted(test)).collect();
        script += &format!(
            "cd {} && {} --test-threads={} --exact {} || failed=1\n",
            quoted(&dir),
            quoted(&path),
            program.threads,
            tests.join(" ")
        );
    }
    script + "exit $failed\n"
}

fn emptied(share: &Path, ledger: &Path) -> Result<(), String> {
    fs::create_dir_all(share).map_err(|error| format!("{}: {error}", share.display()))?;
    match fs::remove_file(ledger) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", ledger.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tools;
    use super::*;

    fn program(path: &str) -> Program {
        let tests = vec!["a::b".to_owned()];
        Program { path: path.into(), dir: PathBuf::from("/"), tests, threads: 1 }
    }

    #[test]
    fn every_program_runs_and_one_failure_is_one() {
        let script = script(&[program("false"), program("echo")]);
        let error = tools::output("sh", ["-c", &script]).unwrap_err();
        assert!(error.contains("exit status: 1"), "{error}");
        let shown = format!("({script})\ntrue");
        let output = tools::output("sh", ["-c", &shown]).unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "--test-threads=1 --exact a::b\n");
    }
}
