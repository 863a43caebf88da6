//! Tests that need an RDMA device: built here, run in the guest.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

use super::{compile, packages, tools};
use crate::process::Cargo;

/// A test program of one of our crates.
#[derive(Debug)]
pub(super) struct Suite {
    package: &'static str,
    /// Features to build it with.
    features: &'static str,
    /// The test target, or [`LIB`].
    test: &'static str,
    /// What the names of its tests over RDMA contain.
    only: &'static str,
    /// How many of its tests run at once: one if they keep the guest busy, several if they wait.
    threads: u32,
}

/// The tests inside a library.
const LIB: &str = "lib";

/// All of them. Those that a workspace lacks are missed when their results are judged.
pub(super) const SUITES: &[Suite] = &[
    suite("fabric-softroce", "", "links"),
    suite("fabric-cli", "softroce", "softroce"),
    suite("fabric-cli", "softroce", "doctor_guest"),
    Suite { threads: 3, ..suite("fabric-verbs", "", "conformance") },
    suite("fabric-verbs", "", "device"),
    suite("fabric-verbs", "", "choice"),
    Suite { only: "on_device::", ..suite("fabric-verbs", "", LIB) },
    Suite { only: "ofi_verbs::", threads: 3, ..suite("fabric-libfabric", "", "conformance") },
    Suite { threads: 3, ..suite("fabric-softroce", "verbs", "conformance") },
    suite("fabric-softroce", "verbs", "scheme"),
    Suite { only: "::verbs::", threads: 4, ..RULES },
    Suite { only: "::ofi_verbs::", threads: 4, ..RULES },
    // Enough to tell that the other provider is the same under another name.
    Suite { only: "softroce::pipe_0", threads: 4, ..RULES },
    Suite { only: "softroce::pub_0", threads: 4, ..RULES },
    Suite { only: "softroce::req_0", threads: 4, ..RULES },
    suite("fabric-cli", "softroce", "rdma"),
];

const RULES: Suite = suite("msg-patterns", "softroce,libfabric", "rules");

const fn suite(package: &'static str, features: &'static str, test: &'static str) -> Suite {
    Suite { package, features, test, only: "", threads: 1 }
}

/// A built suite, and which of its tests to run.
#[derive(Debug)]
pub(super) struct Program {
    /// The program.
    pub(super) path: PathBuf,
    /// Where cargo would run it.
    pub(super) dir: PathBuf,
    /// Its tests.
    pub(super) tests: Vec<String>,
    /// How many at once.
    pub(super) threads: u32,
}

/// Builds the suites that this workspace has and `wanted` takes, and picks the tests whose names
/// contain `filter`.
///
/// # Errors
/// When packages of the host are missing, or something does not build.
pub(super) fn build(
    root: &Path,
    filter: &str,
    wanted: fn(&Suite) -> bool,
) -> Result<Vec<Program>, String> {
    let metadata = metadata(root)?;
    let present = SUITES.iter().filter(|suite| wanted(suite) && suite.is_in(&metadata));
    let present: Vec<_> = present.collect();
    if present.iter().any(|suite| suite.package == "fabric-verbs" || suite.features == "verbs") {
        packages::ensure_headers()?;
    }
    let mut programs = Vec::new();
    for suite in present {
        let path = suite.build(root)?;
        let tests = suite.tests(&path, filter)?;
        let dir = root.join(suite.package);
        programs.push(Program { path, dir, tests, threads: suite.threads });
    }
    programs.retain(|program| !program.tests.is_empty());
    if programs.is_empty() { Err(format!("no test is named `{filter}`")) } else { Ok(programs) }
}

fn metadata(root: &Path) -> Result<Metadata, String> {
    let mut command = MetadataCommand::new();
    command.no_deps().manifest_path(root.join("Cargo.toml"));
    command.exec().map_err(|error| format!("cargo metadata: {error}"))
}

impl Suite {
    /// Whether it makes soft-RoCE links, which no other device needs.
    pub(super) fn makes_links(&self) -> bool {
        let by_name = ["softroce", "doctor_guest"].contains(&self.test);
        by_name || self.package == "fabric-softroce" || self.only.starts_with("softroce::")
    }

    fn is_in(&self, metadata: &Metadata) -> bool {
        let package = metadata.packages.iter().find(|package| package.name == self.package);
        package.is_some_and(|package| {
            let mut features = self.features.split(',').filter(|feature| !feature.is_empty());
            let featured = features.all(|feature| package.features.contains_key(feature));
            let is_it = |target: &cargo_metadata::Target| match self.test {
                LIB => target.is_lib(),
                test => target.is_test() && target.name == test,
            };
            featured && package.targets.iter().any(is_it)
        })
    }

    fn build(&self, root: &Path) -> Result<PathBuf, String> {
        let build = Cargo::new(root, "test").args(["--no-run", "--profile", "guest"]);
        let build = build.args(["-p", self.package, "--features", self.features]);
        let built = match self.test {
            LIB => compile::executable(build.args(["--lib"]), &self.package.replace('-', "_")),
            test => compile::executable(build.args(["--test", test]), test),
        };
        built.map_err(|why| format!("{}: {why}", self.package))
    }

    fn tests(&self, program: &Path, filter: &str) -> Result<Vec<String>, String> {
        let lines = tools::lines(&program.to_string_lossy(), ["--list", "--format=terse"])?;
        Ok(chosen(&lines, self.only, filter))
    }
}

fn chosen(lines: &[String], only: &str, filter: &str) -> Vec<String> {
    let names = lines.iter().filter_map(|line| line.strip_suffix(": test"));
    let ours = names.filter(|name| name.contains(only) && name.contains(filter));
    ours.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tests_over_rdma_are_chosen_by_name() {
        let lines =
            ["pipe::verbs::a: test", "pipe::tcp::a: test", "pipe::verbs::b: test", "x: bench"];
        let lines = lines.map(str::to_owned);
        assert_eq!(chosen(&lines, "verbs::", "a"), ["pipe::verbs::a"]);
        assert_eq!(chosen(&lines, "", "").len(), 3);
    }

    #[test]
    fn what_makes_links_is_told_from_what_runs_on_any_device() {
        let (links, others): (Vec<_>, Vec<_>) =
            SUITES.iter().partition(|suite| suite.makes_links());
        assert!(links.iter().any(|suite| suite.test == "links"));
        assert!(others.iter().any(|suite| suite.package == "fabric-verbs"));
        assert!(others.iter().all(|suite| !suite.only.contains("softroce")));
    }

    #[test]
    fn tests_of_the_command_share_the_program_that_was_built_last() {
        let of_command = SUITES.iter().filter(|suite| suite.package == "fabric-cli");
        let features: BTreeSet<&str> = of_command.map(|suite| suite.features).collect();
        assert_eq!(features, BTreeSet::from(["softroce"]));
    }

    #[test]
    fn a_suite_that_the_workspace_lacks_is_left_out() {
        let metadata = metadata(&crate::files::workspace_root()).unwrap();
        assert!(SUITES[0].is_in(&metadata));
        let lacking = [("no-such-crate", "", "links"), ("fabric-softroce", "nosuch", "links")];
        for (package, features, test) in lacking {
            assert!(!suite(package, features, test).is_in(&metadata));
        }
    }
}
