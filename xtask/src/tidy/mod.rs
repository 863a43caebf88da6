//! `cargo xtask tidy`: review remarks that came twice, as checks on the text of the workspace.

mod clocks;
mod manifests;
mod panics;
mod providers;
mod suite;
mod text;
mod unsafety;

use std::path::Path;

use crate::files::{TextFile, text_files};
use crate::report::{Outcome, Problem, verdict};
use crate::source::{Source, sources};

/// What every check looks at.
pub(crate) struct Tree {
    /// All text files.
    pub(crate) files: Vec<TextFile>,
    /// The Rust files among them.
    pub(crate) sources: Vec<Source>,
}

impl Tree {
    /// Takes the Rust files apart.
    pub(crate) fn new(files: Vec<TextFile>) -> Self {
        let sources = sources(&files);
        Self { files, sources }
    }
}

const CHECKS: &[fn(&Tree) -> Vec<Problem>] = &[
    unsafety::check,
    providers::check,
    clocks::check,
    panics::check,
    suite::check,
    manifests::check,
    text::check,
];

/// Runs every check on the workspace at `root`.
pub(crate) fn run(root: &Path) -> Outcome {
    let files = text_files(root).map_err(|error| error.to_string())?;
    let count = files.len();
    let tree = Tree::new(files);
    let problems: Vec<Problem> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    verdict(&problems, format!("{count} files, {} checks each", CHECKS.len()))
}

#[cfg(test)]
mod testing {
    use super::{Problem, TextFile, Tree};

    /// What a check says about one file.
    pub(super) fn on(check: fn(&Tree) -> Vec<Problem>, path: &str, text: &str) -> Vec<Problem> {
        on_all(check, &[(path, text)])
    }

    /// What a check says about several files.
    pub(super) fn on_all(check: fn(&Tree) -> Vec<Problem>, files: &[(&str, &str)]) -> Vec<Problem> {
        let file = |&(path, text): &(&str, &str)| TextFile { path: path.into(), text: text.into() };
        check(&Tree::new(files.iter().map(file).collect()))
    }
}
