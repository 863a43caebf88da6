//! `cargo xtask test-softroce`: the tests that need an RDMA device, in a guest that has one.

use std::path::Path;

use super::nodes::{self, NodesArguments};
use super::trial::{self, Choice};
use super::{Options, run, script, share_dir, suites};
use crate::conformance::LEDGER_VARIABLE;
use crate::report::Outcome;

/// Providers that must pass every case of the suite.
const REQUIRED: &[&str] = &["verbs", "verbs-boxed", "verbs-trace", "softroce", "ofi+verbs"];

/// The guest's free Ethernet interface.
const INTERFACE: &str = "roce1";

/// Emulated and on a busy host, each test takes a second or two.
const TIMEOUT_S: u64 = 5400;

const LEDGER: &str = "ledger.jsonl";

/// `cargo xtask test-softroce [OPTIONS]`
#[derive(Debug, clap::Args)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    choice: Choice,
    /// Guests: one for the tests, or two at a wire for scenes between hosts (then --filter chooses
    /// among these)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    nodes: u8,
    #[command(flatten)]
    with_nodes: NodesArguments,
}

/// Builds the tests, runs them in a guest, and judges what they wrote down.
pub(crate) fn test(root: &Path, arguments: &TestArguments) -> Outcome {
    let TestArguments { options, choice, nodes: count, with_nodes } = arguments;
    if *count == 2 {
        return nodes::test(root, options, &choice.filter, with_nodes);
    }
    if with_nodes.are_given() {
        return Err("--loss and --scenario are for --nodes 2".to_owned());
    }
    let programs = suites::build(root, &choice.filter, |_| true)?;
    let ledger = share_dir(root).join(LEDGER);
    trial::emptied(&ledger)?;
    let command = ["sh", "-c", &trial::script(&programs)].map(str::to_owned);
    let code = run(root, &completed(options), &command).map_err(|failure| failure.to_string())?;
    let judged = choice.judge(root, &ledger, REQUIRED, code == 0);
    let tests = trial::count(&programs);
    judged.map(|line| format!("{tests} tests on kernel {}; {line}", options.kernel))
}

fn completed(options: &Options) -> Options {
    let mut options = options.clone();
    let ours = [
        format!("{LEDGER_VARIABLE}=/share/{LEDGER}"),
        format!("FABRIC_SOFTROCE_INTERFACE={INTERFACE}"),
        "FABRIC_REQUIRE_RXE=1".to_owned(),
        "FABRIC_REQUIRE_VERBS=1".to_owned(),
        format!("FABRIC_LIBFABRIC_VERBS={}", script::ADDRESS),
        "FABRIC_REQUIRE_LIBFABRIC=1".to_owned(),
    ];
    options.variables.extend(ours);
    options.timeout_s.get_or_insert(TIMEOUT_S);
    options
}
