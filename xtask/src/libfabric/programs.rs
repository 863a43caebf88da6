//! Test programs, built once and run with any version of the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Message;

use super::newer::Newer;
use crate::conformance::LEDGER_VARIABLE;
use crate::process::Cargo;

/// Package, features, test target, and what the names of its tests over libfabric contain.
const TESTS: &[(&str, &str, &str, &str)] = &[
    ("libfabric-sys", "", "layout", ""),
    ("fabric-libfabric", "", "conformance", ""),
    ("fabric-libfabric", "", "failures", ""),
    ("msg-patterns", "libfabric", "rules", "::ofi_"),
];

/// A built test program.
#[derive(Debug)]
pub(super) struct Program {
    name: String,
    path: PathBuf,
    /// Where cargo would run it.
    dir: PathBuf,
    only: &'static str,
}

/// Builds all of them.
///
/// # Errors
/// When one does not build.
pub(super) fn build(root: &Path) -> Result<Vec<Program>, String> {
    TESTS.iter().map(|test| build_one(root, test)).collect()
}

fn build_one(
    root: &Path,
    (package, features, test, only): &(&'static str, &str, &str, &'static str),
) -> Result<Program, String> {
    let build = Cargo::new(root, "test").args(["--no-run", "-p", package, "--test", test]);
    let build = build.args(["--features", features]);
    let messages = build.args(["--message-format", "json-render-diagnostics"]).output()?;
    let mut messages = Message::parse_stream(messages.as_bytes());
    let built = messages.find_map(|message| match message {
        Ok(Message::CompilerArtifact(made)) if made.target.name == *test => made.executable,
        _ => None,
    });
    let path = built.ok_or_else(|| format!("cargo built no program `{test}` of {package}"))?;
    let name = format!("{package}, {test}");
    Ok(Program { name, path: path.into(), dir: root.join(package), only })
}

impl Program {
    /// Runs its tests whose names contain `filter`.
    ///
    /// # Errors
    /// When one fails, with the program's name.
    pub(super) fn run(
        &self,
        filter: &str,
        ledger: &Path,
        newer: Option<&Newer>,
    ) -> Result<(), String> {
        let with = newer.map_or("this host's libfabric", |_| "the newer libfabric");
        println!("\n=== {} with {with} ===", self.name);
        let mut command = match newer {
            Some(newer) => newer.command(&self.path),
            None => Command::new(&self.path),
        };
        // Test programs take words of which one must be in a name; a filter is the narrower one.
        let word = if filter.is_empty() { self.only } else { filter };
        command.args(Some(word).filter(|word| !word.is_empty()));
        command.current_dir(&self.dir);
        command.env("FABRIC_REQUIRE_LIBFABRIC", "1").env(LEDGER_VARIABLE, ledger);
        let status = command.status().map_err(|error| format!("{}: {error}", self.name))?;
        if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", self.name)) }
    }
}
