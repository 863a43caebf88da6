//! `cargo xtask rules`: each rule of `docs/patterns.md` with the tests that carry its number.

mod carriers;
mod id;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use crate::files::text_files;
use crate::report::{Outcome, Problem, verdict};
use crate::source::sources;
use carriers::{Carrier, Carriers};
use id::Id;
use table::{Here, Rule};

const PAGE: &str = "docs/patterns.md";

/// Prints the rules (those that bind, or all) and fails on gaps and on numbers that do not exist.
pub(crate) fn run(root: &Path, all: bool) -> Outcome {
    let files = text_files(root).map_err(|error| error.to_string())?;
    let page = files.iter().find(|file| file.path == PAGE);
    let rules = table::parse(&page.ok_or_else(|| format!("there is no {PAGE}"))?.text)?;
    let found = carriers::find(&sources(&files), &rules);
    print(&rules, &found.carriers, all);
    verdict(&problems(&rules, &found), summary(&rules, &found))
}

fn problems(rules: &[Rule], found: &Carriers) -> Vec<Problem> {
    let carried = by_rule(&found.carriers);
    let musts = rules.iter().filter(|rule| rule.here == Here::Must);
    let gaps = musts.filter(|rule| !carried.contains_key(&rule.id)).map(|rule| {
        let instead = format!(
            "write a test named {}_<claim>, or mark one with `// rules: {}`",
            rule.id.in_code(),
            rule.spelling
        );
        Problem::new(&rule.spelling, format!("no test carries it ({})", rule.name), instead)
    });
    let wrong = found.carriers.iter().filter(|carrier| !rules.iter().any(|r| r.id == carrier.id));
    let wrong = wrong.map(|carrier| {
        let what = format!("{} carries {}, which is no rule", carrier.test, carrier.id);
        Problem::new(&carrier.place, what, format!("use a number of {PAGE}"))
    });
    let empty = rules.iter().all(|rule| rule.here != Here::Must).then(nothing_binds);
    empty.into_iter().chain(gaps).chain(wrong).chain(found.problems.iter().cloned()).collect()
}

/// A page that binds nobody was misread or gutted; either way nothing was checked.
fn nothing_binds() -> Problem {
    Problem::new(PAGE, "no rule is marked must", "say in the column `here` which rules bind")
}

fn by_rule(carriers: &[Carrier]) -> BTreeMap<Id, Vec<&Carrier>> {
    let mut map: BTreeMap<Id, Vec<&Carrier>> = BTreeMap::new();
    for carrier in carriers {
        map.entry(carrier.id.clone()).or_default().push(carrier);
    }
    map
}

fn print(rules: &[Rule], carriers: &[Carrier], all: bool) {
    let carried = by_rule(carriers);
    let mut group = "";
    for rule in rules {
        let tests = carried.get(&rule.id).map_or(&[][..], Vec::as_slice);
        if !all && rule.here != Here::Must && tests.is_empty() {
            continue;
        }
        if rule.group != group {
            group = &rule.group;
            println!("\n{group}");
        }
        println!("  {:8} {:5} {}", rule.spelling, rule.here.word(), rule.name);
        for carrier in tests {
            println!("                 {} {}", carrier.place, carrier.test);
        }
    }
    println!();
}

fn summary(rules: &[Rule], found: &Carriers) -> String {
    let carried = by_rule(&found.carriers);
    let musts: Vec<_> = rules.iter().filter(|rule| rule.here == Here::Must).collect();
    let covered = musts.iter().filter(|rule| carried.contains_key(&rule.id)).count();
    format!("{covered} of {} must rules have tests", musts.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    const TABLE: &str = "## 5 PUB\n\n| ID | here | test name | rule |\n|---|---|---|---|\n\
                         | PUB-01 | must | one | r |\n| PUB-02 | later | two | r |\n";

    fn judged(test_file: &str) -> Vec<String> {
        let rules = table::parse(TABLE).unwrap();
        let found = carriers::find(&[Source::new("a/tests/b.rs", test_file)], &rules);
        problems(&rules, &found).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_must_rule_with_a_test_is_fine() {
        assert!(judged("#[test]\nfn pub_01_holds() {}\n").is_empty());
        assert!(judged("// rules: PUB-01, PUB-02\n#[test]\nfn both_hold() {}\n").is_empty());
    }

    #[test]
    fn a_must_rule_without_a_test_is_named() {
        assert_eq!(judged("#[test]\nfn pub_02_holds() {}\n"), ["no test carries it (one)"]);
        assert_eq!(judged("// fn pub_01_holds() {}\n"), ["no test carries it (one)"]);
    }

    #[test]
    fn a_number_that_does_not_exist_is_named() {
        let wrong = judged("#[test]\nfn pub_01_holds() {}\n#[test]\nfn pub_99_holds() {}\n");
        assert_eq!(wrong, ["pub_99_holds carries PUB-99, which is no rule"]);
    }

    #[test]
    fn a_page_that_binds_nobody_is_refused() {
        let rules = table::parse("| PUB-01 | later | one |\n").unwrap();
        assert_eq!(problems(&rules, &Carriers::default()).len(), 1);
    }

    #[test]
    fn the_page_of_the_project_can_be_read() {
        let page = std::fs::read_to_string(crate::files::workspace_root().join(PAGE)).unwrap();
        let rules = table::parse(&page).unwrap();
        let here = |spelling: &str| rules.iter().find(|r| r.spelling == spelling).map(|r| r.here);
        assert_eq!(here("GEN-10"), Some(Here::Zmtp));
        assert_eq!(here("REQ-N1"), Some(Here::Must));
        assert_eq!(here("DEV-11"), Some(Here::Must));
        assert_eq!(here("SURV-01"), Some(Here::Later));
    }
}
