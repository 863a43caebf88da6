//! What pages have people type is what these tasks take.

use clap::Parser;
use clap::error::ErrorKind;

use crate::Arguments;
use crate::files::{text_files, workspace_root};

#[path = "../../fabric-cli/src/args/shell.rs"]
mod shell;

#[test]
fn every_line_of_a_page_is_one_that_the_tasks_take() {
    let files = text_files(&workspace_root()).unwrap();
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let mut seen = 0;
    for page in pages {
        for line in shell::lines(&page.text, &["cargo", "xtask"]) {
            seen += 1;
            let refusal = refusal(&line);
            assert!(refusal.is_none(), "{}: {}: {refusal:?}", page.path, line.words.join(" "));
        }
    }
    assert!(seen > 50, "only {seen} lines were found");
}

fn refusal(line: &shell::Line) -> Option<clap::Error> {
    let error = Arguments::try_parse_from(&line.words[1..]).err()?;
    let is_begun = !line.is_whole
        && matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
    (!is_begun && error.kind() != ErrorKind::DisplayHelp).then_some(error)
}
