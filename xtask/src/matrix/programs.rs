//! Our programs, built once on this host and run with every user space.

use std::fs;
use std::path::{Path, PathBuf};

use super::place::Place;
use crate::guest;
use crate::process::Cargo;

/// Builds them, and puts them into a directory of their own, which is returned.
///
/// # Errors
/// When one does not build, or cannot be copied.
pub(super) fn build(place: &Place) -> Result<PathBuf, String> {
    let root = &place.workspace;
    let fabric = Cargo::new(root, "build").args(["-p", "fabric-cli"]);
    let fabric = guest::program(fabric.args(["--features", "softroce,libfabric"]), "fabric")?;
    let suite = Cargo::new(root, "test").args(["--no-run", "-p", "fabric-verbs"]);
    let suite = guest::program(suite.args(["--test", "conformance"]), "conformance")?;
    put(&fabric, &place.join("programs/fabric")?)?;
    put(&suite, &place.join("programs/conformance")?)?;
    place.join("programs")
}

fn put(program: &Path, at: &Path) -> Result<(), String> {
    fs::copy(program, at).map(drop).map_err(|error| format!("{}: {error}", at.display()))
}
