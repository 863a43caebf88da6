//! What is run: rows of kernels, columns of user-space stacks, and the cells that are chosen.

use std::str::FromStr;

/// A kernel, by the release of the distribution that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// What cells are chosen by.
    pub(super) name: &'static str,
    /// Whose newest kernel it is.
    pub(super) suite: &'static str,
    /// The kind of device made in it.
    pub(super) link: Link,
}

/// The kernel's drivers that need no hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// RoCE.
    Rxe,
    /// iWARP, from the kernel's source: the distribution leaves it out.
    Siw,
}

/// What a program links and loads, by the release that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// The version of rdma-core, or `newest`.
    pub(super) name: &'static str,
    /// The release.
    pub(super) suite: &'static str,
    /// Packages that have other names elsewhere, or are needed there only.
    pub(super) packages: &'static [&'static str],
    /// Another release whose C library takes the place of this one's, which is too old for programs
    /// built here.
    pub(super) libc: Option<&'static str>,
    /// The stack whose drivers do not fit.
    pub(super) stranger: &'static str,
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "5.10", suite: "bullseye", link: Link::Rxe },
    Row { name: "6.1", suite: "bookworm", link: Link::Rxe },
    Row { name: "6.12", suite: "trixie", link: Link::Rxe },
    Row { name: "newest", suite: "sid", link: Link::Rxe },
    Row { name: "6.1-siw", suite: "bookworm", link: Link::Siw },
];

const OLD_NAMES: &[&str] = &["librdmacm1", "libpsm-infinipath1", "libuuid1"];
const NEW_NAMES: &[&str] = &["librdmacm1t64"];

pub(super) const STACKS: &[Stack] = &[
    Stack {
        name: "33",
        suite: "bullseye",
        packages: OLD_NAMES,
        libc: Some("bookworm"),
        stranger: "56",
    },
    Stack { name: "44", suite: "bookworm", packages: OLD_NAMES, libc: None, stranger: "33" },
    Stack { name: "56", suite: "trixie", packages: NEW_NAMES, libc: None, stranger: "33" },
    Stack { name: "newest", suite: "sid", packages: NEW_NAMES, libc: None, stranger: "33" },
];

/// A cell, or all of a row or a column: `6.12/56`, `6.12/*`, `*/56`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    row: Option<String>,
    stack: Option<String>,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (row, stack) = text.split_once('/').ok_or("write it like 6.12/56 or 6.12/*")?;
        let rows: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        let stacks: Vec<_> = STACKS.iter().map(|stack| stack.name).collect();
        Ok(Self { row: one_of(row, &rows)?, stack: one_of(stack, &stacks)? })
    }
}

fn one_of(text: &str, names: &[&str]) -> Result<Option<String>, String> {
    match text {
        "*" => Ok(None),
        name if names.contains(&name) => Ok(Some(name.to_owned())),
        other => Err(format!("`{other}` is none of {}, and not *", names.join(", "))),
    }
}

impl Choice {
    fn takes(&self, row: &Row, stack: &Stack) -> bool {
        let fits =
            |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|w| w == name);
        fits(&self.row, row.name) && fits(&self.stack, stack.name)
    }
}

/// The stacks that are chosen for a row; without a choice, all.
pub(super) fn chosen(row: &Row, choices: &[Choice]) -> Vec<&'static Stack> {
    let takes = |stack: &&Stack| {
        choices.is_empty() || choices.iter().any(|choice| choice.takes(row, stack))
    };
    STACKS.iter().filter(takes).collect()
}

/// The stack of that name.
pub(super) fn stack(name: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|stack| stack.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(row: &str, choices: &[&str]) -> Vec<&'static str> {
        let choices: Vec<Choice> = choices.iter().map(|text| text.parse().unwrap()).collect();
        let row = ROWS.iter().find(|known| known.name == row).unwrap();
        chosen(row, &choices).iter().map(|stack| stack.name).collect()
    }

    #[test]
    fn cells_are_chosen_by_both_names_and_a_star_is_any() {
        assert_eq!(names("6.12", &["6.12/56"]), ["56"]);
        assert_eq!(names("6.1", &["6.12/56"]), [""; 0]);
        assert_eq!(names("6.1", &["*/44", "6.1/newest"]), ["44", "newest"]);
        assert_eq!(names("newest", &["newest/*"]), ["33", "44", "56", "newest"]);
        assert_eq!(names("5.10", &[]).len(), STACKS.len());
    }

    #[test]
    fn a_cell_that_does_not_exist_is_answered_with_those_that_do() {
        let wrong = |text: &str| text.parse::<Choice>().unwrap_err();
        assert!(wrong("6.2/56").contains("6.1, 6.12"));
        assert!(wrong("6.1/5").contains("33, 44"));
        assert!(wrong("6.1").contains("6.12/56"));
    }

    #[test]
    fn every_stack_has_a_stranger_that_is_another() {
        for known in STACKS {
            assert!(stack(known.stranger).is_some_and(|other| other != known), "{}", known.name);
        }
    }
}
