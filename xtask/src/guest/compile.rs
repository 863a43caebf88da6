//! Programs of ours that use RDMA, built on this host.

use std::path::{Path, PathBuf};

use cargo_metadata::Message;

use super::packages;
use crate::process::Cargo;

/// The `fabric` command.
///
/// # Errors
/// When packages of the host are missing, or it does not build.
pub(super) fn fabric(root: &Path) -> Result<PathBuf, String> {
    packages::ensure_headers()?;
    let build = Cargo::new(root, "build").args(["--profile", "guest", "-p", "fabric-cli"]);
    let build = build.args(["--features", "verbs"]);
    executable(build, "fabric")
}

/// Runs a cargo command that builds the target of that name, and says where the program is.
///
/// # Errors
/// When it does not build, or builds no such program.
pub(super) fn executable(build: Cargo, target: &str) -> Result<PathBuf, String> {
    let build = build.args(["--message-format", "json-render-diagnostics"]);
    let messages = build.output()?;
    let mut messages = Message::parse_stream(messages.as_bytes());
    let built = messages.find_map(|message| match message {
        Ok(Message::CompilerArtifact(made)) if made.target.name == target => made.executable,
        _ => None,
    });
    built.map(PathBuf::from).ok_or_else(|| format!("cargo built no program `{target}`"))
}
