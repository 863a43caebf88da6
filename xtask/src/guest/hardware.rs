//! `cargo xtask test-verbs`: the tests that need an RDMA device, on this host and its device.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::suites;
use super::trial::{self, Choice};
use crate::conformance::LEDGER_VARIABLE;
use crate::process::target_dir;
use crate::report::Outcome;

/// Providers that must pass every case of the suite.
const REQUIRED: &[&str] = &["verbs", "verbs-boxed", "verbs-trace"];

/// Where the kernel lists them.
const DEVICES: &str = "/sys/class/infiniband";

/// `cargo xtask test-verbs --device NAME [OPTIONS]`
#[derive(Debug, clap::Args)]
pub(crate) struct HardwareArguments {
    /// The device, such as mlx5_0
    #[arg(long, value_name = "NAME")]
    device: String,
    #[command(flatten)]
    choice: Choice,
}

/// Builds the tests, runs them on the device, and judges what they wrote down.
pub(crate) fn test_hardware(root: &Path, arguments: &HardwareArguments) -> Outcome {
    let HardwareArguments { device, choice } = arguments;
    must_exist(device, &names(Path::new(DEVICES)))?;
    let programs = suites::build(root, &choice.filter, |suite| !suite.makes_links())?;
    let ledger = target_dir(root).join("conformance").join("verbs.jsonl");
    trial::emptied(&ledger)?;
    let passed = run(&trial::script(&programs), device, &ledger)?;
    let judged = choice.judge(root, &ledger, REQUIRED, passed);
    judged.map(|line| format!("{} tests on {device}; {line}", trial::count(&programs)))
}

fn run(script: &str, device: &str, ledger: &Path) -> Result<bool, String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).stdin(Stdio::null());
    shell.env(LEDGER_VARIABLE, ledger);
    shell.env("FABRIC_VERBS_DEVICE", device).env("FABRIC_REQUIRE_VERBS", "1");
    let status = shell.status().map_err(|error| format!("sh: {error}"))?;
    Ok(status.success())
}

/// In the order of their names. A host without the drivers has no such directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn must_exist(device: &str, present: &[String]) -> Result<(), String> {
    if present.iter().any(|name| name == device) {
        return Ok(());
    }
    let has = if present.is_empty() {
        "it has none (`cargo xtask test-softroce` brings its own)".to_owned()
    } else {
        format!("it has {}", present.join(", "))
    };
    Err(format!("this host has no RDMA device `{device}`: {has}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_answered_with_those_that_are() {
        let present = ["mlx5_0", "rxe0"].map(str::to_owned);
        assert_eq!(must_exist("rxe0", &present), Ok(()));
        let error = must_exist("mlx5_1", &present).unwrap_err();
        assert!(error.contains("`mlx5_1`: it has mlx5_0, rxe0"), "{error}");
        let error = must_exist("mlx5_0", &[]).unwrap_err();
        assert!(error.contains("it has none") && error.contains("test-softroce"), "{error}");
    }

    #[test]
    fn devices_are_listed_by_name_and_no_directory_is_no_device() {
        let dir = std::env::temp_dir().join(format!("devices-{}", std::process::id()));
        for name in ["rxe0", "mlx5_0"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        assert_eq!(names(&dir), ["mlx5_0", "rxe0"]);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(names(&dir), [""; 0]);
    }

    #[test]
    fn the_tests_are_told_which_device_and_that_it_must_be_there() {
        let said = |text| run(text, "rxe7", Path::new("/ledger"));
        let told = "[ $FABRIC_VERBS_DEVICE$FABRIC_REQUIRE_VERBS = rxe71 ]";
        assert_eq!(said(told), Ok(true));
        assert_eq!(said("[ $FABRIC_CONFORMANCE_LEDGER = /ledger ]"), Ok(true));
        assert_eq!(said("exit 1"), Ok(false));
    }
}
