//! The worker of the demo: pulls, puts its name in front, pushes on.

use msg_patterns::{Bytes, Message, Pull, Push};

use super::receive::{Came, next};
use crate::args::{Ends, Global, WorkerArgs};
use crate::exit::Failure;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Works until its pushers have gone.
///
/// # Errors
/// Why it ended early.
pub(crate) fn run(args: &WorkerArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let sink: Push =
        stage.open(args.tuning.apply(Push::builder()), &to(&args.sink), Side::Connect)?;
    let source: Pull =
        stage.open(args.tuning.apply(Pull::builder()), &to(&args.source), Side::Connect)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, None);
    let outcome = work(args, &source, &sink, &mut tally);
    sink.close();
    stage.finish("worker", source, tally, outcome).map(drop)
}

fn to(addr: &str) -> Ends {
    Ends { url: Some(addr.into()), bind: Vec::new(), connect: Vec::new() }
}

fn work(args: &WorkerArgs, source: &Pull, sink: &Push, tally: &mut Tally) -> Result<(), Failure> {
    let name = Bytes::from(args.name.clone());
    while let Came::Message(message) = next(source, true, args.tuning.timeout, || Ok(()))? {
        tally.add(message.parts());
        let named = [name.clone()].into_iter().chain(message.into_parts());
        sink.send(Message::from_parts(named))?;
    }
    Ok(())
}
