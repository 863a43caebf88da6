//! Does what scenes say with two guests.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::loss::Loss;
use super::node::{Ground, Node};
use super::place::Number;
use super::scenario::{Action, Place, Scene, Step};
use crate::guest::boot::LOOK;
use crate::guest::script::quoted;

/// More than a link takes to come up or a setting to be made, on the slowest host.
const SHORT: Duration = Duration::from_secs(120);

/// Two guests in the middle of a scenario.
pub(super) struct Drive {
    ground: Ground,
    nodes: [Node; 2],
    /// What was started and not waited for.
    jobs: HashMap<String, Order>,
    /// Never less than this.
    loss_min: Loss,
}

/// What a node was told to do.
#[derive(Clone, Copy)]
struct Order {
    node: Number,
    number: u32,
}

impl Drive {
    /// Boots both nodes.
    ///
    /// # Errors
    /// When one does not come up.
    pub(super) fn new(ground: Ground, nodes: [Node; 2], loss_min: Loss) -> Result<Self, String> {
        let mut drive = Self { ground, nodes, jobs: HashMap::new(), loss_min };
        drive.boot_again()?;
        Ok(drive)
    }

    /// Turns both nodes off, if they are on, and on.
    ///
    /// # Errors
    /// When one does not come up.
    pub(super) fn boot_again(&mut self) -> Result<(), String> {
        self.jobs.clear();
        self.nodes.iter_mut().for_each(Node::kill);
        for node in &mut self.nodes {
            node.boot(&self.ground)?;
        }
        Number::ALL.iter().try_for_each(|node| self.await_ready(*node))
    }

    /// Does all steps of a scene. It finds no files of another one.
    ///
    /// # Errors
    /// With the step, and what was expected of it.
    pub(super) fn play(&mut self, scene: &Scene) -> Result<(), String> {
        for node in Number::ALL {
            self.run(node, "rm -rf /run/node/*", SHORT)?;
        }
        for (at, step) in scene.steps.iter().enumerate() {
            let place = || format!("scene \"{}\", step {} \"{}\"", scene.name, at + 1, step.name);
            println!("--- {}", step.name);
            self.act(step).map_err(|why| format!("{}: {why}", place()))?;
        }
        self.lose(Loss::default())
    }

    /// The last kernel messages of both nodes, with their numbers in front.
    pub(super) fn tails(&self, lines: usize) -> String {
        let tail = |node: Number| {
            let tail = self.nodes[node.index()].tail(lines);
            tail.lines().map(|line| format!("{node}| {line}\n")).collect::<String>()
        };
        Number::ALL.map(tail).concat()
    }

    fn act(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Run { node, command, exit, within_s } => {
                let order = self.order(*node, command)?;
                self.expect(order, *exit, Duration::from_secs(*within_s))
            }
            Action::Start { node, job, command } => {
                let order = self.order(*node, command)?;
                self.jobs.insert(job.clone(), order);
                Ok(())
            }
            Action::Wait { job, exit, within_s } => {
                let order = self.jobs.remove(job).ok_or_else(|| format!("no `{job}` runs"))?;
                self.expect(order, *exit, Duration::from_secs(*within_s))
            }
            Action::Loss { share } => self.lose(*share),
            Action::Down { node, seconds } => self.take_down(*node, *seconds),
            Action::Kill { node } => {
                self.jobs.retain(|_, order| order.node != *node);
                self.nodes[node.index()].kill();
                Ok(())
            }
            Action::Boot { node } => {
                self.nodes[node.index()].boot(&self.ground)?;
                self.await_ready(*node)
            }
            Action::Same { files } => self.compare(files),
        }
    }

    fn order(&mut self, node: Number, script: &str) -> Result<Order, String> {
        let number = self.nodes[node.index()].order(script)?;
        Ok(Order { node, number })
    }

    /// Runs something that must go well.
    fn run(&mut self, node: Number, script: &str, time_max: Duration) -> Result<(), String> {
        let order = self.order(node, script)?;
        self.expect(order, 0, time_max).map_err(|why| format!("`{script}`: {why}"))
    }

    fn expect(&mut self, order: Order, exit: u8, time_max: Duration) -> Result<(), String> {
        let Order { node, number } = order;
        let code = self.until(time_max, |drive| drive.nodes[node.index()].outcome(number))?;
        match code {
            Some(code) if code == exit => Ok(()),
            Some(code) => Err(format!("expected exit code {exit} of node {node}, got {code}")),
            None => Err(format!(
                "expected an end with exit code {exit} on node {node} within {} s: it still runs",
                time_max.as_secs()
            )),
        }
    }

    /// Also sets what is lost: it comes up without.
    fn await_ready(&mut self, node: Number) -> Result<(), String> {
        let ready = |drive: &mut Self| drive.nodes[node.index()].is_ready().then_some(());
        // The node itself says when it takes too long.
        self.until(Duration::MAX, ready)?;
        self.run(node, &self.loss_min.command(), SHORT)
    }

    fn lose(&mut self, share: Loss) -> Result<(), String> {
        let command = share.at_least(self.loss_min).command();
        Number::ALL.iter().try_for_each(|node| self.run(*node, &command, SHORT))
    }

    fn take_down(&mut self, node: Number, seconds: u64) -> Result<(), String> {
        self.nodes[node.index()].plug(false)?;
        self.until(Duration::from_secs(seconds), |_| None::<()>)?;
        self.nodes[node.index()].plug(true)
    }

    fn compare(&mut self, files: &[Place]) -> Result<(), String> {
        let mut sums = Vec::new();
        for file in files {
            let place = format!("{}:{}", file.node, file.file);
            let sum = self.sum(file).map_err(|why| format!("{place}: {why}"))?;
            sums.push(format!("{sum}  {place}"));
        }
        let digest = |line: &str| line.split(' ').next().map(str::to_owned);
        if sums.windows(2).all(|pair| digest(&pair[0]) == digest(&pair[1])) {
            return Ok(());
        }
        Err(format!("expected the same SHA-256 of each:\n{}", sums.join("\n")))
    }

    /// An empty file would be equal to another one to which nothing came either.
    fn sum(&mut self, file: &Place) -> Result<String, String> {
        let name = format!("sum-{}", file.node);
        let path = quoted(&file.file);
        let script = format!("test -s {path} && sha256sum <{path} >/share/{name}");
        let order = self.order(file.node, &script)?;
        self.expect(order, 0, SHORT).map_err(|why| format!("empty or not there: {why}"))?;
        first_word(&self.ground.share.join(name))
    }

    /// Looks after both nodes until `found` gives something, or nothing within `time_max`.
    fn until<T>(
        &mut self,
        time_max: Duration,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let start = Instant::now();
        loop {
            self.nodes.iter_mut().try_for_each(Node::look)?;
            let found = found(self);
            if found.is_some() || start.elapsed() > time_max {
                return Ok(found);
            }
            thread::sleep(LOOK);
        }
    }
}

fn first_word(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let word = text.split_whitespace().next();
    word.map(str::to_owned).ok_or_else(|| format!("{}: no checksum", path.display()))
}
