//! Reads, writes and atomics that this side asked for and that have not ended yet.

use std::collections::VecDeque;

use fabric_core::{Error, OpId, Returned, SendBuf, Slot};
use fabric_link::Done;

use crate::buffers::Packet;
use crate::limits::{RMA_CHUNK_BYTES, RMA_CHUNKS};
use crate::sys::{Op, Region, Sge};

/// What was asked for, with its buffer.
pub(crate) struct Work {
    /// Registrations for this operation alone. First, so that they end before their memory.
    pub(crate) _regions: Vec<Region>,
    pub(crate) op: OpId,
    pub(crate) task: Task,
    /// The peer's address of the first byte, and its key.
    pub(crate) addr: u64,
    pub(crate) key: u32,
    pub(crate) len: usize,
    pub(crate) posted: usize,
    pub(crate) landed: usize,
    /// What went wrong with a piece of it.
    pub(crate) fault: Option<Error>,
}

/// The kinds of operations.
pub(crate) enum Task {
    Read { slot: Slot, target: Target },
    Write { buf: SendBuf, source: Source, imm: Option<u32> },
    Swap { compare: u64, swap: u64 },
    Add { add: u64 },
}

/// Where a read puts its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Into the slot, with this key.
    Slot { addr: u64, key: u32 },
    /// Into a packet, and from there into the slot.
    Packet,
}

/// Where a write takes its bytes.
pub(crate) enum Source {
    /// From where they lie.
    Pieces(Vec<Piece>),
    /// From a packet that they were copied to.
    Packet(Packet),
    /// From a slot that they were copied to, with its key.
    Staged { slot: Slot, key: u32 },
}

/// A piece of registered memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u32,
}

/// A request to be made for the next piece of an operation.
pub(crate) struct Ask {
    pub(crate) op: OpId,
    pub(crate) wr: Op,
    pub(crate) sges: Vec<Sge>,
    pub(crate) len: usize,
    /// Where a packet is needed to receive the answer, and what for.
    pub(crate) answer: Answer,
}

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nowhere, or where the segments say.
    Given,
    /// Into a packet: bytes of a read.
    Bytes,
    /// Into a packet: the value of an atomic.
    Value,
}

/// The operations of one endpoint, oldest first.
#[derive(Default)]
pub(crate) struct Works {
    queue: VecDeque<Work>,
    /// Pieces that the device has.
    in_flight: usize,
}

impl Works {
    pub(crate) fn push(&mut self, work: Work) {
        self.queue.push_back(work);
    }

    /// Whether `next` would give something.
    pub(crate) fn wants_to_post(&self) -> bool {
        self.in_flight < RMA_CHUNKS && self.queue.iter().any(Work::has_more)
    }

    /// The next piece to ask for.
    pub(crate) fn next(&mut self) -> Option<Ask> {
        if self.in_flight >= RMA_CHUNKS {
            return None;
        }
        let work = self.queue.iter_mut().find(|work| work.has_more())?;
        self.in_flight += 1;
        Some(work.ask())
    }

    /// What `next` gave could not be posted for now.
    pub(crate) fn undo(&mut self, op: OpId, len: usize) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(work) = self.get(op) {
            work.posted -= len;
        }
    }

    /// A piece came back. Gives the value to send behind a write whose last piece this was.
    pub(crate) fn on_piece(
        &mut self,
        op: OpId,
        len: usize,
        packet: Option<&Packet>,
        result: Result<(), Error>,
    ) -> Option<Landed> {
        self.in_flight = self.in_flight.saturating_sub(1);
        let work = self.get(op)?;
        if let Err(error) = result {
            // The first is the cause, the others follow from it.
            work.fault.get_or_insert(error);
            return None;
        }
        if let Some(packet) = packet {
            work.copy_out(packet, len);
        }
        work.landed += len;
        if work.landed < work.len {
            return None;
        }
        match work.task {
            Task::Write { imm: Some(value), .. } => Some(Landed::Immediate(value)),
            _ => self.finish(op, Ok(())).map(Landed::Done),
        }
    }

    /// An atomic came back.
    pub(crate) fn on_value(
        &mut self,
        op: OpId,
        value: u64,
        result: Result<(), Error>,
    ) -> Option<Done> {
        self.in_flight = self.in_flight.saturating_sub(1);
        match result {
            Ok(()) => {
                let mut done = self.finish(op, Ok(()))?;
                done.returned = Returned::Value(value);
                Some(done)
            }
            Err(error) => {
                self.get(op)?.fault.get_or_insert(error);
                None
            }
        }
    }

    /// Ends one operation with its buffer.
    pub(crate) fn finish(&mut self, op: OpId, result: Result<(), Error>) -> Option<Done> {
        let at = self.queue.iter().position(|work| work.op == op)?;
        self.queue.remove(at).map(|work| work.done(result))
    }

    /// Ends everything, in the order it was posted. Nothing may be in flight.
    pub(crate) fn drain(&mut self, why: impl Fn() -> Error) -> Vec<Done> {
        self.in_flight = 0;
        self.queue.drain(..).map(|work| work.done(Err(why()))).collect()
    }

    fn get(&mut self, op: OpId) -> Option<&mut Work> {
        self.queue.iter_mut().find(|work| work.op == op)
    }
}

/// What the last piece of an operation brings about.
pub(crate) enum Landed {
    /// It ended.
    Done(Done),
    /// A value is to be sent behind it.
    Immediate(u32),
}

impl Work {
    fn has_more(&self) -> bool {
        self.fault.is_none() && self.posted < self.len
    }

    fn ask(&mut self) -> Ask {
        let len = (self.len - self.posted).min(RMA_CHUNK_BYTES);
        let (addr, key) = (self.addr + self.posted as u64, self.key);
        let (wr, sges, answer) = match &self.task {
            Task::Read { target: Target::Slot { addr: to, key: local }, .. } => {
                let sge = Sge::at(to + self.posted as u64, len, *local);
                (Op::Read { addr, key }, vec![sge], Answer::Given)
            }
            Task::Read { target: Target::Packet, .. } => {
                (Op::Read { addr, key }, Vec::new(), Answer::Bytes)
            }
            Task::Write { source, .. } => {
                (Op::Write { addr, key }, source.sges(self.posted, len), Answer::Given)
            }
            Task::Swap { compare, swap } => {
                let wr = Op::CompareSwap { addr, key, compare: *compare, swap: *swap };
                (wr, Vec::new(), Answer::Value)
            }
            Task::Add { add } => (Op::FetchAdd { addr, key, add: *add }, Vec::new(), Answer::Value),
        };
        self.posted += len;
        Ask { op: self.op, wr, sges, len, answer }
    }

    fn copy_out(&mut self, packet: &Packet, len: usize) {
        let Task::Read { slot, .. } = &mut self.task else { return };
        let range = self.landed..self.landed + len;
        if let (Some(to), Some(from)) =
            (slot.buffer_mut().get_mut(range), packet.slot.filled().get(..len))
        {
            to.copy_from_slice(from);
        }
    }

    fn done(mut self, result: Result<(), Error>) -> Done {
        let result = self.fault.take().map_or(result, Err);
        let returned = match self.task {
            Task::Read { mut slot, .. } => {
                if result.is_ok() {
                    slot.set_len(self.len);
                }
                Returned::Slot(slot)
            }
            Task::Write { buf, .. } => Returned::SendBuf(buf),
            Task::Swap { .. } | Task::Add { .. } => Returned::Value(0),
        };
        Done { op: self.op, returned, result }
    }
}

impl Source {
    /// Segments for `len` bytes from `from` on.
    fn sges(&self, from: usize, len: usize) -> Vec<Sge> {
        match self {
            Self::Pieces(pieces) => cut(pieces, from, len),
            Self::Packet(packet) => vec![packet.sge()],
            Self::Staged { slot, key } => vec![Sge::of(&slot.filled()[from..from + len], *key)],
        }
    }
}

/// The part of `pieces` from `from` on with `len` bytes.
pub(crate) fn cut(pieces: &[Piece], mut from: usize, mut len: usize) -> Vec<Sge> {
    let mut sges = Vec::new();
    for piece in pieces {
        let skipped = from.min(piece.len);
        let taken = (piece.len - skipped).min(len);
        if taken > 0 {
            sges.push(Sge::at(piece.addr + skipped as u64, taken, piece.key));
        }
        (from, len) = (from - skipped, len - taken);
    }
    sges
}
