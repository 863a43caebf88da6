//! One of the two guests, on or off.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::agent;
use super::place::Number;
use super::wire::End;
use crate::guest::boot::Watch;
use crate::guest::console::{self, Report};
use crate::guest::machine::{self, Machine, Parts};
use crate::guest::tools;

/// What both guests are made of.
#[derive(Debug)]
pub(super) struct Ground {
    /// The kernel.
    pub(super) image: PathBuf,
    /// A directory that both and the host write.
    pub(super) share: PathBuf,
    /// Memory of each, in MiB.
    pub(super) memory_mib: u32,
    /// How long each may be on.
    pub(super) time_max: Duration,
}

/// A guest.
#[derive(Debug)]
pub(super) struct Node {
    number: Number,
    initramfs: PathBuf,
    dir: PathBuf,
    end: End,
    on: Option<On>,
    orders: u32,
}

#[derive(Debug)]
struct On {
    machine: Machine,
    watch: Watch,
    orders: File,
    monitor: File,
    done: HashMap<u32, u8>,
}

impl Node {
    /// One that is off. `dir` is for its files.
    ///
    /// # Errors
    /// When `dir` cannot be made.
    pub(super) fn new(
        number: Number,
        dir: PathBuf,
        initramfs: PathBuf,
        end: End,
    ) -> Result<Self, String> {
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Self { number, initramfs, dir, end, on: None, orders: 0 })
    }

    /// Turns it on; it takes a while until it is ready.
    ///
    /// # Errors
    /// When its machine cannot be started.
    pub(super) fn boot(&mut self, ground: &Ground) -> Result<(), String> {
        let place = self.number.place(&self.end, &self.dir);
        let (orders, monitor) = (pipes(&place.orders())?, pipes(&place.monitor())?);
        self.end.drain();
        let machine = Machine::start(&Parts {
            image: &ground.image,
            initramfs: &self.initramfs,
            dir: &self.dir,
            share: &ground.share,
            memory_mib: ground.memory_mib,
            node: Some(place),
        })?;
        let watch = Watch::new(&machine, Instant::now(), ground.time_max);
        self.on = Some(On { machine, watch, orders, monitor, done: HashMap::new() });
        Ok(())
    }

    /// Turns it off, without a word to it.
    pub(super) fn kill(&mut self) {
        self.on = None;
    }

    /// Whether it takes orders.
    pub(super) fn is_ready(&self) -> bool {
        self.on.as_ref().is_some_and(|on| on.watch.is_ready())
    }

    /// Hears what it reports. What is sent to one that is off is lost.
    ///
    /// # Errors
    /// When it went wrong.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let Some(on) = &mut self.on else {
            self.end.drain();
            return Ok(());
        };
        let done = &mut on.done;
        let verdict = on.watch.look(&mut on.machine, |report| {
            if let Report::Done { number, code } = report {
                done.insert(number, code);
            }
        });
        match verdict {
            None => Ok(()),
            Some(Err(failure)) => Err(format!("node {}: {failure}", self.number)),
            Some(Ok(code)) => Err(format!("node {} ended by itself ({code})", self.number)),
        }
    }

    /// Has it run a script, beside what else it runs, and returns the order's number.
    ///
    /// # Errors
    /// When it is off.
    pub(super) fn order(&mut self, script: &str) -> Result<u32, String> {
        let on = self.on.as_mut().ok_or_else(|| format!("node {} is off", self.number))?;
        self.orders += 1;
        let written = on.orders.write_all(agent::order(self.orders, script).as_bytes());
        written.map(|()| self.orders).map_err(|error| format!("node {}: {error}", self.number))
    }

    /// Pulls its cable, or plugs it in: its card has no carrier meanwhile.
    ///
    /// # Errors
    /// When it is off.
    pub(super) fn plug(&mut self, is_plugged: bool) -> Result<(), String> {
        let on = self.on.as_mut().ok_or_else(|| format!("node {} is off", self.number))?;
        let told = on.monitor.write_all(machine::set_link(is_plugged).as_bytes());
        told.map_err(|error| format!("node {}: {error}", self.number))
    }

    /// The exit code of an order, once it was carried out.
    pub(super) fn outcome(&self, order: u32) -> Option<u8> {
        self.on.as_ref()?.done.get(&order).copied()
    }

    /// The last of its kernel's messages.
    pub(super) fn tail(&self, lines: usize) -> String {
        self.on.as_ref().map_or_else(String::new, |on| console::tail(&on.machine.console, lines))
    }
}

/// Pipes to a machine, with nothing in them that an earlier one was told.
fn pipes(path: &Path) -> Result<File, String> {
    let [input, unused] = ["in", "out"].map(|end| path.with_extension(end));
    for pipe in [&input, &unused] {
        // There are none yet at the first time.
        let _ = fs::remove_file(pipe);
        tools::output("mkfifo", [pipe])?;
    }
    // Also for reading, so that it opens before the machine is there.
    let opened = OpenOptions::new().read(true).write(true).open(&input);
    opened.map_err(|error| format!("{}: {error}", input.display()))
}
