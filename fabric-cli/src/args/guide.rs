//! What the guide has people type is what the command takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;
use super::shell::{self, Line};

/// The pages; none where the crate was unpacked without them.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Ok(docs) = fs::read_dir(root.join("docs")) else { return Vec::new() };
    let pages = docs.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root.join("README.md")]).collect()
}

#[test]
fn every_line_of_the_guide_is_one_that_the_command_takes() {
    let mut seen = 0;
    for page in pages() {
        for line in shell::lines(&fs::read_to_string(&page).unwrap(), &["fabric"]) {
            seen += 1;
            if let Some(error) = refusal(&line) {
                panic!("{}: {}\n{error}", page.display(), line.words.join(" "));
            }
        }
    }
    assert!(seen > 50 || pages().is_empty(), "only {seen} lines were found");
}

#[test]
fn every_pod_of_the_manifests_starts_what_the_command_takes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/manifests");
    let Ok(manifests) = fs::read_dir(dir) else { return };
    let mut seen = 0;
    for manifest in manifests.map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&manifest).unwrap();
        for args in text.lines().filter_map(|line| line.trim().strip_prefix("args: ")) {
            seen += 1;
            let mut words: Vec<String> = serde_json::from_str(args).unwrap();
            words.insert(0, "fabric".to_owned());
            let refusal = refusal(&Line { words, is_whole: true });
            assert!(refusal.is_none(), "{}: {args}: {refusal:?}", manifest.display());
        }
    }
    assert!(seen > 3, "only {seen} were found");
}

fn refusal(line: &Line) -> Option<clap::Error> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    use ErrorKind::{MissingRequiredArgument, MissingSubcommand};
    let error = Cli::try_parse_from(&line.words).err()?;
    let taken = match error.kind() {
        DisplayHelp | DisplayVersion => true,
        DisplayHelpOnMissingArgumentOrSubcommand | MissingRequiredArgument | MissingSubcommand => {
            !line.is_whole
        }
        _ => false,
    };
    (!taken).then_some(error)
}

#[test]
fn a_line_with_an_option_that_there_is_not_is_refused() {
    let whole = |text: &str| {
        let line = shell::lines(&format!("```sh\n{text}\n```\n"), &["fabric"]).remove(0);
        refusal(&line).is_none()
    };
    assert!(whole("fabric push tcp://a:1 --repeat 3"));
    assert!(!whole("fabric push tcp://a:1 --repeet 3"));
    assert!(!whole("fabric push"));
    assert!(!whole("fabric poll tcp://a:1"));
}
