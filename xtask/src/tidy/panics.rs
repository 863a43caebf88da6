//! Nothing that a peer, a file or a device says makes us panic.

use super::Tree;
use crate::report::Problem;
use crate::source::Source;

/// Crates that read what a peer sent.
const CRATES: &[&str] =
    &["fabric-core", "fabric-tcp", "fabric-softroce", "fabric-doctor", "msg-proto", "msg-patterns"];

const CALLS: &[&str] =
    &[".unwrap()", ".expect(", "panic!(", "unreachable!(", "todo!(", "unimplemented!("];

const EXCUSES: &[&str] = &["// Cannot fail:", "// Invariant:"];

const INSTEAD: &str = "return an error; if it really cannot happen, say why in a comment that \
                       starts with `// Cannot fail:` or `// Invariant:` on the line before";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let parsing = tree.sources.iter().filter(|source| CRATES.contains(&source.krate()));
    parsing.flat_map(problems).collect()
}

fn problems(source: &Source) -> Vec<Problem> {
    let calls = source.shipped().filter_map(|(number, line)| Some((number, call(&line.code)?)));
    let unexcused = calls.filter(|(number, _)| !source.is_excused(*number, EXCUSES));
    unexcused
        .map(|(number, call)| {
            let what = format!("{call} can panic where a peer's data is handled");
            Problem::new(source.place(number), what, INSTEAD)
        })
        .collect()
}

fn call(code: &str) -> Option<&'static str> {
    CALLS.iter().find(|call| has_call(code, call)).copied()
}

/// A name longer than the macro's is another macro.
fn has_call(code: &str, call: &str) -> bool {
    code.match_indices(call).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        call.starts_with('.') || !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on;

    const PATH: &str = "msg-proto/src/a.rs";

    #[test]
    fn a_reason_beside_it_is_enough() {
        let healthy = [
            "fn a() { b().unwrap_or_default(); }\n",
            "fn a() {\n    // Cannot fail: eight bytes.\n    b().unwrap()\n}\n",
            "fn a() {\n    b().expect(\"eight\") // Invariant: eight bytes.\n}\n",
            "fn a() {\n    // Invariant: eight bytes,\n    // always.\n    let c = b\n        .c()\n        .unwrap();\n}\n",
            "#[cfg(test)]\nmod tests {\n    fn a() { b().unwrap(); }\n}\n",
            "/// Call `unwrap()`: b.unwrap()\nfn a() {}\n",
        ];
        for text in healthy {
            assert_eq!(on(check, PATH, text), [], "{text}");
        }
        assert_eq!(on(check, "fabric-cli/src/a.rs", "fn a() { b().unwrap(); }\n"), []);
        assert_eq!(on(check, "msg-proto/tests/a.rs", "fn a() { b().unwrap(); }\n"), []);
    }

    #[test]
    fn each_way_to_panic_is_found() {
        for call in CALLS {
            let text = format!("fn a() {{\n    b{call});\n}}\n").replace("b.", "b().");
            let text = text.replace("bpanic", "panic").replace("bunreach", "unreach");
            let text = text.replace("btodo", "todo").replace("bunimpl", "unimpl");
            assert_eq!(on(check, PATH, &text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_reason_for_something_else_does_not_count() {
        let text =
            "fn a() {\n    // Cannot fail: eight.\n    b().unwrap();\n    c().unwrap();\n}\n";
        assert_eq!(on(check, PATH, text)[0].place, format!("{PATH}:4"));
    }
}
