//! `fabric push`.

use msg_patterns::Push;

use super::send::{all_left, send_all, wait_peers};
use crate::args::{Global, PushArgs};
use crate::exit::Failure;
use crate::input::Input;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Pushes what comes in.
///
/// # Errors
/// Why it did not push everything.
pub(crate) fn run(args: &PushArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let mut input = Input::open(&args.feed, &args.tuning, &stage.interrupt)?;
    let builder = args.tuning.apply(Push::builder()).acknowledge(args.ack);
    let socket = stage.open(builder, &args.ends, Side::Connect)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, input.total());
    let outcome = push_all(args, &stage, &socket, &mut input, &mut tally);
    let summary = stage.finish("push", socket, tally, outcome)?;
    all_left(summary.dropped)
}

fn push_all(
    args: &PushArgs,
    stage: &Stage,
    socket: &Push,
    input: &mut Input,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let timeout = args.tuning.timeout;
    wait_peers(stage, socket, args.wait_peers, timeout)?;
    match timeout {
        None => send_all(input, tally, |message| Ok(socket.send(message)?)),
        Some(timeout) => {
            send_all(input, tally, |message| Ok(socket.send_timeout(message, timeout)?))
        }
    }
}
