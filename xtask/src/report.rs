//! What a task says when it is done.

/// How a task ends: with one line for the summary, or one line saying why it failed.
pub(crate) type Outcome = Result<String, String>;

/// Something that must not be, with the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// A file and line, a crate or a rule.
    pub(crate) place: String,
    /// What is wrong there.
    pub(crate) what: String,
    /// What to do instead.
    pub(crate) instead: String,
}

impl Problem {
    /// What is wrong, where, and what to do instead.
    pub(crate) fn new(
        place: impl Into<String>,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), what: what.into(), instead: instead.into() }
    }
}

/// Prints every problem and turns them into an outcome; without problems it is `fine`.
pub(crate) fn verdict(problems: &[Problem], fine: String) -> Outcome {
    for problem in problems {
        eprintln!("{}: {}\n    instead: {}", problem.place, problem.what, problem.instead);
    }
    match problems {
        [] => Ok(fine),
        [only] => Err(one_line(only)),
        [first, rest @ ..] => Err(format!("{} (and {} more above)", one_line(first), rest.len())),
    }
}

/// Reasons that tests give may have several lines.
fn one_line(problem: &Problem) -> String {
    let what = problem.what.lines().next().unwrap_or_default();
    format!("{}: {what}", problem.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_enough_to_fail() {
        let problem = Problem::new("a.rs:1", "is wrong", "do right");
        assert_eq!(verdict(&[], "fine".into()), Ok("fine".into()));
        assert_eq!(
            verdict(std::slice::from_ref(&problem), "fine".into()),
            Err("a.rs:1: is wrong".into())
        );
        assert!(
            verdict(&[problem.clone(), problem], "fine".into()).unwrap_err().contains("1 more")
        );
    }

    #[test]
    fn the_outcome_is_one_line() {
        let problem = Problem::new("sim, a_case", "failed: left\n right", "mend it");
        assert_eq!(verdict(&[problem], String::new()), Err("sim, a_case: failed: left".into()));
    }
}
