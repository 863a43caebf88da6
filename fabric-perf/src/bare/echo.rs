//! Round trips of messages.

use std::time::Instant;

use msg_patterns::fabric_core::{Event, SendBuf};

use super::Found;
use super::link::{Link, check_len, filled, unexpected};
use crate::Error;
use crate::control::Figures;
use crate::cost::Meter;
use crate::memory::Held;
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// Receives posted on either side: one is used, the others wait for it to be posted again.
const RECEIVES: usize = 4;

/// Sends a message and waits until it is back, again and again.
pub(super) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::connect(run, RECEIVES)?;
    let mut free: Vec<SendBuf> =
        link.slots(task, 2)?.into_iter().map(|slot| filled(slot, task)).collect();
    let mut times = Times::new()?;
    let mut since = Instant::now();
    for done in 0..task.total() {
        if done == task.warm {
            meter.begin();
        }
        send(&mut link, &mut free)?;
        // From one message to the next, as other programs count it; read while it is on its way.
        let now = Instant::now();
        if done > task.warm {
            times.add(now - since);
        }
        since = now;
        receive(&mut link, &mut free, run)?;
        tell(run.session.progress, done);
    }
    times.add(since.elapsed());
    let usage = meter.end();
    link.close();
    Ok(Found { times, usage })
}

fn send(link: &mut Link, free: &mut Vec<SendBuf>) -> Result<(), Error> {
    let buf = loop {
        match free.pop() {
            Some(buf) => break buf,
            None => match link.next()? {
                Event::Sent { buf, .. } => free.push(buf),
                other => return Err(unexpected(&other)),
            },
        }
    };
    link.domain.post_send(link.ep, buf)?;
    link.domain.flush();
    Ok(())
}

fn receive(link: &mut Link, free: &mut Vec<SendBuf>, run: &Run<'_>) -> Result<(), Error> {
    loop {
        match link.next()? {
            Event::Sent { buf, .. } => free.push(buf),
            Event::Received { slot, .. } => {
                check_len(&slot, &run.task)?;
                link.domain.post_recv(slot)?;
                return Ok(());
            }
            other => return Err(unexpected(&other)),
        }
    }
}

/// Sends each message back in the buffer that it came in.
pub(super) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::accept(part, RECEIVES)?;
    let mut done = 0;
    let mut usage = None;
    while let Some(event) = link.next_or_end()? {
        match event {
            Event::Received { slot, .. } => {
                check_len(&slot, task)?;
                if done == task.warm {
                    meter.begin();
                }
                link.domain.post_send(link.ep, SendBuf::from(slot))?;
                done += 1;
            }
            Event::Sent { mut buf, .. } => give_back(&mut link, &mut buf)?,
            other => return Err(unexpected(&other)),
        }
        if done == task.total() && usage.is_none() {
            usage = Some(meter.end());
        }
    }
    let usage = usage.ok_or_else(|| Error::Wrong(format!("{done} of {}", task.total())))?;
    part.report(Figures { messages: task.count, usage, held: Held::now(), dropped: 0 });
    Ok(())
}

fn give_back(link: &mut Link, buf: &mut SendBuf) -> Result<(), Error> {
    let segments = std::mem::take(buf).into_segments();
    for segment in segments {
        if let msg_patterns::fabric_core::Segment::Slot(slot) = segment {
            link.domain.post_recv(slot)?;
        }
    }
    Ok(())
}
