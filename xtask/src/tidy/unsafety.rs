//! `unsafe` stands only where memory or the system is touched.

use super::Tree;
use crate::report::Problem;
use crate::source::{Source, find_word};

const INSTEAD: &str = "move it into the crate's sys.rs or sys/, behind a safe function";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let outside = tree.sources.iter().filter(|source| !may_be_unsafe(&source.path));
    outside.flat_map(problems).collect()
}

fn may_be_unsafe(path: &str) -> bool {
    let (krate, inside) = path.split_once('/').unwrap_or_default();
    let is_bindings = krate == "libfabric-sys" && inside.starts_with("src/");
    path.starts_with("fabric-mem/src/")
        || is_bindings
        || inside == "src/sys.rs"
        || inside.starts_with("src/sys/")
}

fn problems(source: &Source) -> Vec<Problem> {
    let found = source.numbered().filter(|(_, line)| find_word(&line.code, "unsafe").is_some());
    found.map(|(number, _)| Problem::new(source.place(number), "unsafe code", INSTEAD)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on;

    const UNSAFE: &str = "fn a() {\n    unsafe { b() }\n}\n";

    #[test]
    fn unsafe_has_its_places() {
        for path in [
            "fabric-mem/src/slot.rs",
            "fabric-tcp/src/sys.rs",
            "a/src/sys/b.rs",
            "libfabric-sys/src/call.rs",
        ] {
            assert_eq!(on(check, path, UNSAFE), []);
        }
        assert_eq!(on(check, "a/src/b.rs", "// unsafe\n#![forbid(unsafe_code)]\n"), []);
    }

    #[test]
    fn unsafe_elsewhere_is_named() {
        for path in ["a/src/lib.rs", "a/src/b/sys.rs", "fabric-mem/tests/a.rs"] {
            assert_eq!(on(check, path, UNSAFE)[0].place, format!("{path}:2"));
        }
    }
}
