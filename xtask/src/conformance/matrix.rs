//! Providers against cases.

use std::collections::BTreeMap;

use super::Case;
use super::exceptions::Exceptions;
use super::ledger::{Ended, Entry};
use crate::report::Problem;

/// How each case ended on each provider.
pub(crate) struct Matrix {
    /// All cases, in the suite's order.
    pub(crate) cases: Vec<Case>,
    /// Required providers first, then others that wrote something.
    pub(crate) providers: Vec<String>,
    ended: BTreeMap<(String, String), (Ended, Option<String>)>,
    strays: Vec<Entry>,
}

impl Matrix {
    /// From the suite's list and what was written.
    pub(crate) fn new(cases: Vec<Case>, entries: &[Entry], required: &[&str]) -> Self {
        let mut providers: Vec<String> = required.iter().map(|name| (*name).to_owned()).collect();
        let mut ended = BTreeMap::new();
        let mut strays = Vec::new();
        for entry in entries {
            if !providers.contains(&entry.provider) {
                providers.push(entry.provider.clone());
            }
            if cases.iter().any(|case| case.name == entry.case) {
                note(&mut ended, entry);
            } else {
                strays.push(entry.clone());
            }
        }
        Self { cases, providers, ended, strays }
    }

    /// How a case ended; `None` if it did not even begin.
    pub(crate) fn ended(&self, provider: &str, case: &str) -> Option<Ended> {
        self.entry(provider, case).map(|(ended, _)| *ended)
    }

    /// The groups, in the order of their first cases.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups = Vec::new();
        for case in &self.cases {
            if !groups.contains(&case.group.as_str()) {
                groups.push(case.group.as_str());
            }
        }
        groups
    }

    /// Everything that must not be: failures anywhere, gaps of required providers, stray entries,
    /// and exceptions that nothing needs.
    pub(crate) fn problems(&self, required: &[&str], exceptions: &Exceptions) -> Vec<Problem> {
        let exceptions = exceptions.by_case(&self.cases);
        let mut problems = Vec::new();
        if self.cases.is_empty() {
            problems.push(Problem::new("suite", "has no cases", "list them in the suite"));
        }
        for provider in &self.providers {
            let needed = required.contains(&provider.as_str());
            let check = |case: &Case| self.problem(provider, &case.name, needed, &exceptions);
            problems.extend(self.cases.iter().filter_map(check));
        }
        problems.extend(self.strays.iter().map(stray));
        problems.extend(exceptions.iter().filter_map(|(p, c)| self.needless(p, c)));
        problems
    }

    /// One line.
    pub(crate) fn summary(&self) -> String {
        let (providers, cases) = (self.providers.len(), self.cases.len());
        let passed = self.ended.values().filter(|(ended, _)| *ended == Ended::Passed).count();
        format!("{cases} cases, {providers} providers, {passed} of {} passed", cases * providers)
    }

    fn entry(&self, provider: &str, case: &str) -> Option<&(Ended, Option<String>)> {
        self.ended.get(&(provider.to_owned(), case.to_owned()))
    }

    fn problem(
        &self,
        provider: &str,
        case: &str,
        needed: bool,
        ex: &Exceptions,
    ) -> Option<Problem> {
        let place = format!("{provider}, {case}");
        let gap = "make it run, or say why it cannot in xtask/exceptions.txt";
        let must_run = needed && !ex.cover(provider, case);
        let why =
            |reason: &Option<String>| reason.clone().unwrap_or_else(|| "no reason given".into());
        match self.entry(provider, case) {
            Some((Ended::Failed, reason)) => {
                let what = format!("failed: {}", why(reason));
                Some(Problem::new(place, what, "run its test alone and mend the provider"))
            }
            Some((Ended::Skipped, reason)) if must_run => {
                Some(Problem::new(place, format!("was skipped: {}", why(reason)), gap))
            }
            None if must_run => Some(Problem::new(place, "did not run", gap)),
            _ => None,
        }
    }

    fn needless(&self, provider: &str, case: &str) -> Option<Problem> {
        let known = self.cases.iter().any(|known| known.name == case);
        let passed = self.ended(provider, case) == Some(Ended::Passed);
        let what = if passed { "is excepted but passes" } else { "is excepted but no case" };
        let remove = "remove the line from xtask/exceptions.txt";
        (passed || !known).then(|| Problem::new(format!("{provider}, {case}"), what, remove))
    }
}

/// A failure stays one, whatever a second run of the same case says.
fn note(ended: &mut BTreeMap<(String, String), (Ended, Option<String>)>, entry: &Entry) {
    let key = (entry.provider.clone(), entry.case.clone());
    let before = ended.get(&key).map(|(ended, _)| *ended);
    if before != Some(Ended::Failed) {
        ended.insert(key, (entry.outcome, entry.reason.clone()));
    }
}

fn stray(entry: &Entry) -> Problem {
    let place = format!("{}, {}", entry.provider, entry.case);
    Problem::new(place, "ran but is not in the suite's list", "add it to the list of cases")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIRED: &[&str] = &["sim"];

    fn entry(provider: &str, case: &str, outcome: Ended) -> Entry {
        Entry { provider: provider.into(), case: case.into(), outcome, reason: None }
    }

    fn problems(entries: &[Entry], exceptions: &str) -> Vec<String> {
        let cases = ["a", "b"].map(|name| Case { name: name.into(), group: "g".into() });
        let matrix = Matrix::new(cases.to_vec(), entries, REQUIRED);
        let exceptions = Exceptions::parse(exceptions).unwrap();
        let problems = matrix.problems(REQUIRED, &exceptions);
        problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn all_passed_is_fine() {
        let entries = [entry("sim", "a", Ended::Passed), entry("sim", "b", Ended::Passed)];
        assert!(problems(&entries, "").is_empty());
    }

    #[test]
    fn a_required_provider_must_not_skip_or_lack_a_case() {
        let entries = [entry("sim", "a", Ended::Skipped)];
        assert_eq!(
            problems(&entries, ""),
            ["sim, a: was skipped: no reason given", "sim, b: did not run"]
        );
        assert!(problems(&entries, "sim a no ring\nsim b no ring\n").is_empty());
    }

    #[test]
    fn another_provider_may_skip_but_not_fail() {
        let sim = [entry("sim", "a", Ended::Passed), entry("sim", "b", Ended::Passed)];
        let other = [entry("x", "a", Ended::Skipped), entry("x", "b", Ended::Failed)];
        assert_eq!(problems(&[sim, other].concat(), ""), ["x, b: failed: no reason given"]);
    }

    #[test]
    fn a_failure_is_not_excused_nor_outlived() {
        let entries = [
            entry("sim", "a", Ended::Failed),
            entry("sim", "a", Ended::Passed),
            entry("sim", "b", Ended::Passed),
        ];
        assert_eq!(problems(&entries, "sim a because\n"), ["sim, a: failed: no reason given"]);
    }

    #[test]
    fn what_is_not_in_the_list_is_named() {
        let entries = ["a", "b", "c"].map(|case| entry("sim", case, Ended::Passed));
        assert_eq!(problems(&entries, ""), ["sim, c: ran but is not in the suite's list"]);
    }

    #[test]
    fn an_exception_nobody_needs_is_named() {
        let entries = ["a", "b"].map(|case| entry("sim", case, Ended::Passed));
        assert_eq!(
            problems(&entries, "sim a because\nsim z because\n"),
            ["sim, a: is excepted but passes", "sim, z: is excepted but no case"]
        );
    }
}
