//! Frames about remote memory: requests of the peer and its answers to ours.

use fabric_core::{Error, ErrorKind, OpId, RemoteKey};

use crate::endpoint::{Context, End, Farewell};
use crate::frame::{Frame, Place, Reason};
use crate::reader::{Landing, State, Wanted, refusal};
use crate::region::Want;
use crate::status;

/// Handles any frame but a message. Says what to read next, if it has a payload.
///
/// # Errors
/// Why the endpoint ends.
pub(crate) fn on_frame(cx: &mut Context<'_>, frame: &Frame) -> Result<Option<State>, End> {
    match *frame {
        Frame::Read { id, len, ref at } => on_read(cx, id, len as usize, at).map(|()| None),
        Frame::Write { id, len, ref at } => on_write(cx, id, len as usize, at, None).map(Some),
        Frame::WriteImm { id, len, ref at, imm } => {
            on_write(cx, id, len as usize, at, Some(imm)).map(Some)
        }
        Frame::CompareSwap { id, ref key, offset, compare, swap } => {
            let new = |before| if before == compare { swap } else { before };
            on_atomic(cx, id, key, offset, new).map(|()| None)
        }
        Frame::FetchAdd { id, ref key, offset, add } => {
            on_atomic(cx, id, key, offset, |before| before.wrapping_add(add)).map(|()| None)
        }
        ref answer => on_answer(cx, answer),
    }
}

/// A chunk of a read of this side is complete.
pub(crate) fn on_data(cx: &mut Context<'_>, op: OpId) {
    cx.requests.on_data(cx.ep, op, &mut cx.shared.events);
    cx.requests.issue(cx.writer);
}

/// A chunk of the peer's write is complete, or was dropped because the exposure ended. Says what is
/// still wanted before the write is.
///
/// # Errors
/// Why the endpoint ends.
pub(crate) fn on_landed(cx: &mut Context<'_>, landing: &Landing) -> Result<Option<Wanted>, End> {
    let id = landing.id;
    if cx.shared.regions.bytes(landing.region).is_none() {
        return Err(no_access(cx, id));
    }
    match landing.imm {
        _ if !landing.is_last => Ok(None),
        Some(imm) => Ok(Some(Wanted::Imm { id, imm })),
        None => answer(cx, &Frame::WriteDone { id }).map(|()| None),
    }
}

/// Queues an answer to the peer.
///
/// # Errors
/// When the peer asked for more at once than it may.
pub(crate) fn answer(cx: &mut Context<'_>, frame: &Frame) -> Result<(), End> {
    if cx.writer.push_answer(frame) { Ok(()) } else { Err(too_many(cx)) }
}

fn on_read(cx: &mut Context<'_>, id: u64, len: usize, at: &Place) -> Result<(), End> {
    let Some((region, offset)) = cx.shared.regions.check(cx.ep, at, Want::Read) else {
        return Err(no_access(cx, id));
    };
    if cx.writer.push_data(id, region, offset, len) { Ok(()) } else { Err(too_many(cx)) }
}

fn on_write(
    cx: &mut Context<'_>,
    id: u64,
    len: usize,
    at: &Place,
    imm: Option<u32>,
) -> Result<State, End> {
    let Some((region, offset)) = cx.shared.regions.check(cx.ep, at, Want::Write) else {
        return Err(no_access(cx, id));
    };
    let is_last = len as u64 == at.rest;
    Ok(State::Write(Landing { region, offset, left: len, id, is_last, imm }))
}

fn on_atomic(
    cx: &mut Context<'_>,
    id: u64,
    key: &RemoteKey,
    offset: u64,
    new: impl Fn(u64) -> u64,
) -> Result<(), End> {
    match apply(cx, key, offset, new) {
        Some(before) => answer(cx, &Frame::AtomicDone { id, before }),
        None => Err(no_access(cx, id)),
    }
}

/// Changes one word of exposed memory and gives the value before.
fn apply(
    cx: &mut Context<'_>,
    key: &RemoteKey,
    offset: u64,
    new: impl Fn(u64) -> u64,
) -> Option<u64> {
    let at = Place { key: *key, offset, rest: 8 };
    let (region, at) = cx.shared.regions.check(cx.ep, &at, Want::Atomic)?;
    let word = cx.shared.regions.bytes_mut(region)?.get_mut(at..)?.first_chunk_mut::<8>()?;
    let before = u64::from_le_bytes(*word);
    let aligned = offset.is_multiple_of(8);
    aligned.then(|| *word = new(before).to_le_bytes()).map(|()| before)
}

fn on_answer(cx: &mut Context<'_>, frame: &Frame) -> Result<Option<State>, End> {
    let (ep, events) = (cx.ep, &mut cx.shared.events);
    let expected = match *frame {
        Frame::ReadData { id, len } => {
            let (op, left) = (OpId(id), len as usize);
            if cx.requests.check_data(op, left) {
                return Ok(Some(State::Data { op, left }));
            }
            false
        }
        Frame::WriteDone { id } => cx.requests.on_write_done(ep, OpId(id), events),
        Frame::AtomicDone { id, before } => {
            cx.requests.on_atomic_done(ep, OpId(id), before, events)
        }
        Frame::Nak { id, reason } => return Err(on_nak(cx, id, reason)),
        Frame::Bye => return Err(on_bye(cx)),
        _ => false,
    };
    if !expected {
        return Err(status::violation(cx.peer, &"it answered what nobody asked"));
    }
    cx.requests.issue(cx.writer);
    Ok(None)
}

/// The peer refused something and is closing.
fn on_nak(cx: &Context<'_>, id: u64, reason: Reason) -> End {
    let peer = cx.peer;
    let why = match reason {
        Reason::Access => Error::new(
            ErrorKind::Access,
            format!("{peer} does not expose that memory for this: check key, bounds and access"),
        ),
        Reason::NoReceive => Error::new(
            ErrorKind::NoReceive,
            format!("{peer} had a receive posted that is too short: post larger slots there"),
        ),
        Reason::Protocol => Error::new(
            ErrorKind::Protocol,
            format!(
                "{peer} says that this side broke the protocol or its limits: compare versions and message_bytes_max"
            ),
        ),
    };
    End { refused: (id != 0).then_some(OpId(id)), ..End::new(why, Farewell::Orderly) }
}

fn on_bye(cx: &Context<'_>) -> End {
    let text = format!("{} closed the connection", cx.peer);
    End::new(Error::new(ErrorKind::Closed, text), Farewell::Gone)
}

fn no_access(cx: &Context<'_>, id: u64) -> End {
    let text = format!("{} reached for memory that is not exposed to it for this", cx.peer);
    let nak = Frame::Nak { id, reason: Reason::Access };
    End::new(Error::new(ErrorKind::Access, text), Farewell::Nak(nak))
}

fn too_many(cx: &Context<'_>) -> End {
    let text = format!("{} asked for more remote memory at once than the protocol allows", cx.peer);
    refusal(Error::new(ErrorKind::Protocol, text), Reason::Protocol)
}
