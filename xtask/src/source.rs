//! A Rust file as the checks see it: its lines taken apart, and which of them are tests.

use std::collections::BTreeSet;

use crate::files::TextFile;
use crate::lex::{self, Line};

/// A Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root of the workspace, with forward slashes.
    pub(crate) path: String,
    /// Its lines, the first at index 0.
    pub(crate) lines: Vec<Line>,
    /// For each line, whether it is compiled for tests only.
    pub(crate) in_test: Vec<bool>,
}

impl Source {
    /// A file on its own: modules for tests that live in other files are not known.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let lines = lex::lex(text);
        let whole =
            is_test_path(path) || lines.iter().any(|line| has_attribute(line, "#![cfg(test)]"));
        let in_test = if whole { vec![true; lines.len()] } else { test_lines(&lines) };
        Self { path: path.to_owned(), lines, in_test }
    }

    /// The directory of the crate, which is also its name.
    pub(crate) fn krate(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Numbered lines that are compiled outside tests.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.numbered().filter(|(number, _)| !self.in_test[number - 1])
    }

    /// Numbered lines that are compiled for tests only.
    pub(crate) fn tested(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.numbered().filter(|(number, _)| self.in_test[number - 1])
    }

    /// Whether a comment that starts like one of `excuses` stands on the line, or directly before
    /// the statement that the line belongs to.
    pub(crate) fn is_excused(&self, number: usize, excuses: &[&str]) -> bool {
        let says =
            |line: &Line| excuses.iter().any(|excuse| line.comment.trim().starts_with(excuse));
        let at = number - 1;
        let first = (0..=at).rev().find(|&index| !self.continues(index)).unwrap_or(at);
        let before = self.lines[..first].iter().rev().take_while(|line| is_only_comment(line));
        self.lines[first..=at].iter().chain(before).any(says)
    }

    /// Whether a line continues the call chain of the one before; comments inside it do too.
    fn continues(&self, index: usize) -> bool {
        let code = self.lines[index].code.trim();
        let next =
            || self.lines.get(index + 1).is_some_and(|line| line.code.trim().starts_with('.'));
        code.starts_with('.') || (is_only_comment(&self.lines[index]) && next())
    }

    /// Where a line is, for a message.
    pub(crate) fn place(&self, number: usize) -> String {
        format!("{}:{number}", self.path)
    }
}

/// All Rust files among `files`, with test modules in files of their own marked as tests.
pub(crate) fn sources(files: &[TextFile]) -> Vec<Source> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|file| Source::new(&file.path, &file.text)).collect();
    let modules: BTreeSet<String> = sources.iter().flat_map(outside_test_modules).collect();
    for source in &mut sources {
        let inside = |module: &String| {
            source.path == format!("{module}.rs") || source.path.starts_with(&format!("{module}/"))
        };
        if modules.iter().any(inside) {
            source.in_test.fill(true);
        }
    }
    sources
}

/// Whether `word` stands in `code` as a whole name, and where.
pub(crate) fn find_word(code: &str, word: &str) -> Option<usize> {
    code.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !is_ident(before) && !is_ident(after)
    })
}

fn is_only_comment(line: &Line) -> bool {
    line.code.trim().is_empty() && !line.comment.trim().is_empty()
}

fn is_ident(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn is_test_path(path: &str) -> bool {
    let dirs = ["/tests/", "/benches/", "/examples/", "/fuzz/"];
    dirs.iter().any(|dir| path.contains(dir)) || path.ends_with("/build.rs")
}

fn has_attribute(line: &Line, attribute: &str) -> bool {
    line.code.replace(' ', "").contains(attribute)
}

fn opens_test(line: &Line) -> bool {
    ["#[cfg(test)]", "#[cfg(all(test", "#[test]"].iter().any(|start| has_attribute(line, start))
}

fn test_lines(lines: &[Line]) -> Vec<bool> {
    let mut marks = vec![false; lines.len()];
    for start in 0..lines.len() {
        if !marks[start] && opens_test(&lines[start]) {
            let end = item_end(lines, start);
            marks[start..=end].fill(true);
        }
    }
    marks
}

/// The last line of the item that starts at `start` with an attribute.
fn item_end(lines: &[Line], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for c in line.code.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(c, '}' | ';') {
                return index;
            }
        }
    }
    lines.len() - 1
}

/// The files, without `.rs`, of `#[cfg(test)] mod name;`.
fn outside_test_modules(source: &Source) -> Vec<String> {
    let module = |(_, line): (usize, &Line)| {
        let name = line.code.trim().strip_suffix(';')?.rsplit_once("mod ")?.1.trim().to_owned();
        Some(format!("{}/{name}", module_dir(&source.path)))
    };
    source.tested().filter_map(module).collect()
}

fn module_dir(path: &str) -> &str {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let (dir, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    if matches!(name, "lib" | "main" | "mod") { dir } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &str) -> Vec<bool> {
        Source::new("a/src/lib.rs", text).in_test
    }

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_test_module_ends_at_its_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(marks(text), [false, true, true, true, true, false]);
    }

    #[test]
    fn a_brace_in_a_string_does_not_end_it() {
        let text =
            "#[cfg(test)]\nmod tests {\n    const A: &str = \"}\";\n    fn b() {}\n}\nfn c() {}";
        assert_eq!(marks(text), [true, true, true, true, true, false]);
    }

    #[test]
    fn code_for_builds_without_tests_is_no_test() {
        assert_eq!(marks("#[cfg(not(test))]\nfn a() {}\n"), [false, false]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_a_test() {
        let files = [
            file("a/src/lib.rs", "mod b;\n"),
            file("a/src/b.rs", "#[cfg(test)]\nmod model;\nfn c() {}\n"),
            file("a/src/b/model.rs", "fn d() {}\n"),
            file("a/src/b/other.rs", "fn d() {}\n"),
        ];
        let tested: Vec<bool> = sources(&files).iter().map(|source| source.in_test[0]).collect();
        assert_eq!(tested, [false, true, true, false]);
    }

    #[test]
    fn integration_tests_are_tests_throughout() {
        assert_eq!(Source::new("a/tests/b.rs", "fn c() {}\n").in_test, [true]);
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert_eq!(find_word("forbid(unsafe_code) unsafe {", "unsafe"), Some(20));
        assert_eq!(find_word("unsafe_op", "unsafe"), None);
    }
}
