//! Who must not know a provider does not name one.

use std::collections::BTreeSet;

use super::Tree;
use crate::report::Problem;
use crate::source::{Source, find_word};

/// Crates named like a provider that are none.
const NO_PROVIDERS: &[&str] =
    &["fabric_core", "fabric_mem", "fabric_conformance", "fabric_perf", "fabric_cli"];

/// Crates that name no provider at all, in tests neither.
const BLIND: &[&str] = &["msg-proto", "fabric-conformance"];

const BACKENDS: &str = "msg-patterns/src/backend.rs";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let providers = providers(tree);
    tree.sources.iter().flat_map(|source| problems(source, &providers)).collect()
}

/// The crates whose name starts like a provider's, as they are written in code.
fn providers(tree: &Tree) -> BTreeSet<String> {
    let crates = tree.files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let names = crates.map(|name| name.replace('-', "_"));
    names.filter(|name| name.starts_with("fabric_") && !NO_PROVIDERS.contains(&&**name)).collect()
}

fn problems(source: &Source, providers: &BTreeSet<String>) -> Vec<Problem> {
    let blind = BLIND.contains(&source.krate());
    if !blind && (!source.path.starts_with("msg-patterns/src/") || source.path == BACKENDS) {
        return Vec::new();
    }
    let named = source.numbered().filter(|(number, _)| blind || !source.in_test[number - 1]);
    named
        .filter_map(|(number, line)| {
            let in_line = |name: &&String| find_word(&line.code, name).is_some();
            providers.iter().find(in_line).map(|name| problem(source, number, name))
        })
        .collect()
}

fn problem(source: &Source, number: usize, name: &str) -> Problem {
    let instead = if BLIND.contains(&source.krate()) {
        "stay generic; a provider brings itself in its own tests"
    } else {
        "ask backend.rs, the one file that knows providers"
    };
    Problem::new(source.place(number), format!("names the provider {name}"), instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on_all;

    fn naming(path: &str, text: &str) -> Vec<Problem> {
        on_all(
            check,
            &[("fabric-tcp/Cargo.toml", ""), ("fabric-core/Cargo.toml", ""), (path, text)],
        )
    }

    #[test]
    fn backends_and_tests_may_name_providers() {
        let text = "use fabric_tcp::Tcp;\n";
        for path in [BACKENDS, "msg-patterns/tests/a.rs", "fabric-tcp/src/lib.rs"] {
            assert_eq!(naming(path, text), []);
        }
        assert_eq!(naming("msg-proto/src/lib.rs", "use fabric_core::Addr; // fabric_tcp\n"), []);
        let unit_test = "#[cfg(test)]\nmod tests {\n    use fabric_tcp::Tcp;\n}\n";
        assert_eq!(naming("msg-patterns/src/engine.rs", unit_test), []);
    }

    #[test]
    fn a_provider_named_elsewhere_is_found() {
        for path in
            ["msg-patterns/src/engine.rs", "msg-proto/src/a.rs", "fabric-conformance/tests/a.rs"]
        {
            assert!(naming(path, "use fabric_tcp::Tcp;\n")[0].what.contains("fabric_tcp"));
        }
    }
}
