//! Cases that a required provider may skip or lack, each with its reason.

use super::Case;

/// `xtask/exceptions.txt`: a provider, a case or `GROUP::*`, and a reason a line.
#[derive(Debug, Default)]
pub(crate) struct Exceptions(Vec<(String, String)>);

impl Exceptions {
    /// Reads the file; `#` starts a comment line.
    ///
    /// # Errors
    /// With the line that has no reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        entries.map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// The same with the cases of a group in its place; a group that no case belongs to stays.
    pub(crate) fn by_case(&self, cases: &[Case]) -> Self {
        let expanded = |(provider, name): &(String, String)| {
            let group = name.strip_suffix("::*");
            let members = cases.iter().filter(|case| group == Some(&case.group));
            let mut names: Vec<_> = members.map(|case| case.name.clone()).collect();
            if names.is_empty() {
                names.push(name.clone());
            }
            names.into_iter().map(|name| (provider.clone(), name)).collect::<Vec<_>>()
        };
        Self(self.0.iter().flat_map(expanded).collect())
    }

    /// Whether `provider` need not pass `case`.
    pub(crate) fn cover(&self, provider: &str, case: &str) -> bool {
        self.0.iter().any(|(p, c)| p == provider && c == case)
    }

    /// All exceptions: provider and case.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(provider, case)| (provider.as_str(), case.as_str()))
    }
}

fn entry(line: &str) -> Result<(String, String), String> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(provider), Some(case), Some(_reason)) => Ok((provider.into(), case.into())),
        _ => Err(format!("exceptions.txt: `{line}` must be a provider, a case and a reason")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_for_one_case_of_one_provider() {
        let exceptions =
            Exceptions::parse("# heading\n\ntcp a_case no such thing in TCP\n").unwrap();
        assert!(exceptions.cover("tcp", "a_case"));
        assert!(!exceptions.cover("sim", "a_case") && !exceptions.cover("tcp", "b"));
    }

    #[test]
    fn an_exception_for_a_group_is_one_for_each_of_its_cases() {
        let case = |group: &str, name: &str| Case { name: name.into(), group: group.into() };
        let cases = [case("rma", "a"), case("rma", "b"), case("misuse", "c")];
        let text = "tcp rma::* has none\ntcp nosuch::* has none\n";
        let exceptions = Exceptions::parse(text).unwrap().by_case(&cases);
        let names: Vec<_> = exceptions.iter().map(|(_, case)| case).collect();
        assert_eq!(names, ["a", "b", "nosuch::*"]);
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        assert!(Exceptions::parse("tcp a_case\n").unwrap_err().contains("reason"));
    }
}
