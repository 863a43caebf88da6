//! Marks of unfinished work, tests that are switched off, long files, foreign paths, stray spaces.

use super::Tree;
use crate::files::TextFile;
use crate::report::Problem;
use crate::source::{Source, find_word};

const LINES_MAX: usize = 700;

const UNFINISHED: &[&str] = &["TODO", "FIXME", "XXX"];

/// Directories of one machine or one person.
const PRIVATE_DIRS: &[&str] = &["work", "home", "root", "Users"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let rust = tree.sources.iter().flat_map(|source| {
        unfinished_rust(source).into_iter().chain(ignored(source)).chain(too_long(source))
    });
    let texts = tree.files.iter().flat_map(|file| {
        unfinished_text(file).into_iter().chain(trailing(file)).chain(private_paths(file))
    });
    rust.chain(texts).collect()
}

fn unfinished_rust(source: &Source) -> Vec<Problem> {
    let marked = source.numbered().filter(|(_, line)| is_unfinished(&line.code, &line.comment));
    marked.map(|(number, _)| unfinished(source.place(number))).collect()
}

fn is_unfinished(code: &str, comment: &str) -> bool {
    UNFINISHED
        .iter()
        .any(|mark| find_word(code, mark).is_some() || find_word(comment, mark).is_some())
}

/// Settings and scripts; prose may speak about such marks.
fn unfinished_text(file: &TextFile) -> Vec<Problem> {
    if file.path.ends_with(".rs") || file.path.ends_with(".md") {
        return Vec::new();
    }
    on_lines(file, |line| is_unfinished(line, ""), unfinished)
}

fn unfinished(place: String) -> Problem {
    Problem::new(
        place,
        "a mark of unfinished work",
        "finish it, or open an issue and say its number",
    )
}

fn ignored(source: &Source) -> Vec<Problem> {
    let ignored = source.numbered().filter(|(_, line)| {
        let code = line.code.replace(' ', "");
        code.contains("#[ignore") || code.contains(",ignore")
    });
    let instead = "make it run, or delete it: a test that never runs promises what nobody checks";
    ignored
        .map(|(n, _)| Problem::new(source.place(n), "a test that is switched off", instead))
        .collect()
}

fn too_long(source: &Source) -> Option<Problem> {
    let lines = source.lines.len();
    let what = format!("{lines} lines, more than {LINES_MAX}");
    let instead = "split it: one purpose a file, usually under 500 lines";
    (lines > LINES_MAX).then(|| Problem::new(&source.path, what, instead))
}

fn trailing(file: &TextFile) -> Vec<Problem> {
    on_lines(
        file,
        |line| line.ends_with([' ', '\t', '\r']),
        |place| Problem::new(place, "white space at the end of the line", "remove it"),
    )
}

fn private_paths(file: &TextFile) -> Vec<Problem> {
    on_lines(file, names_private_dir, |place| {
        Problem::new(place, "a path of somebody's machine", "use a path relative to the workspace")
    })
}

fn names_private_dir(line: &str) -> bool {
    PRIVATE_DIRS.iter().any(|dir| {
        let path = format!("/{dir}");
        line.match_indices(&path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + path.len()..].chars().next();
            starts_path(before) && !after.is_some_and(|c| c.is_alphanumeric() || "_-.".contains(c))
        })
    })
}

/// Not in the middle of a relative path or an address.
fn starts_path(before: Option<char>) -> bool {
    !before.is_some_and(|c| c.is_alphanumeric() || "._-/~{}*$)".contains(c))
}

fn on_lines(
    file: &TextFile,
    wrong: impl Fn(&str) -> bool,
    problem: impl Fn(String) -> Problem,
) -> Vec<Problem> {
    let lines = file.text.split('\n').enumerate().filter(|(_, line)| wrong(line));
    lines.map(|(index, _)| problem(format!("{}:{}", file.path, index + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on;

    fn found(path: &str, text: &str) -> Vec<String> {
        on(check, path, text).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn ordinary_text_passes() {
        assert!(found("a/src/b.rs", "// done\nfn c() { d(\"TODO\", 'X'); }\n").is_empty());
        assert!(
            found("README.md", "No TODO here.\nSee docs/work/home and https://a.b/home.\n")
                .is_empty()
        );
        assert!(
            found("a/src/b.rs", "use proptest::prelude::*;\nconst A: &str = \"/tmp/x\";\n")
                .is_empty()
        );
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(found("a/src/b.rs", "// FIXME later\n"), ["a mark of unfinished work"]);
        assert_eq!(found("a/Cargo.toml", "# TODO: more\n"), ["a mark of unfinished work"]);
        assert_eq!(found(".ci/run", "# XXX\n"), ["a mark of unfinished work"]);
    }

    #[test]
    fn a_test_switched_off_is_found() {
        assert_eq!(found("a/tests/b.rs", "#[test]\n#[ignore = \"slow\"]\nfn c() {}\n").len(), 1);
        assert_eq!(found("a/tests/b.rs", "#[cfg_attr(miri, ignore)]\nfn c() {}\n").len(), 1);
    }

    #[test]
    fn a_file_may_have_so_many_lines() {
        assert!(found("a/src/b.rs", &"\n".repeat(LINES_MAX)).is_empty());
        assert_eq!(found("a/src/b.rs", &"\n".repeat(LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        for dir in PRIVATE_DIRS {
            assert_eq!(found("README.md", &format!("see /{dir}/a\n")).len(), 1);
            assert_eq!(found("a/src/b.rs", &format!("const A: &str = \"/{dir}\";\n")).len(), 1);
        }
    }

    #[test]
    fn trailing_space_is_found() {
        assert_eq!(on(check, "README.md", "a\nb\x20\n")[0].place, "README.md:2");
    }
}
