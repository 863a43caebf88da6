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
    let drive = Drive::new(ground, nodes, loss)?;
    let played = play_all(drive, &scenes)?;
    let loss = if loss == Loss::default() { String::new() } else { format!(" with {loss} lost") };
    Ok(format!("{played} scenes with two nodes on kernel {}{loss}", options.kernel))
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

/// Returns how many were played.
fn play_all(mut drive: Drive, scenes: &[Scene]) -> Result<usize, String> {
    let mut times = Vec::new();
    for scene in scenes {
        println!("\n=== {} ===", scene.name);
        let start = Instant::now();
        if let Err(why) = drive.play(scene) {
            eprintln!("FAILED {why}\nthe last messages of their kernels:");
            eprint!("{}", drive.tails(TAIL_LINES));
            return Err(why.lines().next().unwrap_or_default().to_owned());
        }
        times.push(start.elapsed().as_secs());
    }
    println!("\n=== summary ===");
    for (scene, seconds) in scenes.iter().zip(&times) {
        println!("passed {seconds:4} s  {}", scene.name);
    }
    Ok(times.len())
}
