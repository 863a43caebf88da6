//! Running cargo.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::left_out;

/// A cargo command in the workspace.
pub(crate) struct Cargo {
    command: Command,
    name: String,
}

impl Cargo {
    /// `cargo NAME`, in the directory `root`.
    pub(crate) fn new(root: &Path, name: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root).arg(name).stdin(Stdio::null());
        // Ours, not the business of what we start.
        command.env_remove("CARGO_MANIFEST_DIR");
        if let Some(dir) = left_out::libclang() {
            command.env(left_out::LIBCLANG_VARIABLE, dir);
        }
        Self { command, name: format!("cargo {name}") }
    }

    /// `cargo nextest run` where it is installed, otherwise `cargo test`.
    pub(crate) fn tests(root: &Path) -> Self {
        if has_nextest(root) {
            Self::new(root, "nextest").args(["run"])
        } else {
            Self::new(root, "test")
        }
    }

    /// Adds arguments.
    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.command.args(args);
        self
    }

    /// For all crates of the workspace that can be built on this host, as users get them. Says which
    /// cannot, and why.
    pub(crate) fn workspace(self) -> Self {
        let all = self.args(["--workspace"]);
        match left_out::verbs() {
            Some((name, why)) => {
                println!("{name} is left out: {why}");
                all.args(["--exclude", name])
            }
            None => all,
        }
    }

    /// The same with all features that can be built on this host.
    pub(crate) fn workspace_featured(self, root: &Path) -> Self {
        let all = self.workspace();
        if left_out::verbs().is_none() {
            return all.args(["--all-features"]);
        }
        let features = left_out::other_features(root).join(",");
        println!("features that need it are left out; those that are built: {features}");
        all.args(["--features", &features])
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it with its output shown.
    ///
    /// # Errors
    /// When it cannot be started, or with the status it ended with.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let status = self.command.status().map_err(|error| format!("{}: {error}", self.name))?;
        if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", self.name)) }
    }

    /// Runs it and returns what it wrote to standard output; the rest is shown.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the output is no text.
    pub(crate) fn output(mut self) -> Result<String, String> {
        self.command.stderr(Stdio::inherit());
        let output = self.command.output().map_err(|error| format!("{}: {error}", self.name))?;
        if !output.status.success() {
            return Err(format!("{} failed ({})", self.name, output.status));
        }
        String::from_utf8(output.stdout).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Where cargo builds.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root.join(chosen.unwrap_or_else(|| "target".into()))
}

/// Whether the faster test runner is installed.
pub(crate) fn has_nextest(root: &Path) -> bool {
    let mut probe = Cargo::new(root, "nextest").args(["--version"]).command;
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
