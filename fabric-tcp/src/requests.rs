//! Reads, writes and atomics that this side asked for and that have not ended yet.

use std::collections::VecDeque;

use fabric_core::{EpId, Error, Event, OpId, RemoteKey, Returned, SendBuf, Slot};

use crate::events::Events;
use crate::frame::{ANSWERS_MAX, CHUNK_BYTES, Frame, Place};
use crate::limits::READ_WINDOW;
use crate::writer::Writer;

/// What was asked for, with its buffer.
#[derive(Debug)]
pub(crate) enum Work {
    Read(Read),
    Write(Write),
    Atomic { frame: Frame, asked: bool },
}

/// A read: chunks are asked for in order and arrive in order.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) slot: Slot,
    pub(crate) key: RemoteKey,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Bytes asked for. An empty read is asked for too, which `begun` tells.
    asked: usize,
    begun: bool,
    /// Bytes that arrived in whole chunks.
    landed: usize,
}

/// A write: chunks leave one after the other, one acknowledgement comes for all.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) buf: SendBuf,
    pub(crate) key: RemoteKey,
    pub(crate) offset: u64,
    pub(crate) imm: Option<u32>,
    pub(crate) len: usize,
    begun: bool,
    /// Whether the last chunk was handed to the kernel.
    left: bool,
}

/// One piece of a write on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) op: OpId,
    pub(crate) from: usize,
    pub(crate) len: usize,
}

/// The operations of one endpoint, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    ops: VecDeque<(OpId, Work)>,
    /// Answers that the peer owes.
    owed: usize,
}

impl Requests {
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    pub(crate) fn push(&mut self, op: OpId, work: Work) {
        self.ops.push_back((op, work));
    }

    /// Asks for as much as window and budget allow.
    pub(crate) fn issue(&mut self, writer: &mut Writer) {
        for (op, work) in &mut self.ops {
            while self.owed < ANSWERS_MAX && work.ask(*op, writer) {
                self.owed += 1;
            }
            if self.owed == ANSWERS_MAX {
                break;
            }
        }
    }

    /// Whether data of reads is still to come.
    pub(crate) fn expects_data(&self) -> bool {
        self.ops.iter().any(|(_, work)| matches!(work, Work::Read(_)))
    }

    /// Whether a chunk of `len` bytes is what the peer owes next for this read.
    pub(crate) fn check_data(&mut self, op: OpId, len: usize) -> bool {
        self.read(op).is_some_and(|read| read.is_owed() && read.next_len() == len)
    }

    /// Where the last `left` bytes of the read's current chunk belong.
    pub(crate) fn landing(&mut self, op: OpId, left: usize) -> Option<&mut [u8]> {
        let read = self.read(op)?;
        let end = read.landed + read.next_len();
        read.slot.buffer_mut().get_mut(end.checked_sub(left)?..end)
    }

    /// A chunk of a read is complete.
    pub(crate) fn on_data(&mut self, ep: EpId, op: OpId, events: &mut Events) {
        self.owed = self.owed.saturating_sub(1);
        let Some(read) = self.read(op) else { return };
        read.landed += read.next_len();
        if read.landed < read.len {
            return;
        }
        if let Some(Work::Read(mut read)) = self.remove(op) {
            read.slot.set_len(read.len);
            events.push(done(ep, op, Returned::Slot(read.slot), Ok(())));
        }
    }

    /// The peer acknowledged a write. Says whether there was one.
    pub(crate) fn on_write_done(&mut self, ep: EpId, op: OpId, events: &mut Events) -> bool {
        if !matches!(self.get(op), Some(Work::Write(write)) if write.left) {
            return false;
        }
        self.owed = self.owed.saturating_sub(1);
        self.finish(ep, op, Ok(()), events);
        true
    }

    /// The peer did an atomic. Says whether it had been asked to.
    pub(crate) fn on_atomic_done(
        &mut self,
        ep: EpId,
        op: OpId,
        before: u64,
        events: &mut Events,
    ) -> bool {
        if !matches!(self.get(op), Some(Work::Atomic { asked: true, .. })) {
            return false;
        }
        self.owed = self.owed.saturating_sub(1);
        self.remove(op);
        events.push(done(ep, op, Returned::Value(before), Ok(())));
        true
    }

    /// Ends one operation with its buffer, if there is such a one.
    pub(crate) fn finish(
        &mut self,
        ep: EpId,
        op: OpId,
        result: Result<(), Error>,
        events: &mut Events,
    ) {
        if let Some(work) = self.remove(op) {
            events.push(done(ep, op, work.into_returned(), result));
        }
    }

    /// Ends everything, in the order it was posted.
    pub(crate) fn flush(&mut self, ep: EpId, why: impl Fn() -> Error, events: &mut Events) {
        for (op, work) in self.ops.drain(..) {
            events.push(done(ep, op, work.into_returned(), Err(why())));
        }
    }

    /// The buffer of a write.
    pub(crate) fn write_buf(&self, op: OpId) -> Option<&SendBuf> {
        match self.get(op)? {
            Work::Write(write) => Some(&write.buf),
            _ => None,
        }
    }

    /// A chunk was handed to the kernel. Gives the one that follows, if it was not the last.
    pub(crate) fn on_chunk_left(&mut self, chunk: Chunk) -> Option<(Frame, Chunk)> {
        let (_, work) = self.ops.iter_mut().find(|(known, _)| *known == chunk.op)?;
        let Work::Write(write) = work else { return None };
        let from = chunk.from + chunk.len;
        write.left = from == write.len;
        (!write.left).then(|| write.chunk(chunk.op, from))
    }

    fn get(&self, op: OpId) -> Option<&Work> {
        self.ops.iter().find(|(known, _)| *known == op).map(|(_, work)| work)
    }

    fn read(&mut self, op: OpId) -> Option<&mut Read> {
        let (_, work) = self.ops.iter_mut().find(|(known, _)| *known == op)?;
        match work {
            Work::Read(read) => Some(read),
            _ => None,
        }
    }

    fn remove(&mut self, op: OpId) -> Option<Work> {
        let at = self.ops.iter().position(|(known, _)| *known == op)?;
        self.ops.remove(at).map(|(_, work)| work)
    }
}

impl Work {
    pub(crate) fn read(slot: Slot, key: RemoteKey, offset: u64, len: usize) -> Self {
        Self::Read(Read { slot, key, offset, len, asked: 0, begun: false, landed: 0 })
    }

    pub(crate) fn write(buf: SendBuf, key: RemoteKey, offset: u64, imm: Option<u32>) -> Self {
        let len = buf.len();
        Self::Write(Write { buf, key, offset, imm, len, begun: false, left: false })
    }

    pub(crate) fn atomic(frame: Frame) -> Self {
        Self::Atomic { frame, asked: false }
    }

    /// Asks the peer for one more answer, if there is anything to ask for now.
    fn ask(&mut self, op: OpId, writer: &mut Writer) -> bool {
        match self {
            Self::Read(read) => read.ask(op, writer),
            Self::Write(write) => write.ask(op, writer),
            Self::Atomic { asked: true, .. } => false,
            Self::Atomic { frame, asked } => {
                *asked = true;
                writer.push_request(frame);
                true
            }
        }
    }

    fn into_returned(self) -> Returned {
        match self {
            Self::Read(read) => Returned::Slot(read.slot),
            Self::Write(write) => Returned::SendBuf(write.buf),
            Self::Atomic { .. } => Returned::Value(0),
        }
    }
}

impl Read {
    fn ask(&mut self, op: OpId, writer: &mut Writer) -> bool {
        let in_flight = (self.asked - self.landed).div_ceil(CHUNK_BYTES);
        if self.begun && (self.asked == self.len || in_flight >= READ_WINDOW) {
            return false;
        }
        let rest = self.len - self.asked;
        let len = rest.min(CHUNK_BYTES);
        let at = place(self.key, self.offset, self.asked, rest);
        writer.push_request(&Frame::Read { id: op.0, len: len as u32, at });
        self.begun = true;
        self.asked += len;
        true
    }

    fn is_owed(&self) -> bool {
        self.begun && (self.landed < self.asked || self.len == 0)
    }

    /// Length of the chunk that arrives next.
    fn next_len(&self) -> usize {
        (self.len - self.landed).min(CHUNK_BYTES)
    }
}

impl Write {
    fn ask(&mut self, op: OpId, writer: &mut Writer) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        let (frame, chunk) = self.chunk(op, 0);
        writer.push_chunk(&frame, chunk);
        true
    }

    fn chunk(&self, op: OpId, from: usize) -> (Frame, Chunk) {
        let rest = self.len - from;
        let len = rest.min(CHUNK_BYTES);
        let at = place(self.key, self.offset, from, rest);
        let (id, bytes) = (op.0, len as u32);
        let frame = match self.imm {
            Some(imm) => Frame::WriteImm { id, len: bytes, at, imm },
            None => Frame::Write { id, len: bytes, at },
        };
        (frame, Chunk { op, from, len })
    }
}

/// The place `done` bytes into an operation at `offset`. An offset beyond all memory stays there.
fn place(key: RemoteKey, offset: u64, done: usize, rest: usize) -> Place {
    Place { key, offset: offset.saturating_add(done as u64), rest: rest as u64 }
}

fn done(ep: EpId, op: OpId, returned: Returned, result: Result<(), Error>) -> Event {
    Event::RmaDone { ep, op, returned, result }
}
