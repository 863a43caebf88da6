//! Round trips by tasks of tokio's runtime of one thread, which drives the sockets as well.

use std::time::Instant;

use msg_patterns::{Rep, Req};
use tokio::runtime::{Builder, Runtime};

use super::lat::Found;
use super::{body, check, tuned};
use crate::Error;
use crate::control::Figures;
use crate::cost::Meter;
use crate::memory::Held;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// Measures.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    runtime()?.block_on(ask(run))
}

/// Gives every request back.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    runtime()?.block_on(answer(part))?;
    part.hold();
    Ok(())
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::host("cannot start a runtime"))
}

async fn ask(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let started = Instant::now();
    let socket = tuned(Req::builder(), &task.settings).build(&run.context)?;
    socket.connect(&run.addr.to_string())?;
    let body = body(task);
    check(&socket.request_async(body.clone()).await?, task)?;
    let first_reply = started.elapsed();
    run.watch(socket.monitor())?;
    for _ in 1..task.warm {
        check(&socket.request_async(body.clone()).await?, task)?;
    }
    let mut times = Times::new()?;
    meter.begin();
    for done in 0..task.count {
        let body = body.clone();
        let asked = Instant::now();
        let reply = socket.request_async(body).await?;
        times.add(asked.elapsed());
        check(&reply, task)?;
        tell(run.session.progress, done);
    }
    let usage = meter.end();
    socket.close_async().await;
    Ok(Found { times, usage, first_reply })
}

async fn answer(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let socket = tuned(Rep::builder(), &task.settings).build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        let request = socket.recv_async().await?;
        check(&request, task)?;
        socket.send(request)?;
    }
    let (usage, held) = (meter.end(), Held::now());
    socket.close_async().await;
    part.report(Figures { messages: task.count, usage, held, dropped: 0 });
    Ok(())
}
