//! A run of test programs, wherever the device is: what runs, and what they wrote down judged.

use std::fs;
use std::path::Path;

use super::script::quoted;
use super::suites::Program;
use crate::conformance;
use crate::report::Outcome;

/// Which tests run, and how much of their results is shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Choice {
    /// Run only tests whose names contain this; nothing is then missed that did not run
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(super) filter: String,
    /// Print every case of the conformance suite
    #[arg(long)]
    pub(super) cases: bool,
}

/// A shell script that runs all programs, whatever becomes of the first.
pub(super) fn script(programs: &[Program]) -> String {
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

/// How many tests the programs run.
pub(super) fn count(programs: &[Program]) -> usize {
    programs.iter().map(|program| program.tests.len()).sum()
}

/// Makes room for the ledger of a run.
///
/// # Errors
/// When its directory cannot be made or an earlier one cannot be removed.
pub(super) fn emptied(ledger: &Path) -> Result<(), String> {
    let dir = ledger.parent().unwrap_or(ledger);
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    match fs::remove_file(ledger) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", ledger.display()))
        }
        _ => Ok(()),
    }
}

impl Choice {
    /// What follows from the ledger, and from whether all tests passed. Providers that are
    /// `required` lack nothing, if all tests were chosen.
    pub(super) fn judge(
        &self,
        root: &Path,
        ledger: &Path,
        required: &[&str],
        passed: bool,
    ) -> Outcome {
        let judged = self.judge_ledger(root, ledger, required);
        if passed { judged } else { judged.and(Err("tests failed, see above".to_owned())) }
    }

    fn judge_ledger(&self, root: &Path, ledger: &Path, required: &[&str]) -> Outcome {
        let all = self.filter.is_empty();
        if !all && !ledger.exists() {
            return Ok("no case of the suite among them".to_owned());
        }
        conformance::judge(root, ledger, if all { required } else { &[] }, self.cases)
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

    #[test]
    fn a_failed_test_is_a_failure_though_the_ledger_is_fine() {
        let choice = Choice { filter: "a".into(), cases: false };
        let nowhere = Path::new("/no such directory/ledger.jsonl");
        assert!(choice.judge(nowhere, nowhere, &["verbs"], true).is_ok());
        assert!(choice.judge(nowhere, nowhere, &["verbs"], false).is_err());
        let all = Choice { filter: String::new(), cases: false };
        assert!(all.judge(nowhere, nowhere, &["verbs"], true).is_err());
    }
}
