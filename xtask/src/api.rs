//! `cargo xtask api`: the public items of every library, compared with a list that is kept.
//!
//! What breaks or widens an interface thus shows as lines of a change. The lists come from rustdoc's
//! JSON, which a stable rustdoc writes only when told that it may (RUSTC_BOOTSTRAP). Nothing that is
//! built for users is built so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Package;
use public_api::Builder;

use crate::left_out;
use crate::package;
use crate::process::{Cargo, target_dir};
use crate::report::{Outcome, Problem, verdict};

/// What to do with lists that differ.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Keep the lists as they are now
    #[arg(long)]
    bless: bool,
}

/// Where the lists stand.
const LISTS: &str = "docs/api";

/// Lists the items of all libraries and compares.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let metadata = package::workspace(root)?;
    let left_out = left_out::verbs().map(|(name, _)| name);
    let libraries = package::published(&metadata).into_iter().filter(|package| {
        package.targets.iter().any(|target| target.is_lib())
            && Some(package.name.as_str()) != left_out
    });
    let libraries: Vec<&Package> = libraries.collect();
    write_json(root)?;
    let mut problems = Vec::new();
    for library in &libraries {
        let items = items(root, library.name.as_str())?;
        problems.extend(judge(root, library.name.as_str(), &items, arguments.bless)?);
    }
    verdict(&problems, format!("{} libraries have the items of {LISTS}", libraries.len()))
}

/// The step of `cargo xtask test`.
pub(crate) fn step(root: &Path) -> Outcome {
    match other_rustdoc() {
        Some(version) => Ok(format!("LEFT OUT: the lists are for {RUSTDOC}, this is {version}")),
        None => run(root, &Arguments { bless: false }),
    }
}

/// Whose JSON and whose names of traits the lists have; others differ in both.
const RUSTDOC: &str = "rustdoc 1.95";

fn other_rustdoc() -> Option<String> {
    let asked = Command::new("rustdoc").arg("--version").output();
    let version = asked.map_or_else(
        |error| error.to_string(),
        |told| String::from_utf8_lossy(&told.stdout).trim().to_owned(),
    );
    (!version.starts_with(&format!("{RUSTDOC}."))).then_some(version)
}

/// Only rustdoc gets the permission: with it, build scripts would have dependencies built anew.
fn write_json(root: &Path) -> Result<(), String> {
    let rustdoc = target_dir(root).join("rustdoc-json.sh");
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    let written = fs::write(&rustdoc, script)
        .and_then(|()| fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", rustdoc.display()))?;
    let doc =
        Cargo::new(root, "doc").workspace_featured(root).args(["--no-deps", "--lib", "--quiet"]);
    let doc = doc.env("RUSTDOC", &rustdoc);
    doc.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json").run()
}

fn items(root: &Path, library: &str) -> Result<String, String> {
    let json = target_dir(root).join("doc").join(format!("{}.json", library.replace('-', "_")));
    let listed = Builder::from_rustdoc_json(&json).omit_blanket_impls(true).build();
    let listed = listed.map_err(|error| format!("{}: {error}", json.display()))?;
    let lines = listed.items().map(ToString::to_string).filter(|line| is_told(line));
    Ok(lines.fold(String::new(), |mut text, line| {
        text.push_str(&line);
        text.push('\n');
        text
    }))
}

/// Traits that the compiler gives a type by itself and nobody here relies on.
const TRAITS: &[&str] = &[
    "marker::Freeze ",
    "marker::StructuralPartialEq ",
    "marker::UnsafeUnpin ",
    "::UnwindSafe ",
    "::RefUnwindSafe ",
];

/// Methods that go without saying once it is said that a type has their trait.
const METHODS: &[&str] = &["::clone(&self)", "::eq(&self", "::fmt(&self", "::hash<"];

/// Whether somebody may rely on it: `Send`, `Sync` and `Clone` among other things.
fn is_told(line: &str) -> bool {
    let untold = if line.starts_with("impl") { TRAITS } else { METHODS };
    !untold.iter().any(|name| line.contains(name))
}

fn judge(root: &Path, library: &str, now: &str, bless: bool) -> Result<Option<Problem>, String> {
    let path: PathBuf = root.join(LISTS).join(format!("{library}.txt"));
    if bless {
        fs::create_dir_all(root.join(LISTS)).map_err(|error| format!("{LISTS}: {error}"))?;
        fs::write(&path, now).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(None);
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    Ok(difference(&kept, now).map(|what| {
        let instead = "if it is meant, `cargo xtask api --bless`, and say it in CHANGELOG.md";
        Problem::new(library, what, instead)
    }))
}

/// What came and what went, if anything.
fn difference(kept: &str, now: &str) -> Option<String> {
    let only = |these: &str, those: &str, sign: char| {
        let those: Vec<&str> = those.lines().collect();
        let lines = these.lines().filter(|line| !those.contains(line));
        lines.map(|line| format!("\n    {sign} {line}")).collect::<String>()
    };
    let text = only(kept, now, '-') + &only(now, kept, '+');
    (!text.is_empty()).then(|| format!("its public items are not those of the list:{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_gives_by_itself_is_told_where_it_matters() {
        assert!(is_told("impl core::marker::Send for a::B"));
        assert!(is_told("impl core::clone::Clone for a::B"));
        assert!(!is_told("pub fn a::B::clone(&self) -> a::B"));
        assert!(!is_told("impl core::panic::unwind_safe::UnwindSafe for a::B"));
    }

    #[test]
    fn the_same_items_are_no_difference() {
        assert_eq!(difference("pub fn a::b()\n", "pub fn a::b()\n"), None);
    }

    #[test]
    fn what_went_and_what_came_is_told() {
        let told = difference("pub fn a::b()\n", "pub fn a::b(u8)\n").unwrap();
        assert!(told.ends_with("\n    - pub fn a::b()\n    + pub fn a::b(u8)"), "{told}");
    }
}
