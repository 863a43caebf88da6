//! What is done with two guests: scenes of named steps, in a file.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::check;
use super::loss::Loss;
use super::place::Number;

/// Steps that belong together, and that stand for themselves.
#[derive(Debug, PartialEq)]
pub(super) struct Scene {
    /// What they show.
    pub(super) name: String,
    /// In order.
    pub(super) steps: Vec<Step>,
}

/// Something to do.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    /// What it shows.
    pub(super) name: String,
    /// What is done.
    pub(super) action: Action,
}

/// The vocabulary of steps; `do` names it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Action {
    /// Runs a shell command on a node and waits for its exit code.
    Run {
        /// Where.
        node: Number,
        /// For a shell.
        command: String,
        /// What is expected.
        #[serde(default)]
        exit: u8,
        /// How long it may take.
        #[serde(default = "within_s")]
        within_s: u64,
    },
    /// Starts a shell command on a node.
    Start {
        /// Where.
        node: Number,
        /// A name for `wait`.
        job: String,
        /// For a shell.
        command: String,
    },
    /// Waits for what was started.
    Wait {
        /// Its name.
        job: String,
        /// The exit code that is expected.
        #[serde(default)]
        exit: u8,
        /// How long it may take.
        #[serde(default = "within_s")]
        within_s: u64,
    },
    /// Makes both links lose that share of what they send, from now to the end of the scene.
    Loss {
        /// Such as `1%`.
        share: Loss,
    },
    /// Pulls a node's cable, and plugs it in again.
    Down {
        /// Whose.
        node: Number,
        /// For how long.
        seconds: u64,
    },
    /// Turns a node off, without a word to it.
    Kill {
        /// Which.
        node: Number,
    },
    /// Turns it on again, and waits until its link is there.
    Boot {
        /// Which.
        node: Number,
    },
    /// Compares the SHA-256 of files, which must not be empty.
    Same {
        /// All of them.
        files: Vec<Place>,
    },
}

/// A file of a node, written `1:/tmp/file`, or relative to the workspace.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Place {
    /// Whose.
    pub(super) node: Number,
    /// Its path there.
    pub(super) file: String,
}

/// More than anything takes on a host that does other things too.
fn within_s() -> u64 {
    300
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no file of a node: write it like 1:/tmp/file");
        let (number, file) = text.split_once(':').ok_or_else(wrong)?;
        let node = number.parse::<u8>().map_err(|_| wrong()).and_then(Number::try_from)?;
        if file.is_empty() { Err(wrong()) } else { Ok(Self { node, file: file.to_owned() }) }
    }
}

/// The scenes of a file whose names contain `filter`.
///
/// # Errors
/// With the scene and the step that make no sense.
pub(super) fn read(path: &Path, filter: &str) -> Result<Vec<Scene>, String> {
    let text = std::fs::read_to_string(path);
    let scenes = text.map_err(|error| error.to_string()).and_then(|text| parse(&text));
    let mut scenes = scenes.map_err(|why| format!("{}: {why}", path.display()))?;
    scenes.retain(|scene| scene.name.contains(filter));
    if scenes.is_empty() { Err(format!("no scene is named `{filter}`")) } else { Ok(scenes) }
}

/// All scenes of a text.
///
/// # Errors
/// As [`read`].
pub(super) fn parse(text: &str) -> Result<Vec<Scene>, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let scenes = tables(&mut table, "scene")?;
    only_known(&table)?;
    let scenes = scenes.into_iter().map(scene);
    let scenes = scenes.collect::<Result<Vec<_>, _>>()?;
    scenes.iter().try_for_each(check::scene)?;
    Ok(scenes)
}

fn scene(mut table: Table) -> Result<Scene, String> {
    let name = name(&mut table).map_err(|why| format!("a scene: {why}"))?;
    let within = |why| format!("scene \"{name}\": {why}");
    let steps = tables(&mut table, "step").map_err(within)?;
    only_known(&table).map_err(within)?;
    let steps = steps.into_iter().enumerate().map(|(at, table)| step(at + 1, table));
    let steps = steps.collect::<Result<_, _>>().map_err(within)?;
    Ok(Scene { name, steps })
}

fn step(number: usize, mut table: Table) -> Result<Step, String> {
    let name = name(&mut table).map_err(|why| format!("step {number}: {why}"))?;
    let action = Value::Table(table).try_into().map_err(|error: toml::de::Error| {
        format!("step {number} \"{name}\": {}", error.message())
    })?;
    Ok(Step { name, action })
}

fn name(table: &mut Table) -> Result<String, String> {
    match table.remove("name") {
        Some(Value::String(name)) if !name.is_empty() => Ok(name),
        Some(_) => Err("its name is no text".to_owned()),
        None => Err("it has no name".to_owned()),
    }
}

fn tables(table: &mut Table, key: &str) -> Result<Vec<Table>, String> {
    let found = table.remove(key).ok_or_else(|| format!("there is no [[{key}]]"))?;
    found.try_into().map_err(|_| format!("`{key}` is no list of tables: write [[{key}]]"))
}

/// After all known keys were taken out.
fn only_known(table: &Table) -> Result<(), String> {
    table.keys().next().map_or(Ok(()), |key| Err(format!("`{key}` is unknown")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [[scene]]
        name = "push"
        [[scene.step]]
        name = "a puller"
        do = "start"
        node = 1
        job = "pull"
        command = "fabric pull"
        [[scene.step]]
        name = "a pusher"
        do = "run"
        node = 2
        command = "fabric push"
        [[scene.step]]
        name = "the end"
        do = "wait"
        job = "pull"
        exit = 3
        within_s = 7
    "#;

    /// The text with something in it replaced: why it is refused.
    fn refused(what: &str, by: &str) -> String {
        assert!(GOOD.contains(what));
        parse(&GOOD.replacen(what, by, 1)).unwrap_err()
    }

    #[test]
    fn steps_are_read_in_order_with_their_defaults() {
        let scenes = parse(GOOD).unwrap();
        let [Scene { name, steps }] = &scenes[..] else { panic!("{scenes:?}") };
        assert_eq!((name.as_str(), steps.len()), ("push", 3));
        let Action::Run { node, exit: 0, within_s: 300, .. } = &steps[1].action else {
            panic!("{steps:?}")
        };
        assert_eq!(node.index(), 1);
        let wait = Action::Wait { job: "pull".into(), exit: 3, within_s: 7 };
        assert_eq!(steps[2], Step { name: "the end".into(), action: wait });
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_step() {
        for (what, by, why) in [
            ("do = \"run\"", "do = \"fly\"", "`fly`"),
            ("node = 2", "node = 2\nnodes = 2", "`nodes`"),
            ("node = 2", "node = 3", "no node 3"),
            ("node = 2", "", "`node`"),
            ("do = \"run\"", "", "`do`"),
        ] {
            let error = refused(what, by);
            assert!(error.contains(r#"scene "push": step 2 "a pusher""#), "{error}");
            assert!(error.contains(why), "{error} does not name {why}");
        }
        assert!(refused("exit = 3", "exit = 256").contains("step 3"));
        assert!(refused("name = \"a pusher\"", "").contains("step 2: it has no name"));
        assert!(refused("[[scene]]", "colour = 1\n[[scene]]").contains("`colour` is unknown"));
        assert!(refused("name = \"push\"", "name = \"push\"\nx = 1").contains("`x` is unknown"));
    }

    #[test]
    fn a_file_of_a_node_is_written_with_its_number() {
        let place = Place::try_from("2:/tmp/a:b".to_owned()).unwrap();
        assert_eq!((place.node.index(), place.file.as_str()), (1, "/tmp/a:b"));
        for wrong in ["/tmp/a", "3:/tmp/a", "1:", "x:/tmp/a"] {
            assert!(Place::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_scenario_of_this_project_makes_sense() {
        let path = crate::files::workspace_root().join(super::super::SCENARIO);
        let scenes = read(&path, "").unwrap();
        let error = read(&path, "no scene has this name").unwrap_err();
        assert!(scenes.len() > 1 && error.contains("no scene has this name"));
    }
}
