//! Tests that carry a rule's number, by their name or by a comment above them.

use super::id::Id;
use super::table::Rule;
use crate::report::Problem;
use crate::source::{Source, find_word};

/// A test with one of its numbers.
#[derive(Debug, Clone)]
pub(crate) struct Carrier {
    /// Which rule.
    pub(crate) id: Id,
    /// The test's name.
    pub(crate) test: String,
    /// Where it is.
    pub(crate) place: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Carriers {
    /// Tests with numbers.
    pub(crate) carriers: Vec<Carrier>,
    /// Comments that could not be read or belong to no test.
    pub(crate) problems: Vec<Problem>,
}

const MARK: &str = "rules:";

/// Searches everything that is compiled for tests only.
pub(crate) fn find(sources: &[Source], rules: &[Rule]) -> Carriers {
    let mut found = Carriers::default();
    for source in sources {
        search(source, rules, &mut found);
    }
    found
}

fn search(source: &Source, rules: &[Rule], found: &mut Carriers) {
    let mut above = Above::default();
    for (number, line) in source.tested() {
        let code = line.code.trim();
        if let Some(list) = marked(&line.comment).filter(|_| code.is_empty()) {
            above.note(source.place(number), list, found);
        } else if let Some(test) = function(code) {
            let own = Id::from_test_name(test).filter(|id| is_group(id, rules));
            let ids = own.into_iter().chain(std::mem::take(&mut above).ids);
            let carrier = |id| Carrier { id, test: test.to_owned(), place: source.place(number) };
            found.carriers.extend(ids.map(carrier));
        } else if !passes(code, &line.comment) {
            above.strand(found);
        }
    }
    above.strand(found);
}

/// Numbers that wait for the test below them.
#[derive(Default)]
struct Above {
    place: String,
    ids: Vec<Id>,
}

impl Above {
    fn note(&mut self, place: String, list: &str, found: &mut Carriers) {
        for text in list.split(',').map(str::trim) {
            match Id::parse(text) {
                Some(id) => self.ids.push(id),
                None => found.problems.push(unreadable(&place, text)),
            }
        }
        self.place = place;
    }

    /// The line below is no test.
    fn strand(&mut self, found: &mut Carriers) {
        if !std::mem::take(&mut self.ids).is_empty() {
            let instead = "put it directly above the test";
            found.problems.push(Problem::new(&self.place, "rules without a test below", instead));
        }
    }
}

fn unreadable(place: &str, text: &str) -> Problem {
    let instead = "write `// rules: HWM-12, PIPE-04`";
    Problem::new(place, format!("`{text}` is not the number of a rule"), instead)
}

/// The list in `// rules: HWM-12, PIPE-04`.
fn marked(comment: &str) -> Option<&str> {
    let list = comment.trim().trim_start_matches('/').trim().strip_prefix(MARK)?;
    Some(list.trim().trim_end_matches('.'))
}

/// Attributes and comments may stand between the numbers and the test.
fn passes(code: &str, comment: &str) -> bool {
    code.starts_with("#[") || (code.is_empty() && !comment.trim().is_empty())
}

/// The name in `fn name(` or `fn name<`.
fn function(code: &str) -> Option<&str> {
    let at = find_word(code, "fn")?;
    let rest = code[at + "fn".len()..].trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0 && rest[end..].starts_with(['(', '<'])).then(|| &rest[..end])
}

/// `utf_16_to_bytes` is an ordinary name unless a table has rules of that group.
fn is_group(id: &Id, rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.id.group() == id.group())
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn found(text: &str) -> (Vec<String>, usize) {
        let rules = table::parse("| PUB-01 | must | a |\n| HWM-12 | must | b |\n").unwrap();
        let found = find(&[Source::new("a/tests/b.rs", text)], &rules);
        let show = |c: &Carrier| format!("{} {}", c.id, c.test);
        (found.carriers.iter().map(show).collect(), found.problems.len())
    }

    #[test]
    fn a_name_or_a_comment_carries_a_number() {
        let text = "// rules: HWM-12\n/// Doc.\n#[test]\nfn pub_01_a() {}\n";
        assert_eq!(found(text), (vec!["PUB-01 pub_01_a".into(), "HWM-12 pub_01_a".into()], 0));
    }

    #[test]
    fn generic_and_macro_functions_count() {
        let text = "rules! {\n    fn pub_01_a<D: Domain>(net: &Net<D>) {\n        b();\n    }\n}\n";
        assert_eq!(found(text).0, ["PUB-01 pub_01_a"]);
    }

    #[test]
    fn a_comment_reaches_only_the_next_test() {
        let text = "// rules: HWM-12\nfn a() {}\nfn b() {}\n";
        assert_eq!(found(text), (vec!["HWM-12 a".into()], 0));
    }

    #[test]
    fn a_comment_that_belongs_to_no_test_is_a_problem() {
        assert_eq!(found("// rules: HWM-12\n\nfn a() {}\n"), (vec![], 1));
        assert_eq!(found("// rules: HWM 12\nfn a() {}\n"), (vec![], 1));
    }

    #[test]
    fn names_like_a_number_of_no_group_are_ordinary() {
        assert_eq!(found("fn utf_16_to_bytes() {}\nfn pub_01() {}\n"), (vec![], 0));
    }

    #[test]
    fn code_that_ships_carries_nothing() {
        let rules = table::parse("| PUB-01 | must | a |\n").unwrap();
        let source = Source::new("a/src/b.rs", "fn pub_01_a() {}\n");
        assert!(find(&[source], &rules).carriers.is_empty());
    }
}
