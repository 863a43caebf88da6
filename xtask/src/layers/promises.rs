//! Attributes that turn a crate's promise into something the compiler checks.

use crate::report::Problem;
use crate::source::{Source, find_word};

const NO_UNSAFE: &[&str] = &[
    "fabric-core",
    "fabric-link",
    "fabric-sim",
    "fabric-conformance",
    "fabric-softroce",
    "fabric-doctor",
    "msg-proto",
    "msg-patterns",
    "fabric-perf",
    "fabric-cli",
    "xtask",
];

/// Sans-IO: no clock, no thread and no socket exists in these.
const NO_STD: &[&str] = &["msg-proto"];

/// Checks the root files of all crates.
pub(crate) fn check(roots: &[Source]) -> Vec<Problem> {
    roots.iter().flat_map(check_root).collect()
}

fn check_root(root: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    if NO_UNSAFE.contains(&root.krate()) {
        problems.extend(missing(root, "#![forbid(unsafe_code)]"));
    }
    if NO_STD.contains(&root.krate()) {
        problems.extend(missing(root, "#![no_std]"));
        problems.extend(std_let_in(root));
    }
    problems
}

fn missing(root: &Source, attribute: &str) -> Option<Problem> {
    let has = root.lines.iter().any(|line| line.code.trim() == attribute);
    let instead = "put it at the top of the file; what needs more belongs in another crate";
    (!has).then(|| Problem::new(&root.path, format!("has no {attribute}"), instead))
}

/// `extern crate std` would undo the promise.
fn std_let_in(root: &Source) -> Option<Problem> {
    let lets_in = |code: &str| code.contains("extern crate") && find_word(code, "std").is_some();
    let (number, _) = root.shipped().find(|(_, line)| lets_in(&line.code))?;
    let instead = "use core and alloc; only tests may have std (#[cfg(test)] before it)";
    Some(Problem::new(root.place(number), "lets std into a crate that is no_std", instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> usize {
        check(&[Source::new(path, text)]).len()
    }

    #[test]
    fn a_promise_kept_passes() {
        let proto =
            "//! Doc.\n#![no_std]\n#![forbid(unsafe_code)]\n#[cfg(test)]\nextern crate std;\n";
        assert_eq!(problems("msg-proto/src/lib.rs", proto), 0);
        assert_eq!(problems("fabric-cli/src/main.rs", "#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(problems("fabric-tcp/src/lib.rs", ""), 0);
    }

    #[test]
    fn a_missing_attribute_is_a_broken_promise() {
        assert_eq!(problems("msg-proto/src/lib.rs", "#![forbid(unsafe_code)]\n"), 1);
        assert_eq!(problems("msg-proto/src/lib.rs", "#![no_std]\n"), 1);
        assert_eq!(problems("fabric-core/src/lib.rs", "// #![forbid(unsafe_code)]\n"), 1);
    }

    #[test]
    fn std_does_not_come_back_in_by_name() {
        let text = "#![no_std]\n#![forbid(unsafe_code)]\nextern crate std;\n";
        assert_eq!(problems("msg-proto/src/lib.rs", text), 1);
    }
}
