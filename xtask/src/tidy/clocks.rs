//! No test fails because the machine was slow.

use super::Tree;
use crate::report::Problem;
use crate::source::{Source, find_word};

const INSTEAD: &str = "bound patience by a number of polls, or by a watchdog of 30 s or more with \
                       `// Watchdog:` and its reason beside it";
const EXCUSE: &str = "// Watchdog:";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.sources.iter().flat_map(problems).collect()
}

fn problems(source: &Source) -> Vec<Problem> {
    let timed = timed_names(source);
    let asserts = assertions(source).into_iter();
    let bounds = asserts.filter(|(_, text)| bounds_time(text, &timed));
    let unexcused = bounds.filter(|(number, _)| !source.is_excused(*number, &[EXCUSE]));
    unexcused
        .map(|(number, _)| {
            Problem::new(source.place(number), "a test bounds time measured by a clock", INSTEAD)
        })
        .collect()
}

/// Names that hold a measured time: `let took = start.elapsed();`.
fn timed_names(source: &Source) -> Vec<String> {
    let name = |code: &str| {
        let (left, right) = code.split_once('=')?;
        let name = left.split(':').next()?.trim().strip_prefix("let ")?.trim();
        right.contains(".elapsed()").then(|| name.trim_start_matches("mut ").to_owned())
    };
    source.tested().filter_map(|(_, line)| name(&line.code)).collect()
}

/// The arguments of every assertion in tests, on one line, with the number of the first.
fn assertions(source: &Source) -> Vec<(usize, String)> {
    let starts = source.tested().filter_map(|(number, line)| {
        let at = line.code.find("assert!(")? + "assert!".len();
        Some((number, at))
    });
    starts.map(|(number, at)| (number, arguments(source, number, at))).collect()
}

fn arguments(source: &Source, number: usize, from: usize) -> String {
    let first = source.lines[number - 1].code[from..].chars();
    let rest = source.lines[number..].iter().flat_map(|line| line.code.chars());
    let mut depth = 0_usize;
    let inside = first.chain(rest).take_while(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0
    });
    inside.filter(|c| !c.is_whitespace()).collect()
}

fn bounds_time(text: &str, timed: &[String]) -> bool {
    let measured = timed.iter().any(|name| has_less(text, name) || has_greater(text, name));
    measured || has_less(text, ".elapsed()") || has_greater(text, ".elapsed()")
}

/// `time < x`, also through `time.as_millis()`.
fn has_less(text: &str, time: &str) -> bool {
    occurrences(text, time).any(|at| {
        let rest = skip_calls(&text[at + time.len()..]);
        rest.starts_with('<') && !rest.starts_with("<<")
    })
}

/// `x > time` or `x >= time`, where time may be `start.elapsed()`.
fn has_greater(text: &str, time: &str) -> bool {
    occurrences(text, time).any(|at| {
        let operand_start = text[..at].rfind(['>', '<', ',', '&', '|', '(']);
        let before = operand_start.map_or("", |start| &text[..=start]);
        before.ends_with('>') && !before.ends_with("->") && !before.ends_with("=>")
    })
}

fn occurrences<'a>(text: &'a str, time: &'a str) -> impl Iterator<Item = usize> + 'a {
    let whole = move |at: usize| time.starts_with('.') || find_word(&text[at..], time) == Some(0);
    text.match_indices(time).map(|(at, _)| at).filter(move |&at| whole(at))
}

/// Skips `.as_millis()` and the like.
fn skip_calls(text: &str) -> &str {
    let Some(after_dot) = text.strip_prefix('.') else { return text };
    let call = after_dot.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    call.strip_prefix("()").map_or(call, skip_calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on;

    fn found(body: &str) -> usize {
        on(check, "a/tests/b.rs", &format!("#[test]\nfn c() {{\n    {body}\n}}\n")).len()
    }

    #[test]
    fn lower_bounds_and_patience_pass() {
        assert_eq!(found("assert!(start.elapsed() >= PAUSE);"), 0);
        assert_eq!(found("assert!(start.elapsed().as_millis() > 5, \"{} < 5\", x);"), 0);
        assert_eq!(found("while start.elapsed() < PATIENCE { poll(); }"), 0);
        assert_eq!(found("let polls = 3;\n    assert!(polls < 10);"), 0);
        assert_eq!(
            found("// Watchdog: a hang, not a slow machine.\n    assert!(s.elapsed() < M);"),
            0
        );
    }

    #[test]
    fn upper_bounds_are_found_in_every_shape() {
        assert_eq!(found("assert!(start.elapsed() < LIMIT);"), 1);
        assert_eq!(found("assert!(\n        start.elapsed().as_millis() <= 50,\n    );"), 1);
        assert_eq!(found("assert!(ok && LIMIT > start.elapsed());"), 1);
        assert_eq!(found("prop_assert!(limit >= start.elapsed());"), 1);
        assert_eq!(found("let took = start.elapsed();\n    assert!(took < LIMIT);"), 1);
        assert_eq!(found("let ms = start.elapsed().as_millis();\n    assert!(50 > ms);"), 1);
    }

    #[test]
    fn code_that_ships_may_measure() {
        assert_eq!(on(check, "a/src/b.rs", "fn c() { assert!(s.elapsed() < LIMIT); }\n"), []);
    }
}
