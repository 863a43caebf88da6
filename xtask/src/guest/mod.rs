//! `cargo xtask guest`: runs a command in a virtual machine that has a soft-RoCE link.
//!
//! The machine boots a stock kernel of the distribution and sees this host's files, read-only under
//! a writable layer that goes with it. So every program of the host runs there as it is, as root,
//! with a device `rxe0` at GID index 1 = `::ffff:10.9.0.1`. What should stay is written to
//! `/share`, which is [`share_dir`] here.

mod bench;
mod boot;
mod compile;
mod console;
mod cpio;
mod hardware;
mod initramfs;
mod kernel;
mod machine;
mod nodes;
mod packages;
mod scratch;
mod script;
mod shown;
mod softroce;
mod suites;
mod tools;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use bench::{BenchArguments, bench};
pub(crate) use boot::Failure;
pub(crate) use hardware::{HardwareArguments, test_hardware};
use kernel::Kernel;
pub(crate) use kernel::series;
use machine::{Machine, Parts};
use scratch::Scratch;
pub(crate) use script::{ADDRESS, SPARE_ADDRESS, quoted};
pub(crate) use softroce::{TestArguments, test};

use crate::process::{Cargo, target_dir};
use crate::report::Outcome;
use crate::suite::Suite;

const TIMEOUT_S: u64 = 1800;

/// What `timeout` says when time is over.
const OUT_OF_TIME: u8 = 124;
/// What it says when it could not do its work.
const NO_RESULT: u8 = 125;

/// What guest to make.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The series of the kernel: 6.1 or 6.12, or what else apt's sources have
    #[arg(long, default_value = "6.1", value_name = "SERIES")]
    pub(crate) kernel: String,
    /// How long the guest may take, in seconds [default: 1800; for tests 5400]
    #[arg(long = "timeout", value_name = "SECONDS")]
    pub(crate) timeout_s: Option<u64>,
    /// The guest's memory, in MiB
    #[arg(long = "memory", default_value_t = 2048, value_name = "MIB")]
    pub(crate) memory_mib: u32,
    /// A variable for the command's environment; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<String>,
}

/// `cargo xtask guest [OPTIONS] -- COMMAND...`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    /// What to run; it sees this host's files, and writes to /share what should stay
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Installs what building and testing RDMA takes, the guest included.
///
/// # Errors
/// With the command that installs what is missing, or with why it failed.
pub(crate) fn setup() -> Outcome {
    packages::ensure_headers()?;
    packages::ensure_host()?;
    Ok("everything that RDMA takes is installed".to_owned())
}

/// Runs the command and ends as it does; with 124 when time is over and 125 when there is no
/// result.
pub(crate) fn main(root: &Path, arguments: &Arguments) -> ExitCode {
    let failure = match run(root, &arguments.options, &arguments.command) {
        Ok(code) => return code.into(),
        Err(failure) => failure,
    };
    eprintln!("failed: {failure}");
    match failure {
        Failure::OutOfTime(_) => OUT_OF_TIME.into(),
        Failure::Guest(_) | Failure::Host(_) => NO_RESULT.into(),
    }
}

/// Runs `command` in a guest, with its output shown, and returns its exit code.
///
/// # Errors
/// When there is no guest, or none that lives until the command's end.
pub(crate) fn run(root: &Path, options: &Options, command: &[String]) -> Result<u8, Failure> {
    packages::ensure_host()?;
    let cache = cache_dir(root);
    let kernel = kernel::of_series(&cache, &options.kernel)?;
    let scratch = Scratch::new(&cache)?;
    let initramfs = scratch.write("initramfs", &first_root(&cache, &kernel, options, command)?)?;
    let mut machine = Machine::start(&Parts {
        image: &kernel.image,
        initramfs: &initramfs,
        dir: scratch.path(),
        share: &made(share_dir(root))?,
        memory_mib: options.memory_mib,
        node: None,
    })?;
    let verdict =
        boot::watch(&mut machine, Duration::from_secs(options.timeout_s.unwrap_or(TIMEOUT_S)));
    machine.stop();
    verdict
}

/// Fetches the newest kernel of a release of the distribution, unless it is there, and says which
/// package it is.
///
/// # Errors
/// When the release has none, or it cannot be fetched or unpacked.
pub(crate) fn fetch_kernel(root: &Path, suite: &Suite) -> Result<String, String> {
    packages::ensure_host()?;
    kernel::of_release(&made(cache_dir(root))?, suite)
}

/// Builds a program that uses RDMA, for guests.
///
/// # Errors
/// When packages of this host are missing, or it does not build.
pub(crate) fn program(build: Cargo, target: &str) -> Result<PathBuf, String> {
    packages::ensure_headers()?;
    compile::executable(build.args(["--profile", "guest"]), target)
}

/// What the guest sees as `/share`.
pub(crate) fn share_dir(root: &Path) -> PathBuf {
    cache_dir(root).join("share")
}

fn cache_dir(root: &Path) -> PathBuf {
    target_dir(root).join("guest")
}

fn first_root(
    cache: &Path,
    kernel: &Kernel,
    options: &Options,
    command: &[String],
) -> Result<Vec<u8>, String> {
    let busybox = packages::unpacked(cache, "busybox-static")?.join("bin/busybox");
    let dir = std::env::current_dir().map_err(|error| format!("the current directory: {error}"))?;
    let settings = script::settings(&kernel.modules());
    let command = script::command(&dir, &options.variables, command);
    initramfs::build(kernel, &busybox, &settings, &command)
}

fn made(dir: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn variable(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let named = letters && name.starts_with(|c: char| !c.is_ascii_digit());
    if named { Ok(text.to_owned()) } else { Err("write it like NAME=VALUE".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name_that_shells_take() {
        assert_eq!(variable("A_1=x y=z"), Ok("A_1=x y=z".to_owned()));
        for wrong in ["A", "=x", "1A=x", "A B=x", "A;rm=x"] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
    }
}
