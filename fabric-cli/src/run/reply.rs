//! `fabric rep`.

use std::time::Duration;

use msg_patterns::{ErrorKind, Message, Rep};

use super::receive::ended;
use crate::args::{Global, RepArgs};
use crate::exit::Failure;
use crate::program::{Program, Ran};
use crate::report::Line;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Answers requests.
///
/// # Errors
/// Why it ended early.
pub(crate) fn run(args: &RepArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let program = Program::new(&args.program, &stage.interrupt);
    let socket = stage.open(args.tuning.apply(Rep::builder()), &args.ends, Side::Bind)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, args.tuning.count);
    let outcome = serve(args, &stage, &socket, program.as_ref(), &mut tally);
    stage.finish("rep", socket, tally, outcome).map(drop)
}

fn serve(
    args: &RepArgs,
    stage: &Stage,
    socket: &Rep,
    program: Option<&Program>,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let (count, timeout) = (args.tuning.count, args.tuning.timeout.unwrap_or(Duration::MAX));
    while count.is_none_or(|count| tally.messages() < count) {
        let request = match socket.recv_timeout(timeout) {
            Ok(request) => request,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return ended(count, tally, "the time limit is over");
            }
            Err(error) => return Err(error.into()),
        };
        let reply = answer(stage, program, request, tally);
        tally.add(reply.parts());
        send(stage, socket, reply)?;
    }
    Ok(())
}

fn answer(
    stage: &Stage,
    program: Option<&Program>,
    request: Message,
    tally: &mut Tally,
) -> Message {
    let Some(program) = program else { return request };
    match program.run(request) {
        Ran::Well(output) => output.into(),
        Ran::Badly { why, output } => {
            tally.add_failed();
            Line::Note { text: why }.say(stage.style);
            output.into()
        }
    }
}

/// A reply over the limit of either side is replaced by one that says so.
fn send(stage: &Stage, socket: &Rep, reply: Message) -> Result<(), Failure> {
    match socket.send(reply) {
        Err(refused) if refused.kind() == ErrorKind::TooLong => {
            let text = refused.error.to_string();
            Line::Note { text: text.clone() }.say(stage.style);
            Ok(socket.send(text)?)
        }
        sent => Ok(sent?),
    }
}
