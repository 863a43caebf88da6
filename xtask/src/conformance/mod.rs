//! `cargo xtask conformance`: which provider passed which case of the suite, and what is missing.

mod exceptions;
pub(crate) mod ledger;
mod matrix;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::process::{Cargo, target_dir};
use crate::report::{Outcome, verdict};
use exceptions::Exceptions;
use matrix::Matrix;

/// Providers that must pass every case without an exception to their name.
pub(crate) const REQUIRED: &[&str] = &["sim", "sim-boxed", "sim-trace", "sim-fault", "tcp"];

/// The environment variable that tells the suite where to write what it did.
pub(crate) const LEDGER_VARIABLE: &str = "FABRIC_CONFORMANCE_LEDGER";

/// A case of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Case {
    /// Its name, unique.
    pub(crate) name: String,
    /// What it is about.
    pub(crate) group: String,
}

/// Removes what an earlier run wrote and says where the next one writes.
///
/// # Errors
/// When the directory cannot be made or the old ledger cannot be removed.
pub(crate) fn fresh_ledger(root: &Path) -> Result<PathBuf, String> {
    let path = target_dir(root).join("conformance").join("ledger.jsonl");
    let dir = path.parent().unwrap_or(root);
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(path),
    }
}

/// Runs the suite on every provider, then judges it.
pub(crate) fn run(root: &Path, all_cases: bool) -> Outcome {
    let ledger = fresh_ledger(root)?;
    let tests = Cargo::tests(root).workspace_featured(root);
    let tests = tests.args(["--no-fail-fast", "--test", "conformance"]);
    let ran = tests.env(LEDGER_VARIABLE, &ledger).run();
    if !ledger.exists() {
        return ran.and(Err("the suite wrote no ledger".to_owned()));
    }
    // The ledger says better than a test runner what failed, but not everything.
    let fine = judge(root, &ledger, REQUIRED, all_cases)?;
    ran.map(|()| fine)
}

/// Prints the table of a ledger and fails if one of the `required` providers lacks something.
pub(crate) fn judge(root: &Path, ledger: &Path, required: &[&str], all_cases: bool) -> Outcome {
    let text = fs::read_to_string(ledger)
        .map_err(|error| format!("no ledger of the suite at {}: {error}", ledger.display()))?;
    let matrix = Matrix::new(cases(root)?, &ledger::parse(&text)?, required);
    println!("{}", if all_cases { table::by_case(&matrix) } else { table::by_group(&matrix) });
    let problems = matrix.problems(required, &exceptions(root)?);
    verdict(&problems, matrix.summary())
}

/// The case list, asked from the suite itself.
fn cases(root: &Path) -> Result<Vec<Case>, String> {
    let cargo = Cargo::new(root, "run");
    let json =
        cargo.args(["--quiet", "-p", "fabric-conformance", "--example", "cases"]).output()?;
    serde_json::from_str(&json)
        .map_err(|error| format!("the list of cases is not readable: {error}"))
}

fn exceptions(root: &Path) -> Result<Exceptions, String> {
    let path = root.join("xtask").join("exceptions.txt");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Exceptions::parse(&text)
}
