//! Reads, writes and atomics on memory of the serving side, one at a time or many.

use std::collections::VecDeque;
use std::time::Instant;

use msg_patterns::fabric_core::{
    Access, Event, Exposure, RemoteKey, Returned, Segment, SendBuf, Slot,
};

use super::Found;
use super::link::{Link, filled, unexpected};
use crate::Error;
use crate::control::Figures;
use crate::cost::Meter;
use crate::memory::Held;
use crate::plan::{Op, Task, Test};
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;
use crate::times::Times;

/// Operations under way in a stream, if the endpoint takes so many.
const UNDER_WAY_MAX: usize = 64;

/// What each operation needs on this side.
enum Tool {
    Slot(Slot),
    SendBuf(SendBuf),
    Nothing,
}

/// Operates on the other side's memory.
pub(super) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let task = &run.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::connect(run, 1)?;
    let key = receive_key(&mut link)?;
    let wanted = if task.test == Test::Lat { 1 } else { UNDER_WAY_MAX };
    let mut free = tools(&mut link, task, wanted)?;
    let mut asked = VecDeque::with_capacity(free.len());
    let mut times = Times::new()?;
    let (mut posted, mut done) = (0, 0);
    meter.begin();
    while done < task.total() {
        while posted < task.total()
            && let Some(tool) = free.pop()
        {
            asked.push_back(Instant::now());
            post(&mut link, task, key, tool)?;
            posted += 1;
        }
        free.push(finished(&mut link)?);
        let began = asked.pop_front();
        if let Some(began) = began.filter(|_| done >= task.warm) {
            times.add(began.elapsed());
        }
        done += 1;
        if done == task.warm {
            meter.begin();
        }
        tell(run.session.progress, done);
    }
    let usage = meter.end();
    link.close();
    Ok(Found { times, usage })
}

fn receive_key(link: &mut Link) -> Result<RemoteKey, Error> {
    match link.next()? {
        Event::Received { slot, .. } => {
            let bytes = slot.filled().try_into();
            bytes.map(RemoteKey::from_bytes).map_err(|_| Error::Peer("it sent no key".into()))
        }
        other => Err(unexpected(&other)),
    }
}

fn tools(link: &mut Link, task: &Task, wanted: usize) -> Result<Vec<Tool>, Error> {
    let wanted = wanted.min(link.caps().send_depth);
    Ok(match task.settings.op {
        Op::Read => link.slots(task, wanted)?.into_iter().map(Tool::Slot).collect(),
        Op::Write => {
            let slots = link.slots(task, wanted)?.into_iter();
            slots.map(|slot| Tool::SendBuf(filled(slot, task))).collect()
        }
        _ => (0..wanted).map(|_| Tool::Nothing).collect(),
    })
}

fn post(link: &mut Link, task: &Task, key: RemoteKey, tool: Tool) -> Result<(), Error> {
    let (ep, lacks) = (link.ep, || Error::Plan("this fabric cannot do that".into()));
    match tool {
        Tool::Slot(slot) => {
            let rma = link.domain.rma().ok_or_else(lacks)?;
            rma.post_read(ep, key, 0, slot, task.size)?;
        }
        Tool::SendBuf(buf) => {
            let rma = link.domain.rma().ok_or_else(lacks)?;
            rma.post_write(ep, key, 0, buf)?;
        }
        Tool::Nothing => {
            let atomics = link.domain.atomics().ok_or_else(lacks)?;
            match task.settings.op {
                Op::Cas => atomics.compare_swap(ep, key, 0, 0, 1)?,
                _ => atomics.fetch_add(ep, key, 0, 1)?,
            };
        }
    }
    Ok(())
}

/// Operations of an endpoint end in the order in which they were posted.
fn finished(link: &mut Link) -> Result<Tool, Error> {
    match link.next()? {
        Event::RmaDone { returned, .. } => Ok(match returned {
            Returned::Slot(slot) => Tool::Slot(slot),
            Returned::SendBuf(buf) => Tool::SendBuf(buf),
            Returned::Value(_) => Tool::Nothing,
        }),
        other => Err(unexpected(&other)),
    }
}

/// Exposes memory, and keeps the domain going until the other side closes.
pub(super) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let mut link = Link::accept(part, 1)?;
    let key = expose(&mut link, task)?;
    send_key(&mut link, key)?;
    meter.begin();
    while let Some(event) = link.next_or_end()? {
        if !matches!(event, Event::Sent { .. }) {
            return Err(unexpected(&event));
        }
    }
    let (usage, held) = (meter.end(), Held::now());
    check_word(&mut link, task, key)?;
    // Here the clock cannot know what only warms up.
    part.report(Figures { messages: task.total(), usage, held, dropped: 0 });
    Ok(())
}

fn expose(link: &mut Link, task: &Task) -> Result<RemoteKey, Error> {
    let ep = link.ep;
    let slot = link.slots(task, 1)?.pop().ok_or_else(|| Error::Host("no memory".into()))?;
    let access = match task.settings.op {
        Op::Read => Access::READ,
        Op::Write => Access::WRITE,
        _ => Access::ATOMIC,
    };
    let rma = link.domain.rma().ok_or_else(|| Error::Plan("no remote memory here".into()))?;
    Ok(rma.expose(ep, Exposure::Slot(slot), access)?)
}

fn send_key(link: &mut Link, key: RemoteKey) -> Result<(), Error> {
    let mut buf = SendBuf::new();
    buf.push(Segment::Bytes(key.to_bytes().to_vec().into()));
    link.domain.post_send(link.ep, buf)?;
    Ok(())
}

/// What atomics did to the word can be told exactly.
fn check_word(link: &mut Link, task: &Task, key: RemoteKey) -> Result<(), Error> {
    let wanted = match task.settings.op {
        Op::Add => task.total(),
        Op::Cas => 1,
        _ => return Ok(()),
    };
    let Some(rma) = link.domain.rma() else { return Ok(()) };
    let mut word = [0; 8];
    rma.load(&key, 0, &mut word)?;
    let found = u64::from_le_bytes(word);
    if found == wanted {
        return Ok(());
    }
    Err(Error::Wrong(format!("the word is {found} after all atomics, not {wanted}")))
}
