//! `cargo xtask layers`: which crate may depend on which, and what crates promise about themselves.

mod edges;
mod promises;

use std::fs;
use std::path::Path;

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::report::{Outcome, verdict};
use crate::source::Source;

/// Checks every edge between our crates and the attributes of those that promise something.
pub(crate) fn run(root: &Path) -> Outcome {
    let metadata = metadata(root)?;
    let edges = edges::of(&metadata);
    let mut problems = edges::check(&edges);
    problems.extend(promises::check(&root_files(&metadata)?));
    verdict(&problems, format!("{} edges between our crates, all allowed", edges.len()))
}

fn metadata(root: &Path) -> Result<Metadata, String> {
    let mut command = MetadataCommand::new();
    command.no_deps().manifest_path(root.join("Cargo.toml"));
    command.exec().map_err(|error| format!("cargo metadata: {error}"))
}

/// The root file of each library and binary of each crate.
fn root_files(metadata: &Metadata) -> Result<Vec<Source>, String> {
    metadata.packages.iter().flat_map(roots_of).collect()
}

fn roots_of(package: &Package) -> impl Iterator<Item = Result<Source, String>> {
    let shipped = package.targets.iter().filter(|target| target.is_lib() || target.is_bin());
    shipped.map(|target| {
        let path = target.src_path.as_std_path();
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let dir = package.manifest_path.parent().map_or(Path::new("."), |dir| dir.as_std_path());
        let inside = path.strip_prefix(dir).unwrap_or(path).to_string_lossy();
        Ok(Source::new(&format!("{}/{inside}", package.name), &text))
    })
}
