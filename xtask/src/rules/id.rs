//! The number of a rule: `PUB-07`, `REQ-N1`, `DEV-1`.

use std::fmt;

/// A rule's number, however it is spelt: `DEV-1`, `DEV-01` and `dev_01` are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    group: String,
    /// From nng: `N1` and `01` are two rules.
    foreign: bool,
    number: u32,
}

impl Id {
    /// Reads `PUB-07`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (group, number) = text.split_once('-')?;
        let upper = group.chars().all(|c| c.is_ascii_uppercase());
        (upper && !group.is_empty()).then(|| Self::new(group, number)).flatten()
    }

    /// Reads the beginning of `pub_07_drop_only_for_full_subscriber`.
    pub(crate) fn from_test_name(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, '_');
        let (group, number, claim) = (parts.next()?, parts.next()?, parts.next()?);
        let lower = group.chars().all(|c| c.is_ascii_lowercase());
        let long_enough = number.len() == 2;
        (lower && long_enough && !claim.is_empty())
            .then(|| Self::new(&group.to_uppercase(), &number.to_uppercase()))
            .flatten()
    }

    /// As the beginning of a test's name.
    pub(crate) fn in_code(&self) -> String {
        self.to_string().to_lowercase().replace('-', "_")
    }

    /// `PUB` of `PUB-07`.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    fn new(group: &str, number: &str) -> Option<Self> {
        let digits = number.strip_prefix('N').unwrap_or(number);
        let plain = (1..=2).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit());
        let foreign = digits.len() < number.len();
        let number = digits.parse().ok().filter(|_| plain)?;
        Some(Self { group: group.to_owned(), foreign, number })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.foreign {
            write!(f, "{}-N{}", self.group, self.number)
        } else {
            write!(f, "{}-{:02}", self.group, self.number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_number_are_one() {
        assert_eq!(Id::parse("DEV-1"), Id::parse("DEV-01"));
        assert_eq!(Id::parse("DEV-1"), Id::from_test_name("dev_01_claim"));
        assert_eq!(Id::parse("REQ-N1"), Id::from_test_name("req_n1_claim"));
        assert_ne!(Id::parse("REQ-N1"), Id::parse("REQ-01"));
    }

    #[test]
    fn an_ordinary_name_carries_no_number() {
        for name in
            ["pub_sub_works", "pub_7_claim", "pub_07", "a_full_queue", "x2_07_a", "pub_007_a"]
        {
            assert_eq!(Id::from_test_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_number_is_shown_as_a_test_would_carry_it() {
        assert_eq!(Id::parse("DEV-1").unwrap().in_code(), "dev_01");
        assert_eq!(Id::parse("REP-N1").unwrap().in_code(), "rep_n1");
    }
}
