//! Runs on the bare domain: what the fabric costs without any messaging pattern.

mod echo;
mod link;
mod remote;
mod stream;

use msg_patterns::fabric_core::Caps;

use crate::Error;
use crate::cost::Usage;
use crate::plan::{Op, Task, Test};
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// What the measuring side found out.
pub(crate) struct Found {
    /// Of each operation; empty for streams.
    pub(crate) times: Times,
    pub(crate) usage: Usage,
}

/// Measures round trips, or a stream.
///
/// # Errors
/// What went wrong.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    match (run.task.settings.op, run.task.test) {
        (Op::Send, Test::Lat) => echo::measure(run),
        (Op::Send, _) => stream::measure(run),
        _ => remote::measure(run),
    }
}

/// The serving side of a run.
///
/// # Errors
/// What went wrong.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    match (part.task.settings.op, part.task.test) {
        (Op::Send, Test::Lat) => echo::serve(part),
        (Op::Send, _) => stream::serve(part),
        _ => remote::serve(part),
    }
}

/// Whether the fabric can do what is asked for.
fn check(task: &Task, caps: &Caps) -> Result<(), Error> {
    let too_long = |bytes_max: usize, way_out: &str| {
        let (provider, size) = (caps.provider, task.size);
        let text = format!("{provider} moves up to {bytes_max} bytes at once, not {size}{way_out}");
        if size > bytes_max { Err(Error::Plan(text)) } else { Ok(()) }
    };
    let lacks = |what: &str| Err(Error::Plan(format!("{} has no {what}", caps.provider)));
    match (task.settings.op, caps.rma) {
        (Op::Send, _) => too_long(caps.message_bytes_max, ": use --op read or write"),
        (Op::Cas | Op::Add, _) if !caps.atomics => lacks("atomics"),
        (_, None) => lacks("remote memory"),
        (_, Some(rma)) => too_long(rma.bytes_max, ""),
    }
}
