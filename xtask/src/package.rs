//! `cargo xtask package`: every crate that is meant for a registry, packed and built from its own files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::left_out;
use crate::process::{Cargo, target_dir};
use crate::report::{Outcome, Problem, verdict};

/// How far to go.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Pack only, without building what was packed
    #[arg(long)]
    no_verify: bool,
}

/// Looks at what manifests say, packs, and builds from the packages alone.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let metadata = workspace(root)?;
    let packages = published(&metadata);
    let problems: Vec<Problem> = packages.iter().flat_map(|package| problems(package)).collect();
    verdict(&problems, String::new())?;
    let verified = !arguments.no_verify && can_verify();
    pack(root, &metadata, verified)?;
    let how = if verified { "packed and built from their packages" } else { "packed" };
    Ok(format!("{} crates {how}", packages.len()))
}

/// The step of `cargo xtask test`: building all packages again would take minutes.
pub(crate) fn step(root: &Path) -> Outcome {
    run(root, &Arguments { no_verify: true })
}

/// The workspace's own crates, as cargo describes them.
pub(crate) fn workspace(root: &Path) -> Result<Metadata, String> {
    let mut command = MetadataCommand::new();
    command.no_deps().manifest_path(root.join("Cargo.toml"));
    command.exec().map_err(|error| format!("cargo metadata: {error}"))
}

/// Those that are meant for a registry.
pub(crate) fn published(metadata: &Metadata) -> Vec<&Package> {
    metadata.packages.iter().filter(|package| is_published(package)).collect()
}

/// `publish = false` is an empty list of registries.
fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}

fn can_verify() -> bool {
    let missing = left_out::verbs();
    if let Some((name, why)) = &missing {
        println!("packages are not built, since {name} cannot be: {why}");
    }
    missing.is_none()
}

/// All at once: cargo lets each find the others, which no registry has yet. What is not committed is
/// packed, too, since this is no publishing.
fn pack(root: &Path, metadata: &Metadata, verified: bool) -> Result<(), String> {
    let mut cargo = Cargo::new(root, "package").args(["--workspace", "--allow-dirty", "--quiet"]);
    for package in metadata.packages.iter().filter(|package| !is_published(package)) {
        cargo = cargo.args(["--exclude", package.name.as_str()]);
    }
    if !verified {
        return cargo.args(["--no-verify"]).run();
    }
    forget_unpacked(metadata)?;
    // One of its own, since what was built of an earlier package of the same version counts as fresh.
    let dir = target_dir(root).join("package-check");
    let cargo = cargo.args(["--all-features"]).env("CARGO_TARGET_DIR", &dir);
    let verified = cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").run();
    remove(&dir)?;
    verified
}

/// Cargo takes a package that it unpacked before for the same one again, as its version is the same.
/// Registries without a name are those that `cargo package` makes for the while.
fn forget_unpacked(metadata: &Metadata) -> Result<(), String> {
    let Some(home) = cargo_home() else { return Ok(()) };
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(()) };
    for registry in registries.flatten() {
        if registry.file_name().to_string_lossy().starts_with('-') {
            for package in published(metadata) {
                remove(&registry.path().join(format!("{}-{}", package.name, package.version)))?;
            }
        }
    }
    Ok(())
}

fn cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

fn remove(dir: &Path) -> Result<(), String> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {error}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// What somebody who looks for it in a registry would miss.
fn problems(package: &Package) -> Vec<Problem> {
    let said = [
        ("keywords", !package.keywords.is_empty()),
        ("categories", !package.categories.is_empty()),
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("readme", package.readme.is_some()),
        ("rust-version", package.rust_version.is_some()),
        ("package.metadata.docs.rs", package.metadata.pointer("/docs/rs").is_some()),
    ];
    let unsaid = said.iter().filter(|(_, is_said)| !is_said);
    let unsaid = unsaid.map(|(key, _)| problem(package, format!("its manifest has no {key}")));
    unsaid.chain(licences(package)).chain(undocumented(package)).collect()
}

fn problem(package: &Package, what: String) -> Problem {
    let instead = "say it there, or `publish = false` with the reason in a comment above";
    Problem::new(package.name.as_str(), what, instead)
}

/// A package is all that its users get, so the licences' texts belong into it.
fn licences(package: &Package) -> impl Iterator<Item = Problem> {
    let dir = package.manifest_path.parent().map(|dir| dir.as_std_path().to_path_buf());
    let has = move |name: &str| dir.as_ref().is_some_and(|dir| dir.join(name).is_file());
    let missing = ["LICENSE-APACHE", "LICENSE-MIT"].into_iter().filter(move |name| !has(name));
    let instead = |name: &str| format!("link it: ln -s ../{name} {}/{name}", package.name);
    missing.map(move |name| {
        Problem::new(package.name.as_str(), format!("has no {name}"), instead(name))
    })
}

/// Features that the documentation of the crate does not name.
fn undocumented(package: &Package) -> impl Iterator<Item = Problem> {
    let text = root_text(package);
    let features = package.features.keys().filter(|name| *name != "default");
    let unnamed = features.filter(move |name| !names(&text, name));
    unnamed.map(|name| {
        let what =
            format!("the documentation of the crate does not say what the feature {name} is");
        let instead = format!("write a line `- `{name}`: …` below `# Features` at its top");
        Problem::new(package.name.as_str(), what, instead)
    })
}

fn names(text: &str, feature: &str) -> bool {
    let start = format!("//! - `{feature}`");
    text.lines().any(|line| line.starts_with(&start))
}

/// The file that the crate begins with: of its library, or else of its program.
fn root_text(package: &Package) -> String {
    let targets = &package.targets;
    let root = targets.iter().find(|target| target.is_lib());
    let root = root.or_else(|| targets.iter().find(|target| target.is_bin()));
    root.and_then(|target| fs::read_to_string(&target.src_path).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::workspace_root;

    #[test]
    fn what_is_for_this_workspace_only_is_not_published() {
        let metadata = workspace(&workspace_root()).unwrap();
        let published = published(&metadata);
        let has = |name: &str| published.iter().any(|package| package.name.as_str() == name);
        assert!(has("msg-patterns") && has("fabric-cli"));
        assert!(!has("xtask") && !has("telemetry"));
    }

    #[test]
    fn a_crate_that_is_ready_has_no_problem_and_one_without_keywords_has() {
        let metadata = workspace(&workspace_root()).unwrap();
        let mut package = published(&metadata)[0].clone();
        assert_eq!(problems(&package), []);
        package.keywords.clear();
        assert_eq!(problems(&package)[0].what, "its manifest has no keywords");
    }

    #[test]
    fn a_feature_is_named_at_the_beginning_of_a_line_of_the_documentation() {
        assert!(names("//! # Features\n//! - `tcp`: sockets\n", "tcp"));
        assert!(!names("//! See `tcp`.\n// - `tcp`\n", "tcp"));
    }
}
