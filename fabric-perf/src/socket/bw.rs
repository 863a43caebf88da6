//! A one-way stream: PUSH sends, PULL receives.

use msg_patterns::{Pull, Push};

use super::{batches, body, take, tuned};
use crate::Error;
use crate::control::Figures;
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;

/// Sends everything.
pub(crate) fn measure(run: &Run<'_>) -> Result<Usage, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let socket = tuned(Push::builder(), &task.settings).build(&run.context)?;
    let monitor = socket.monitor();
    socket.connect(&run.addr.to_string())?;
    run.watch(monitor)?;
    let body = body(task);
    for batch in batches(task) {
        if batch.done == task.warm {
            meter.begin();
        }
        match batch.len {
            1 => socket.send(body.clone())?,
            len => socket.send_many((0..len).map(|_| body.clone()))?,
        }
        tell(run.session.progress, batch.done.saturating_sub(task.warm));
    }
    socket.close();
    Ok(meter.end())
}

/// Receives everything. The clock runs from the last message that warms up to the last one.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let socket = tuned(Pull::builder(), &task.settings).build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    let mut buffer = Vec::with_capacity(task.settings.batch);
    for batch in batches(task) {
        if batch.done == task.warm {
            meter.begin();
        }
        let many = |buffer: &mut _, max| socket.recv_many(buffer, max);
        take(batch, task, &mut buffer, || socket.recv(), many)?;
    }
    let (usage, held) = (meter.end(), Held::now());
    part.report(Figures { messages: task.count, usage, held, dropped: 0 });
    part.hold();
    Ok(())
}
