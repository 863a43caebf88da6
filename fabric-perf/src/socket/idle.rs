//! Many pushers that are silent after one greeting, and one that streams.

use msg_patterns::{Pull, Push};

use super::{body, check, tuned};
use crate::Error;
use crate::control::Figures;
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::plan::Task;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;

/// What each peer says first.
const GREETING: &str = "here";

/// What both sides found out.
pub(crate) struct Found {
    /// Bytes and descriptors of this side for each silent peer.
    pub(crate) client: (f64, f64),
    /// The same of the serving side.
    pub(crate) server: (f64, f64),
    /// From the first greeting of a silent peer to the last, in seconds.
    pub(crate) greeting_seconds: f64,
    /// The stream, seen by who receives it.
    pub(crate) streamed: Figures,
}

/// Connects the silent peers, then streams.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let active = greet(run)?;
    run.watch(active.monitor())?;
    let alone_there = run.figures()?.held;
    let alone_here = Held::now();
    let silent = (0..task.peers).map(|_| greet(run)).collect::<Result<Vec<_>, Error>>()?;
    let greeted = run.figures()?;
    let client = Held::now().per_peer(alone_here, task.peers);
    let server = greeted.held.per_peer(alone_there, task.peers);
    stream(run, &active)?;
    let streamed = run.figures()?;
    drop(silent);
    Ok(Found { client, server, greeting_seconds: greeted.usage.seconds, streamed })
}

fn greet(run: &Run<'_>) -> Result<Push, Error> {
    let socket = tuned(Push::builder(), &run.task.settings).build(&run.context)?;
    socket.connect(&run.addr.to_string())?;
    socket.send(GREETING)?;
    Ok(socket)
}

fn stream(run: &Run<'_>, socket: &Push) -> Result<(), Error> {
    let body = body(&run.task);
    for done in 0..run.task.total() {
        socket.send(body.clone())?;
        tell(run.session.progress, done);
    }
    Ok(())
}

/// Receives greetings, then the stream.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let socket = tuned(Pull::builder(), &task.settings).build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    greeting(&socket)?;
    part.report(Figures { messages: 1, held: Held::now(), ..Figures::default() });
    let usage = greetings(task, &socket)?;
    let messages = task.peers as u64;
    part.report(Figures { messages, usage, held: Held::now(), dropped: 0 });
    let usage = receive(task, &socket)?;
    part.report(Figures { messages: task.count, usage, held: Held::now(), dropped: 0 });
    part.hold();
    Ok(())
}

fn greeting(socket: &Pull) -> Result<(), Error> {
    let message = socket.recv()?;
    if message.first() == GREETING {
        return Ok(());
    }
    Err(Error::Wrong("a peer began with something else than its greeting".into()))
}

/// The clock runs from the first greeting to the last.
fn greetings(task: &Task, socket: &Pull) -> Result<Usage, Error> {
    greeting(socket)?;
    let mut meter = Meter::new(false);
    for _ in 1..task.peers {
        greeting(socket)?;
    }
    Ok(meter.end())
}

fn receive(task: &Task, socket: &Pull) -> Result<Usage, Error> {
    let mut meter = Meter::new(false);
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        check(&socket.recv()?, task)?;
    }
    Ok(meter.end())
}
