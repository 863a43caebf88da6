//! No provider without the conformance suite.

use super::Tree;
use crate::report::Problem;
use crate::source::Source;

/// Crates with domains around domains, which are tested through a provider.
const EXCEPT: &[&str] = &["fabric-core", "fabric-conformance"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files.iter().filter(|file| is_manifest(&file.path)) {
        let krate = file.path.split('/').next().unwrap_or_default();
        if let Some(place) = implements_domain(tree, krate)
            && !has_suite(tree, krate)
        {
            let instead = format!("run the suite in {krate}/tests/conformance.rs");
            problems.push(Problem::new(place, "a provider without the conformance suite", instead));
        }
    }
    problems
}

fn is_manifest(path: &str) -> bool {
    path.starts_with("fabric-") && path.ends_with("/Cargo.toml")
}

fn implements_domain(tree: &Tree, krate: &str) -> Option<String> {
    let mut ours = tree.sources.iter().filter(|source| source.krate() == krate);
    ours.find_map(domain_line).filter(|_| !EXCEPT.contains(&krate))
}

fn domain_line(source: &Source) -> Option<String> {
    let (number, _) = source.shipped().find(|(_, line)| is_domain_impl(&line.code))?;
    Some(source.place(number))
}

/// A domain generic over another one is a wrapper.
fn is_domain_impl(code: &str) -> bool {
    let code = code.trim_start();
    let target = code.find("Domain for ").filter(|_| code.starts_with("impl"));
    target.is_some_and(|at| !code[..at].contains(": Domain"))
}

fn has_suite(tree: &Tree, krate: &str) -> bool {
    let path = format!("{krate}/tests/conformance.rs");
    let suite = tree.sources.iter().find(|source| source.path == path);
    suite.is_some_and(|source| source.lines.iter().any(|l| l.code.contains("fabric_conformance")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on_all;

    const MANIFEST: (&str, &str) = ("fabric-new/Cargo.toml", "");
    const DOMAIN: (&str, &str) = ("fabric-new/src/domain.rs", "impl Domain for New {\n}\n");
    const SUITE: &str = "fabric-new/tests/conformance.rs";

    #[test]
    fn a_provider_with_the_suite_and_a_wrapper_pass() {
        let suite = (SUITE, "fabric_conformance::suite!(new);\n");
        assert_eq!(on_all(check, &[MANIFEST, DOMAIN, suite]), []);
        let wrapper = ("fabric-new/src/a.rs", "impl<D: Domain> Domain for Wrap<D> {\n}\n");
        assert_eq!(on_all(check, &[MANIFEST, wrapper]), []);
    }

    #[test]
    fn a_provider_without_the_suite_is_named() {
        assert_eq!(on_all(check, &[MANIFEST, DOMAIN])[0].place, "fabric-new/src/domain.rs:1");
        assert_eq!(on_all(check, &[MANIFEST, DOMAIN, (SUITE, "// empty\n")]).len(), 1);
    }
}
