//! The table of findings in `docs/doctor.md` lists every finding and every test, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fabric_doctor::{Entry, Met, catalogue};

/// The findings that files can show, by design: each needs a host that has it and one that has not.
const BY_FILES: &[u8] =
    &[1, 2, 3, 4, 7, 8, 11, 12, 13, 15, 16, 17, 19, 20, 21, 22, 23, 26, 28, 29, 30, 31, 32, 44, 47];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of a line of the table.
struct Row {
    title: String,
    met: String,
    with_files: Vec<String>,
    in_guest: Vec<String>,
}

fn rows() -> BTreeMap<String, Row> {
    let text = text("docs/doctor.md");
    let lines = text.lines().filter(|line| line.starts_with("| D"));
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{line}");
        let names = |cell: &str| -> Vec<String> {
            let names = cell.split(", ").filter(|name| *name != "–");
            names.map(|name| name.trim_matches('`').to_owned()).collect()
        };
        let (title, met) = (cells[1].to_owned(), cells[2].to_owned());
        let (with_files, in_guest) = (names(cells[3]), names(cells[4]));
        (cells[0].to_owned(), Row { title, met, with_files, in_guest })
    };
    lines.map(row).collect()
}

/// The tests of a file whose names begin with this finding's number.
fn tests(file: &str, entry: &Entry) -> Vec<String> {
    let prefix = format!("fn {}_", entry.id.to_string().to_lowercase());
    let text = text(file);
    let marked = text.lines().zip(text.lines().skip(1)).filter(|(mark, _)| *mark == "#[test]");
    let names = marked.filter(|(_, line)| line.starts_with(&prefix));
    let names = names.filter_map(|(_, line)| line.trim_start_matches("fn ").split_once('('));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// The scenes of two guests that are named by this finding.
fn scenes(entry: &Entry) -> Vec<String> {
    let prefix = format!("name = \"{}: ", entry.id);
    let text = text("xtask/scenarios/two-nodes.toml");
    let lines = text.lines().filter(|line| line.starts_with(&prefix));
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

fn met(entry: &Entry) -> &'static str {
    match entry.met {
        Met::Files => "files",
        Met::Kernel => "the kernel",
        Met::Messages => "a message",
        Met::Provider => "a provider at work",
    }
}

#[test]
fn the_table_lists_every_finding_with_all_its_tests() {
    let rows = rows();
    assert_eq!(rows.len(), catalogue().len());
    for entry in catalogue() {
        let id = entry.id.to_string();
        let row = rows.get(&id).unwrap_or_else(|| panic!("{id} is not in the table"));
        assert_eq!((row.title.as_str(), row.met.as_str()), (entry.id.title(), met(entry)), "{id}");
        assert_eq!(row.with_files, tests("fabric-doctor/tests/findings.rs", entry), "{id}");
        let in_guest = [tests("fabric-cli/tests/doctor_guest.rs", entry), scenes(entry)].concat();
        assert_eq!(row.in_guest, in_guest, "{id}");
    }
}

#[test]
fn every_finding_that_files_can_show_has_a_pair_of_hosts() {
    for entry in catalogue() {
        let id = entry.id.to_string();
        let tests = tests("fabric-doctor/tests/findings.rs", entry);
        assert!(entry.met != Met::Files || !tests.is_empty(), "{id}");
        assert!(entry.met == Met::Files || !BY_FILES.contains(&entry.id.number()), "{id}");
    }
}

#[test]
fn at_least_twelve_faults_are_made_for_real() {
    let faults = |entry: &Entry| tests("fabric-cli/tests/doctor_guest.rs", entry).len();
    assert!(catalogue().iter().map(faults).sum::<usize>() >= 12);
}
