//! Builds the programs that are measured.

use std::path::{Path, PathBuf};

use super::super::{compile, packages};
use crate::process::Cargo;

/// Our contenders.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// A message back and forth between two domains.
    pub(super) domain: PathBuf,
    /// A request and its reply.
    pub(super) requests: PathBuf,
}

/// Builds them as users would.
///
/// # Errors
/// When packages are missing, or something does not build.
pub(super) fn programs(root: &Path) -> Result<Programs, String> {
    packages::ensure_headers()?;
    let build = |package, bench, features| {
        let cargo = Cargo::new(root, "bench").args(["--no-run", "-p", package, "--bench", bench]);
        let built = compile::executable(cargo.args(["--features", features]), bench);
        built.map_err(|why| format!("{package}: {why}"))
    };
    Ok(Programs {
        domain: build("fabric-verbs", "ping_pong", "")?,
        requests: build("msg-patterns", "round_trips", "verbs")?,
    })
}
