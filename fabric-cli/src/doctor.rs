//! `fabric doctor`.

#[cfg(any(test, feature = "verbs"))]
mod probe;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fabric_doctor::{Earlier, Options, Outcome, Report, Root, Severity, Target, Verdict, examine};

use crate::exit::Failure;

/// The part of `--help` about exit codes.
const CODES: &str = "\
Exit codes:
  0    nothing is wrong with what can be used here; a host without RDMA is in order
  1    a finding is an error, or the way to the peer ends; one line on standard error says which
  2    the command line makes no sense";

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct DoctorArgs {
    /// Also go to this peer, step by step; with a port somebody must listen there (TCP)
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<Target>,
    /// Write the whole report as JSON
    #[arg(long)]
    json: bool,
    /// Write only the commands to try, each below what it is for; none is run
    #[arg(long, conflicts_with = "json")]
    fix_hints: bool,
    /// Compare with an earlier report, which --json wrote
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
}

/// The schemes that this program has.
const BUILT: &[(&str, bool)] = &[
    ("tcp", true),
    ("verbs", cfg!(feature = "verbs")),
    ("softroce", cfg!(feature = "softroce")),
    ("ofi", cfg!(feature = "libfabric")),
];

/// Looks at this host and prints what it finds.
///
/// # Errors
/// When something that should work does not.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let earlier = args.since.as_deref().map(earlier).transpose()?;
    let built = BUILT.iter().filter(|(_, is_in)| *is_in).map(|(scheme, _)| *scheme).collect();
    let (target, libfabric) = (args.to.clone(), libfabric());
    let options = Options { built, target, earlier, libfabric, ..Options::default() };
    let report = looked(&options);
    print(&shown(args, &report)?)?;
    match report.verdict {
        Verdict::Errors => Err(Failure::new(summary(&report))),
        Verdict::Good | Verdict::Warnings => Ok(()),
    }
}

/// With this command's own verbs, so that messages are tried, too.
#[cfg(feature = "verbs")]
fn looked(options: &Options<'_>) -> Report {
    let messages = probe::Messages::over("verbs");
    examine(&Root::host(), &Options { probe: Some(&messages), ..options.clone() })
}

#[cfg(not(feature = "verbs"))]
fn looked(options: &Options<'_>) -> Report {
    examine(&Root::host(), options)
}

/// What opening a domain of libfabric's own TCP comes to.
#[cfg(feature = "libfabric")]
fn libfabric() -> Option<Result<String, String>> {
    use msg_patterns::{Addr, Context, fabric_core::Domain as _};

    let addr = Addr::new("ofi+tcp", "127.0.0.1", Some(0));
    let opened = Context::new().open_domain(&addr);
    Some(opened.map(|domain| domain.caps().device.clone()).map_err(|error| error.to_string()))
}

#[cfg(not(feature = "libfabric"))]
fn libfabric() -> Option<Result<String, String>> {
    None
}

fn earlier(path: &Path) -> Result<Earlier, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::io(path.display()))?;
    Earlier::parse(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn shown(args: &DoctorArgs, report: &Report) -> Result<String, Failure> {
    if args.fix_hints {
        return Ok(report.commands());
    }
    if !args.json {
        return Ok(report.to_string());
    }
    let json = report.to_json().map_err(|error| Failure::new(error.to_string()))?;
    Ok(json + "\n")
}

fn print(text: &str) -> Result<(), Failure> {
    io::stdout().lock().write_all(text.as_bytes()).map_err(Failure::io("standard output"))
}

/// What is wrong, in one line.
fn summary(report: &Report) -> String {
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let errors = errors.map(|finding| format!("{} {}", finding.id, finding.title));
    let steps = report.steps.iter().flatten().filter(|step| step.outcome == Outcome::Failed);
    let steps = steps.map(|step| format!("step {}: {}", step.name, step.seen));
    errors.chain(steps).collect::<Vec<_>>().join("; ")
}
