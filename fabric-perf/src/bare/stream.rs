//! A one-way stream of messages.

use msg_patterns::fabric_core::{Event, SendBuf, Slot};

use super::Found;
use super::link::{Link, check_len, filled, unexpected};
use crate::Error;
use crate::control::Figures;
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// Receives posted at the receiving side, if its domain takes so many.
const RECEIVES_MAX: usize = 256;

/// Messages under way, if the endpoint takes so many.
const SENDS_MAX: usize = 64;

/// Sends everything, and waits for the word that it arrived.
pub(super) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::connect(run, 1)?;
    let depth = link.caps().send_depth.min(SENDS_MAX);
    let mut free: Vec<SendBuf> =
        link.slots(task, depth)?.into_iter().map(|slot| filled(slot, task)).collect();
    let mut sent = 0;
    let mut arrived = false;
    while !arrived {
        if sent == task.warm {
            meter.begin();
        }
        match free.pop() {
            Some(buf) if sent < task.total() => {
                link.domain.post_send(link.ep, buf)?;
                sent += 1;
                tell(run.session.progress, sent);
                continue;
            }
            Some(buf) => free.push(buf),
            None => {}
        }
        arrived = collect(&mut link, &mut free)?;
    }
    let usage = meter.end();
    link.close();
    Ok(Found { times: Times::new()?, usage })
}

/// Takes back what has left; whether the word came that everything arrived.
fn collect(link: &mut Link, free: &mut Vec<SendBuf>) -> Result<bool, Error> {
    loop {
        match link.next()? {
            Event::Sent { buf, .. } => free.push(buf),
            Event::Received { .. } => return Ok(true),
            other => return Err(unexpected(&other)),
        }
        if !link.has_event() {
            return Ok(false);
        }
    }
}

/// Receives everything, says so, and waits for the end.
pub(super) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::accept(part, RECEIVES_MAX)?;
    let usage = receive(part, &mut link, &mut meter)?;
    let word = Slot::alloc(1).map_err(|error| Error::Host(error.to_string()))?;
    link.domain.post_send(link.ep, SendBuf::from(word))?;
    while let Some(event) = link.next_or_end()? {
        if !matches!(event, Event::Sent { .. }) {
            return Err(unexpected(&event));
        }
    }
    part.report(Figures { messages: task.count, usage, held: Held::now(), dropped: 0 });
    Ok(())
}

fn receive(part: &Part, link: &mut Link, meter: &mut Meter) -> Result<Usage, Error> {
    let task = &part.task;
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        match link.next()? {
            Event::Received { slot, .. } => {
                check_len(&slot, task)?;
                link.domain.post_recv(slot)?;
            }
            other => return Err(unexpected(&other)),
        }
    }
    Ok(meter.end())
}
