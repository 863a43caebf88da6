//! Everything that is said about a host.

use serde::Serialize;

use crate::checks::{self, Case};
use crate::choice::{self, Choice};
use crate::earlier::Earlier;
use crate::facts::Host;
use crate::finding::{Finding, Severity};
use crate::probe::Probe;
use crate::root::Root;
use crate::steps::{self, Outcome, Step, Way};
use crate::target::Target;

/// The version of the report's form; it changes when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// What to look at besides the host.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// The schemes that the asking program has compiled in, of [`SCHEMES`](crate::SCHEMES).
    pub built: Vec<&'static str>,
    /// A peer to go to.
    pub target: Option<Target>,
    /// A report to compare with.
    pub earlier: Option<Earlier>,
    /// The asking program's verbs. Without it no message is sent over RDMA.
    pub probe: Option<&'a dyn Probe>,
    /// What opening something of libfabric's came to, if the asking program has it: what was opened, or
    /// in one line why not.
    pub libfabric: Option<Result<String, String>>,
}

/// What a host can do, what it cannot, why, and what to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of this form.
    pub format: u32,
    /// How bad it is.
    pub verdict: Verdict,
    /// What each scheme would use.
    pub choices: Vec<Choice>,
    /// What was found, the most important first.
    pub findings: Vec<Finding>,
    /// The way to the peer, if one was named.
    pub steps: Option<Vec<Step>>,
    /// The facts behind it.
    pub host: Host,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What this host can do works.
    Good,
    /// It works, but something should be looked at.
    Warnings,
    /// Something that should work does not.
    Errors,
}

/// Looks at the host below `root`. Only reads, but for going to the peer if one is named, and for
/// the messages of a probe if one is lent. Blocks for five seconds at most for the peer, for as long
/// as the resolver takes, and for as long as the probe does.
pub fn examine(root: &Root, options: &Options<'_>) -> Report {
    let host = Host::read(root);
    let way = options.target.as_ref().map(|target| steps::walk(root, &host, target, options.probe));
    let case = Case {
        host: &host,
        peer: way.as_ref().and_then(|way| way.peer),
        way_mtu_bytes: way.as_ref().and_then(|way| way.mtu_bytes),
        rdma_refusal: way.as_ref().and_then(|way| way.rdma_refusal.as_deref()),
        probe: options.probe,
        earlier: options.earlier.as_ref(),
    };
    let findings = checks::findings(&case);
    let choices = choice::choose(&case, &findings, options);
    let verdict = verdict(&findings, way.as_ref());
    Report { format: FORMAT, verdict, choices, findings, steps: way.map(|way| way.steps), host }
}

fn verdict(findings: &[Finding], way: Option<&Way>) -> Verdict {
    let has = |severity| findings.iter().any(|finding| finding.severity == severity);
    let stopped = |way: &Way| way.steps.iter().any(|step| step.outcome == Outcome::Failed);
    if has(Severity::Error) || way.is_some_and(stopped) {
        Verdict::Errors
    } else if has(Severity::Warning) {
        Verdict::Warnings
    } else {
        Verdict::Good
    }
}

impl Report {
    /// As JSON, on several lines. The schema is `schema.json` of this crate.
    ///
    /// # Errors
    /// None in practice: everything in it can be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}
