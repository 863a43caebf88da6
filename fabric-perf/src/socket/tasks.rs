//! Round trips by tasks of tokio's runtime of one thread, which drives the sockets as well.

use std::future::Future;
use std::time::Instant;

use msg_patterns::{Rep, Req};
use tokio::runtime::{Builder, Runtime};

use super::lat::Found;
use super::{body, check, tuned};
use crate::Error;
use crate::control::Figures;
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::plan::Task;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// Measures.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    runtime()?.block_on(connect(run))
}

/// Gives every request back.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    let figures = runtime()?.block_on(listen(part))?;
    part.report(figures);
    part.hold();
    Ok(())
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::host("cannot start a runtime"))
}

/// As services do, both sides work in tasks that were spawned.
async fn spawned<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let outcome = tokio::spawn(work).await;
    outcome.unwrap_or_else(|panic| Err(Error::Host(panic.to_string())))
}

async fn connect(run: &Run<'_>) -> Result<Found, Error> {
    let started = Instant::now();
    let socket = tuned(Req::builder(), &run.task.settings).build(&run.context)?;
    socket.connect(&run.addr.to_string())?;
    check(&socket.request_async(body(&run.task)).await?, &run.task)?;
    let first_reply = started.elapsed();
    run.watch(socket.monitor())?;
    let (times, usage) = spawned(ask(socket, run.task)).await?;
    Ok(Found { times, usage, first_reply })
}

async fn ask(socket: Req, task: Task) -> Result<(Times, Usage), Error> {
    let (mut meter, mut times) = (Meter::new(task.counted), Times::new()?);
    let body = body(&task);
    for done in 1..task.total() {
        if done == task.warm {
            meter.begin();
        }
        let body = body.clone();
        let asked = Instant::now();
        let reply = socket.request_async(body).await?;
        if done >= task.warm {
            times.add(asked.elapsed());
        }
        check(&reply, &task)?;
    }
    let usage = meter.end();
    socket.close_async().await;
    Ok((times, usage))
}

async fn listen(part: &Part) -> Result<Figures, Error> {
    let socket = tuned(Rep::builder(), &part.task.settings).build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    spawned(answer(socket, part.task)).await
}

async fn answer(socket: Rep, task: Task) -> Result<Figures, Error> {
    let mut meter = Meter::new(task.counted);
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        let request = socket.recv_async().await?;
        check(&request, &task)?;
        socket.send(request)?;
    }
    let (usage, held) = (meter.end(), Held::now());
    socket.close_async().await;
    Ok(Figures { messages: task.count, usage, held, dropped: 0 })
}
