//! The matrix for people.

use comfy_table::{ContentArrangement, Table};

use super::ledger::Ended;
use super::matrix::Matrix;

/// Providers against groups, with counts.
pub(crate) fn by_group(matrix: &Matrix) -> Table {
    let groups = matrix.groups();
    let mut table = table(["provider"].into_iter().chain(groups.iter().copied()));
    for provider in &matrix.providers {
        let counts = groups.iter().map(|group| count(matrix, provider, group));
        table.add_row([provider.clone()].into_iter().chain(counts));
    }
    table
}

/// Cases against providers.
pub(crate) fn by_case(matrix: &Matrix) -> Table {
    let providers = matrix.providers.iter().map(String::as_str);
    let mut table = table(["group", "case"].into_iter().chain(providers));
    for case in &matrix.cases {
        let ended = matrix.providers.iter().map(|p| word(matrix.ended(p, &case.name)));
        table.add_row([case.group.as_str(), case.name.as_str()].into_iter().chain(ended));
    }
    table
}

fn table<'a>(header: impl Iterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

fn word(ended: Option<Ended>) -> &'static str {
    match ended {
        Some(Ended::Passed) => "passed",
        Some(Ended::Failed) => "FAILED",
        Some(Ended::Skipped) => "skipped",
        None => "-",
    }
}

fn count(matrix: &Matrix, provider: &str, group: &str) -> String {
    let cases = matrix.cases.iter().filter(|case| case.group == group);
    let ended: Vec<_> = cases.map(|case| matrix.ended(provider, &case.name)).collect();
    let parts =
        [Some(Ended::Passed), Some(Ended::Failed), Some(Ended::Skipped), None].map(|kind| {
            let count = ended.iter().filter(|ended| **ended == kind).count();
            let name = if kind.is_none() { "not run" } else { word(kind) };
            (count > 0).then(|| format!("{count} {name}"))
        });
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Case;
    use super::super::ledger::Entry;
    use super::*;

    fn matrix() -> Matrix {
        let cases = [("a", "g"), ("b", "g"), ("c", "h")];
        let cases = cases.map(|(name, group)| Case { name: name.into(), group: group.into() });
        let entry = |case: &str, outcome| Entry {
            provider: "sim".into(),
            case: case.into(),
            outcome,
            reason: None,
        };
        let entries = [entry("a", Ended::Passed), entry("b", Ended::Failed)];
        Matrix::new(cases.to_vec(), &entries, &["sim"])
    }

    #[test]
    fn groups_are_counted() {
        let text = by_group(&matrix()).to_string();
        assert!(text.contains("1 passed, 1 FAILED") && text.contains("1 not run"), "{text}");
    }

    #[test]
    fn every_case_has_a_line() {
        let text = by_case(&matrix()).to_string();
        assert!(text.lines().any(|line| line.contains(" b ") && line.contains("FAILED")), "{text}");
    }
}
