//! `cargo xtask test-softroce --nodes 2`: two guests at a wire, driven by one scenario.

mod agent;
mod check;
mod drive;
mod loss;
mod node;
mod place;
mod scenario;
mod wire;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use loss::Loss;
pub(super) use place::NodePlace;
#[cfg(test)]
pub(super) use wire::wire;

use super::kernel::{self, Kernel};
use super::scratch::Scratch;
use super::{Options, cache_dir, compile, initramfs, made, packages, script, share_dir};
use crate::report::Outcome;
use drive::Drive;
use node::{Ground, Node};
use place::Number;
use scenario::Scene;
use wire::End;

const SCENARIO: &str = "xtask/scenarios/two-nodes.toml";

/// A bound for all scenes together, unless the options say otherwise.
const TIMEOUT_S: u64 = 1800;

const TAIL_LINES: usize = 15;

/// What is played with two nodes.
#[derive(Debug, clap::Args)]
pub(crate) struct NodesArguments {
    /// Packets that each link loses at least, such as 1%; with --nodes 2
    #[arg(long, value_name = "SHARE")]
    pub(super) loss: Option<Loss>,
    /// Scenes to play with --nodes 2 instead of xtask/scenarios/two-nodes.toml
    #[arg(long, value_name = "FILE")]
    pub(super) scenario: Option<PathBuf>,
}

impl NodesArguments {
    /// Whether any of them is there.
    pub(super) fn are_given(&self) -> bool {
        self.loss.is_some() || self.scenario.is_some()
    }
}

/// Boots two nodes and plays all scenes whose names contain `filter`.
pub(super) fn test(
    root: &Path,
    options: &Options,
    filter: &str,
    arguments: &NodesArguments,
) -> Outcome {
    let file = arguments.scenario.clone().unwrap_or_else(|| root.join(SCENARIO));
    let scenes = scenario::read(&file, filter)?;
    let fabric = compile::fabric(root)?;
    packages::ensure_host()?;
    let cache = cache_dir(root);
    let kernel = kernel::of_series(&cache, &options.kernel)?;
    let scratch = Scratch::new(&cache)?;
    let nodes = nodes(&cache, &scratch, &kernel, &surroundings(root, options, &fabric))?;
    let ground = Ground {
        image: kernel.image,
        share: made(share_dir(root))?,
        memory_mib: options.memory_mib,
        time_max: Duration::from_secs(options.timeout_s.unwrap_or(TIMEOUT_S)),
    };
    let loss = arguments.loss.unwrap_or_default();
    let mut drive = Drive::new(ground, nodes, loss)?;
    let outcome = summarise(&play_all(&mut drive, &scenes)?);
    outcome.map(|line| format!("{line} on kernel {}, {loss} of packets lost", options.kernel))
}

/// Both, off.
fn nodes(
    cache: &Path,
    scratch: &Scratch,
    kernel: &Kernel,
    surroundings: &str,
) -> Result<[Node; 2], String> {
    let busybox = packages::unpacked(cache, "busybox-static")?.join("bin/busybox");
    let agent = format!("{surroundings}{}\nwhile :; do take_orders; done\n", agent::AGENT);
    let node = |number: Number, end: End| {
        let settings = script::node_settings(&kernel.modules(), &number.address());
        let archive = initramfs::build(kernel, &busybox, &settings, &agent)?;
        let archive = scratch.write(&format!("initramfs-{number}"), &archive)?;
        Node::new(number, scratch.path().join(format!("node-{number}")), archive, end)
    };
    let [one, two] = Number::ALL;
    let [here, there] = wire::wire()?;
    Ok([node(one, here)?, node(two, there)?])
}

/// Commands run in the workspace, find `fabric` by its name, and have a directory for their files.
fn surroundings(root: &Path, options: &Options, fabric: &Path) -> String {
    let programs = fabric.parent().unwrap_or(fabric).to_string_lossy();
    let path = format!("export PATH={}:$PATH\nmkdir /run/node\n", script::quoted(&programs));
    script::surroundings(root, &options.variables) + &path
}

/// How a scene ended, and after how many seconds.
struct Played<'a> {
    scene: &'a Scene,
    outcome: Result<(), String>,
    seconds: u64,
}

/// A scene that fails leaves nodes behind of which nothing is known: the next one gets fresh ones.
fn play_all<'a>(drive: &mut Drive, scenes: &'a [Scene]) -> Result<Vec<Played<'a>>, String> {
    let mut all = Vec::new();
    for scene in scenes {
        if all.last().is_some_and(|last: &Played<'_>| last.outcome.is_err()) {
            drive.boot_again()?;
        }
        all.push(play(drive, scene));
    }
    Ok(all)
}

fn play<'a>(drive: &mut Drive, scene: &'a Scene) -> Played<'a> {
    println!("\n=== {} ===", scene.name);
    let start = Instant::now();
    let outcome = drive.play(scene);
    if let Err(why) = &outcome {
        eprintln!("FAILED {why}\nthe last messages of the nodes' kernels:");
        eprint!("{}", drive.tails(TAIL_LINES));
    }
    Played { scene, outcome, seconds: start.elapsed().as_secs() }
}

fn summarise(all: &[Played<'_>]) -> Outcome {
    println!("\n=== summary ===");
    for Played { scene, outcome, seconds } in all {
        let word = if outcome.is_ok() { "passed" } else { "FAILED" };
        println!("{word} {seconds:4} s  {}", scene.name);
    }
    let failed: Vec<_> = all.iter().filter_map(|played| played.outcome.as_ref().err()).collect();
    let first = |why: &String| why.lines().next().unwrap_or_default().to_owned();
    match failed[..] {
        [] => Ok(format!("{} scenes with two nodes", all.len())),
        [only] => Err(first(only)),
        [why, ..] => Err(format!("{} (and {} more scenes failed)", first(why), failed.len() - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played<'a>(scene: &'a Scene, outcome: Result<(), &str>) -> Played<'a> {
        Played { scene, outcome: outcome.map_err(str::to_owned), seconds: 1 }
    }

    #[test]
    fn every_failed_scene_counts() {
        let scene = Scene { name: "a".into(), steps: Vec::new() };
        let of = |outcomes: &[Result<(), &str>]| {
            let all: Vec<_> = outcomes.iter().map(|outcome| played(&scene, *outcome)).collect();
            summarise(&all)
        };
        assert_eq!(of(&[Ok(()), Ok(())]), Ok("2 scenes with two nodes".into()));
        assert_eq!(of(&[Ok(()), Err("step 1\nmore")]), Err("step 1".into()));
        let two = Err("x (and 1 more scenes failed)".into());
        assert_eq!(of(&[Err("x"), Ok(()), Err("y")]), two);
    }
}
