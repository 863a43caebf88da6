//! `fabric perf`.

mod peer;
mod watch;

use std::io::{self, Write as _};
use std::process::exit;
use std::time::Duration;

use fabric_perf::{Error, Plan, Report, Server, Test, table};
use msg_patterns::Context;

use crate::args::{Global, How, PerfArgs, PerfCommand};
use crate::exit::{Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::report::Line;
use peer::Peer;
use watch::Watch;

/// A second signal after the first one is never needed: that one ends the process.
const GRACE: Duration = Duration::ZERO;

/// Measures, or serves who measures.
///
/// # Errors
/// Why there is no result.
pub(crate) fn run(args: &PerfArgs, global: &Global) -> Result<(), Failure> {
    match &args.command {
        PerfCommand::Lat(args) => measure(&args.plan(Test::Lat), &args.how, global),
        PerfCommand::Bw(args) => measure(&args.plan(Test::Bw), &args.how, global),
        PerfCommand::Fanout(args) => measure(&args.plan(), &args.how, global),
        PerfCommand::Idle(args) => measure(&args.plan(), &args.how, global),
        PerfCommand::Serve(args) => serve(&args.url, global),
    }
}

fn serve(url: &str, global: &Global) -> Result<(), Failure> {
    let context = Context::new();
    let _interrupt = end_at_a_signal()?;
    let server = Server::bind(&context, url)?;
    Line::Listening { addr: server.addr().to_string() }.say(global.report);
    Ok(server.run()?)
}

fn measure(plan: &Plan, how: &How, global: &Global) -> Result<(), Failure> {
    // What makes no sense is said before anything is started.
    plan.check()?;
    let _interrupt = end_at_a_signal()?;
    let mut peer = match &how.connect {
        Some(_) => None,
        None => Some(Peer::start(&how.addr)?),
    };
    let addr = match (&how.connect, &mut peer) {
        (None, Some(peer)) => with_settings_of(&how.addr, peer.addr()?),
        (connect, _) => connect.clone().unwrap_or_default(),
    };
    let watch = Watch::new(global.report);
    let outcome = fabric_perf::run(&addr, plan, &watch);
    watch.clear();
    let report = outcome.map_err(|error| explain(error, peer.as_mut()))?;
    print(&report, how.json)
}

/// The address that the other side says, with the settings that it was told.
fn with_settings_of(given: &str, said: String) -> String {
    let separator = if said.contains('?') { '&' } else { '?' };
    match given.split_once('?') {
        Some((_, settings)) => format!("{said}{separator}{settings}"),
        None => said,
    }
}

/// There is nothing to close in order: a run that was broken off has no result.
fn end_at_a_signal() -> Result<Interrupt, Failure> {
    Interrupt::listen(GRACE, || exit(INTERRUPTED.into()))
}

fn explain(error: Error, peer: Option<&mut Peer>) -> Failure {
    match peer.and_then(Peer::last_words) {
        Some(words) => Failure::new(format!("the serving side ended: {words}")),
        None => error.into(),
    }
}

fn print(report: &Report, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string(report).map_err(|error| Failure::new(error.to_string()))?
    } else {
        table(report)
    };
    writeln!(io::stdout().lock(), "{text}").map_err(Failure::io("standard output"))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut(error.to_string());
        }
        Self::new(error.to_string())
    }
}
