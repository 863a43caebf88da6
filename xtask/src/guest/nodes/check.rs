//! Scenes that cannot go well are refused before a guest is booted.

use super::place::Number;
use super::scenario::{Action, Scene, Step};

/// A scene stands for itself: what it starts it waits for, and what it turns off it turns on.
///
/// # Errors
/// With the step that makes no sense.
pub(super) fn scene(scene: &Scene) -> Result<(), String> {
    let mut state = State::default();
    for (at, step) in scene.steps.iter().enumerate() {
        let place = || format!("scene \"{}\", step {} \"{}\"", scene.name, at + 1, step.name);
        state.take(step).map_err(|why| format!("{}: {why}", place()))?;
    }
    state.end().map_err(|why| format!("scene \"{}\": {why}", scene.name))
}

/// What is going on after some steps.
#[derive(Default)]
struct State {
    jobs: Vec<(String, Number)>,
    off: Vec<Number>,
}

impl State {
    fn take(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Run { node, .. } | Action::Down { node, .. } => self.must_be_on(*node),
            Action::Start { node, job, .. } => self.start(*node, job),
            Action::Wait { job, .. } => self.wait(job),
            Action::Kill { node } => self.kill(*node),
            Action::Boot { node } => self.boot(*node),
            Action::Loss { .. } => Number::ALL.iter().try_for_each(|node| self.must_be_on(*node)),
            Action::Same { files } if files.len() < 2 => {
                Err("it takes two files to compare".to_owned())
            }
            Action::Same { files } => files.iter().try_for_each(|file| self.must_be_on(file.node)),
        }
    }

    fn must_be_on(&self, node: Number) -> Result<(), String> {
        if self.off.contains(&node) { Err(format!("node {node} is off")) } else { Ok(()) }
    }

    fn start(&mut self, node: Number, job: &str) -> Result<(), String> {
        self.must_be_on(node)?;
        if self.jobs.iter().any(|(known, _)| known == job) {
            return Err(format!("`{job}` runs already"));
        }
        self.jobs.push((job.to_owned(), node));
        Ok(())
    }

    fn wait(&mut self, job: &str) -> Result<(), String> {
        let at = self.jobs.iter().position(|(known, _)| known == job);
        let at = at.ok_or_else(|| format!("no `{job}` runs"))?;
        self.jobs.swap_remove(at);
        Ok(())
    }

    /// Its jobs go with it.
    fn kill(&mut self, node: Number) -> Result<(), String> {
        self.must_be_on(node)?;
        self.jobs.retain(|(_, at)| *at != node);
        self.off.push(node);
        Ok(())
    }

    fn boot(&mut self, node: Number) -> Result<(), String> {
        let at = self.off.iter().position(|off| *off == node);
        let at = at.ok_or_else(|| format!("node {node} is on"))?;
        self.off.swap_remove(at);
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        if let Some((job, _)) = self.jobs.first() {
            return Err(format!("nothing waits for `{job}`"));
        }
        let off = self.off.first();
        off.map_or(Ok(()), |node| Err(format!("node {node} is off at the end")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::parse;

    const START: &str = r#"do = "start", node = 1, job = "a", command = "x""#;
    const WAIT: &str = r#"do = "wait", job = "a""#;
    const KILL: &str = r#"do = "kill", node = 1"#;
    const BOOT: &str = r#"do = "boot", node = 1"#;

    fn checked(steps: &[&str]) -> Result<(), String> {
        let step = |step: &&str| format!("{{ name = \"s\", {step} }}");
        let steps: Vec<_> = steps.iter().map(step).collect();
        let text = format!("[[scene]]\nname = \"x\"\nstep = [{}]", steps.join(", "));
        parse(&text).map(drop)
    }

    fn refused(steps: &[&str], why: &str) {
        let error = checked(steps).unwrap_err();
        assert!(error.starts_with("scene \"x\"") && error.contains(why), "{error}");
    }

    #[test]
    fn what_is_started_is_waited_for_or_killed_with_its_node() {
        assert_eq!(checked(&[START, WAIT, START, WAIT]), Ok(()));
        assert_eq!(checked(&[START, KILL, BOOT]), Ok(()));
        refused(&[START], "nothing waits for `a`");
        refused(&[START, START], "step 2 \"s\": `a` runs already");
        refused(&[WAIT], "step 1 \"s\": no `a` runs");
        refused(&[START, KILL, BOOT, WAIT], "no `a` runs");
    }

    #[test]
    fn a_node_that_is_off_does_nothing_until_it_is_on_again() {
        refused(&[KILL], "node 1 is off at the end");
        refused(&[BOOT], "node 1 is on");
        for step in [
            START,
            KILL,
            r#"do = "run", node = 1, command = "x""#,
            r#"do = "down", node = 1, seconds = 1"#,
            r#"do = "loss", share = "1%""#,
            r#"do = "same", files = ["1:/a", "2:/b"]"#,
        ] {
            refused(&[KILL, step], "step 2 \"s\": node 1 is off");
        }
    }

    #[test]
    fn one_file_is_not_the_same_as_anything() {
        refused(&[r#"do = "same", files = ["1:/a"]"#], "two files");
    }
}
