//! `fabric req`.

use std::time::Duration;

use msg_patterns::{ErrorKind, Req};

use crate::args::{Global, ReqArgs};
use crate::exit::Failure;
use crate::input::Input;
use crate::output::Output;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Asks and writes replies out.
///
/// # Errors
/// Why it did not get every reply.
pub(crate) fn run(args: &ReqArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let mut input = Input::open(&args.feed, &args.tuning, &stage.interrupt)?;
    let mut output = Output::open(&args.store)?;
    let builder = args.tuning.apply(Req::builder()).resend_after(args.resend_after);
    let builder = builder.retry(args.retry || args.resend_after.is_some());
    let socket = stage.open(builder, &args.ends, Side::Connect)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, input.total());
    let outcome = ask_all(args, &socket, &mut input, &mut output, &mut tally);
    stage.finish("req", socket, tally, outcome).map(drop)
}

fn ask_all(
    args: &ReqArgs,
    socket: &Req,
    input: &mut Input,
    output: &mut Output,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let timeout = args.tuning.timeout.unwrap_or(Duration::MAX);
    while let Some(message) = input.next()? {
        tally.start();
        let reply = socket.request(message, timeout).map_err(explain)?;
        tally.add(output.write(&reply)?);
    }
    output.flush()
}

fn explain(error: msg_patterns::Error) -> Failure {
    match error.kind() {
        ErrorKind::TimedOut => Failure::TimedOut(format!("no reply came: {error}")),
        ErrorKind::PeerGone => Failure::new(format!("{error}: --retry asks another one")),
        _ => error.into(),
    }
}
