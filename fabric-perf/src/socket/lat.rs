//! Round trips: REQ asks, REP gives each request back.

use std::time::{Duration, Instant};

use msg_patterns::{Rep, Req};

use super::{body, check, tuned};
use crate::Error;
use crate::control::{Figures, PATIENCE};
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// What the measuring side found out.
pub(crate) struct Found {
    pub(crate) times: Times,
    pub(crate) usage: Usage,
    /// From no socket at all to the first reply.
    pub(crate) first_reply: Duration,
}

/// Measures.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let started = Instant::now();
    let socket = tuned(Req::builder(), &task.settings).build(&run.context)?;
    socket.connect(&run.addr.to_string())?;
    let body = body(task);
    let ask = || {
        let reply = socket.request(body.clone(), PATIENCE)?;
        check(&reply, task)
    };
    ask()?;
    let first_reply = started.elapsed();
    run.watch(socket.monitor())?;
    for _ in 1..task.warm {
        ask()?;
    }
    let mut times = Times::new()?;
    meter.begin();
    for done in 0..task.count {
        let body = body.clone();
        let asked = Instant::now();
        let reply = socket.request(body, PATIENCE)?;
        times.add(asked.elapsed());
        check(&reply, task)?;
        tell(run.session.progress, done);
    }
    Ok(Found { times, usage: meter.end(), first_reply })
}

/// Gives every request back.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let socket = tuned(Rep::builder(), &task.settings).build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        let request = socket.recv()?;
        check(&request, task)?;
        socket.send(request)?;
    }
    let (usage, held) = (meter.end(), Held::now());
    part.report(Figures { messages: task.count, usage, held, dropped: 0 });
    part.hold();
    Ok(())
}
