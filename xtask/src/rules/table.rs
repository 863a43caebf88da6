//! The tables of `docs/patterns.md`.

use super::id::Id;

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Its number.
    pub(crate) id: Id,
    /// Its number as the page spells it.
    pub(crate) spelling: String,
    /// What it means here.
    pub(crate) here: Here,
    /// What to call its test, or what was found.
    pub(crate) name: String,
    /// The heading it stands under.
    pub(crate) group: String,
}

/// How a rule binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Here {
    /// Now, with a test.
    Must,
    /// With its socket.
    Later,
    /// For ZMTP with foreign peers.
    Zmtp,
    /// Not at all.
    No,
}

impl Here {
    /// As the page spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Later => "later",
            Self::Zmtp => "zmtp",
            Self::No => "none",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Must, Self::Later, Self::Zmtp, Self::No].into_iter().find(|here| here.word() == word)
    }
}

/// Reads every row that starts with a number.
///
/// # Errors
/// When a row does not say what it means here, when a number stands twice, or when there is none.
pub(crate) fn parse(page: &str) -> Result<Vec<Rule>, String> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut group = String::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            group = heading.to_owned();
        }
        let Some(rule) = row(line, &group)? else { continue };
        if rules.iter().any(|before| before.id == rule.id) {
            return Err(format!("{} stands twice in the tables", rule.spelling));
        }
        rules.push(rule);
    }
    if rules.is_empty() { Err("the page has no rules".to_owned()) } else { Ok(rules) }
}

fn row(line: &str, group: &str) -> Result<Option<Rule>, String> {
    let mut cells = line.strip_prefix('|').unwrap_or_default().split('|').map(str::trim);
    let spelling = cells.next().unwrap_or_default();
    let Some(id) = Id::parse(spelling) else { return Ok(None) };
    let here = cells.next().and_then(Here::parse);
    let here = here.ok_or_else(|| format!("{spelling} does not say must, later, zmtp or none"))?;
    let name = shorten(cells.next().unwrap_or_default());
    let group = group.to_owned();
    Ok(Some(Rule { id, spelling: spelling.to_owned(), here, name, group }))
}

/// Findings are sentences; their beginning tells which one is meant.
fn shorten(name: &str) -> String {
    const CHARS_MAX: usize = 60;
    if name.chars().count() <= CHARS_MAX {
        return name.to_owned();
    }
    let start: String = name.chars().take(CHARS_MAX).collect();
    format!("{}...", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_under_their_heading() {
        let rules =
            parse("## 1 A\n| ID | here |\n|---|---|\n| PUB-01 | zmtp | name | x |\n").unwrap();
        assert_eq!((rules[0].group.as_str(), rules[0].here), ("1 A", Here::Zmtp));
        assert_eq!(rules[0].name, "name");
    }

    #[test]
    fn a_row_that_does_not_say_how_it_binds_is_refused() {
        assert!(parse("| PUB-01 | drop_only | text |\n").unwrap_err().contains("PUB-01"));
    }

    #[test]
    fn a_number_stands_once() {
        let page = "| DEV-1 | must | a |\n| DEV-01 | must | b |\n";
        assert!(parse(page).unwrap_err().contains("twice"));
    }

    #[test]
    fn a_page_without_rules_is_refused() {
        assert!(parse("# Nothing\n").is_err());
    }
}
