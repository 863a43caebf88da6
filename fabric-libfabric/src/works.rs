//! Reads, writes and atomics that this side asked for and that have not ended yet.

use std::collections::{HashMap, VecDeque};

use fabric_core::{Error, OpId, Returned, SendBuf, Slot};
use fabric_link::{Cut, Done, HEAD_BYTES, append};

use crate::limits::PIECES_MAX;
use crate::packet::{REACH_BYTES, Reach, Step, word};

/// What was asked for, with its buffer.
pub(crate) struct Work {
    pub(crate) op: OpId,
    pub(crate) task: Task,
    pub(crate) reach: Reach,
    /// How far it was asked for.
    cut: Cut,
    /// Pieces under way.
    pieces: usize,
}

/// The kinds of operations.
#[derive(Debug)]
pub(crate) enum Task {
    Read { slot: Slot },
    Write { buf: SendBuf, imm: Option<u32> },
    Swap { compare: u64, swap: u64 },
    Add { add: u64 },
}

/// What the last piece of an operation brings about.
pub(crate) enum Landed {
    /// There are other pieces.
    Partly,
    /// It ended.
    Done(Done),
    /// A value is to be sent behind it.
    Immediate { op: OpId, value: u32 },
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    op: OpId,
    from: usize,
    len: usize,
}

/// The operations of one endpoint, oldest first.
#[derive(Default)]
pub(crate) struct Works {
    queue: VecDeque<Work>,
    pieces: HashMap<u32, Piece>,
    next_piece: u32,
}

impl Work {
    pub(crate) fn new(op: OpId, task: Task, reach: Reach, len: usize) -> Self {
        Self { op, task, reach, cut: Cut::new(len), pieces: 0 }
    }

    fn is_landed(&self) -> bool {
        self.cut.is_done() && self.pieces == 0
    }

    /// Takes the next piece of at most `max` bytes.
    fn take_piece(&mut self, max: usize) -> Piece {
        let (from, len) = (self.cut.start(), self.cut.next_len(max));
        self.cut.advance(len);
        self.pieces += 1;
        Piece { op: self.op, from, len }
    }

    fn done(self, result: Result<(), Error>) -> Done {
        let returned = match self.task {
            Task::Read { mut slot } => {
                if result.is_ok() {
                    slot.set_len(self.cut.len());
                }
                Returned::Slot(slot)
            }
            Task::Write { buf, .. } => Returned::SendBuf(buf),
            Task::Swap { .. } | Task::Add { .. } => Returned::Value(0),
        };
        Done { op: self.op, returned, result }
    }
}

impl Works {
    pub(crate) fn push(&mut self, work: Work) {
        self.queue.push_back(work);
    }

    /// Whether `next` would give something.
    pub(crate) fn wants_to_post(&self) -> bool {
        self.pieces.len() < PIECES_MAX && self.queue.iter().any(|work| !work.cut.is_done())
    }

    /// The next piece to ask for: its step, and its body appended to `packet`, of which the peer takes
    /// `packet_bytes` bytes.
    pub(crate) fn next(&mut self, packet_bytes: usize, packet: &mut Slot) -> Option<Step> {
        if self.pieces.len() >= PIECES_MAX {
            return None;
        }
        let work = self.queue.iter_mut().find(|work| !work.cut.is_done())?;
        let taken = work.take_piece(packet_bytes - HEAD_BYTES - REACH_BYTES);
        let reach = Reach { at: work.reach.start.wrapping_add(taken.from as u64), ..work.reach };
        put(packet, &reach.encode());
        let piece = self.next_piece;
        let step = match &work.task {
            Task::Read { .. } => {
                put(packet, &(taken.len as u64).to_le_bytes());
                Step::Read { piece }
            }
            Task::Write { buf, .. } => {
                append(buf, taken.from, taken.len, packet);
                Step::Write { piece }
            }
            Task::Swap { compare, swap } => {
                append_atomic(1, *compare, *swap, packet);
                Step::Atomic { piece }
            }
            Task::Add { add } => {
                append_atomic(0, *add, 0, packet);
                Step::Atomic { piece }
            }
        };
        self.next_piece = piece.wrapping_add(1);
        self.pieces.insert(piece, taken);
        Some(step)
    }

    /// An answer came. `None` if it is to nothing that was asked, or of another length or kind.
    pub(crate) fn on_answer(&mut self, step: Step, body: &[u8]) -> Option<Landed> {
        let (Step::Data { piece } | Step::Wrote { piece } | Step::Value { piece }) = step else {
            return None;
        };
        let Piece { op, from, len } = self.pieces.remove(&piece)?;
        let at = self.queue.iter().position(|work| work.op == op)?;
        let work = &mut self.queue[at];
        work.pieces -= 1;
        let mut value = 0;
        match (&mut work.task, step) {
            (Task::Read { slot }, Step::Data { .. }) if body.len() == len => {
                slot.buffer_mut().get_mut(from..from + len)?.copy_from_slice(body);
            }
            (Task::Write { .. }, Step::Wrote { .. }) if body.is_empty() => {}
            (Task::Swap { .. } | Task::Add { .. }, Step::Value { .. }) => value = word(body)?.0,
            _ => return None,
        }
        if !work.is_landed() {
            return Some(Landed::Partly);
        }
        if let Task::Write { imm: Some(value), .. } = work.task {
            return Some(Landed::Immediate { op, value });
        }
        let mut done = self.queue.remove(at)?.done(Ok(()));
        if let Returned::Value(before) = &mut done.returned {
            *before = value;
        }
        Some(Landed::Done(done))
    }

    /// Ends one operation with its buffer.
    pub(crate) fn finish(&mut self, op: OpId, result: Result<(), Error>) -> Option<Done> {
        let at = self.queue.iter().position(|work| work.op == op)?;
        self.queue.remove(at).map(|work| work.done(result))
    }

    /// The operation that a piece belongs to.
    pub(crate) fn op_of(&self, piece: u32) -> Option<OpId> {
        self.pieces.get(&piece).map(|piece| piece.op)
    }

    /// Ends everything, in the order it was posted.
    pub(crate) fn drain(&mut self, why: impl Fn() -> Error) -> Vec<Done> {
        self.pieces.clear();
        self.queue.drain(..).map(|work| work.done(Err(why()))).collect()
    }
}

/// A kind (0 adds, 1 swaps), the number to add or compare with, and the one to put there.
fn append_atomic(kind: u64, first: u64, second: u64, packet: &mut Slot) {
    for word in [kind, first, second] {
        put(packet, &word.to_le_bytes());
    }
}

fn put(packet: &mut Slot, bytes: &[u8]) {
    let fits = packet.append(bytes);
    debug_assert!(fits, "what is put into a packet was cut to its size");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fabric_core::RemoteKey;

    use super::*;

    fn reach(len: u64) -> Reach {
        let key = RemoteKey { addr: 0, len, key: 1, nonce: 2 };
        Reach { key, start: 4, end: 4 + len, at: 0 }
    }

    fn works(task: Task, len: usize) -> Works {
        let mut works = Works::default();
        works.push(Work::new(OpId(1), task, reach(len as u64), len));
        works
    }

    #[test]
    fn a_read_is_put_together_from_pieces_in_any_order() {
        let slot = Slot::alloc(250).unwrap();
        let mut works = works(Task::Read { slot }, 250);
        let (mut asked, mut body) = (Vec::new(), Slot::alloc(256).unwrap());
        while let Some(Step::Read { piece }) = works.next(HEAD_BYTES + REACH_BYTES + 100, &mut body)
        {
            let (reach, rest) = Reach::decode(body.filled()).unwrap();
            asked.push((piece, reach.at - 4, word(rest).unwrap().0));
            body.set_len(0);
        }
        assert_eq!(asked.iter().map(|(_, _, len)| len).sum::<u64>(), 250);
        for (piece, at, len) in asked.into_iter().rev() {
            let landed = works.on_answer(Step::Data { piece }, &vec![at as u8; len as usize]);
            match landed.unwrap() {
                Landed::Done(Done { returned: Returned::Slot(slot), .. }) => {
                    assert_eq!((slot.filled()[0], slot.filled()[100], slot.len()), (0, 100, 250));
                    return;
                }
                Landed::Partly => {}
                _ => panic!("a read ends in its slot"),
            }
        }
        panic!("it did not end");
    }

    #[test]
    fn answers_to_nothing_or_of_another_kind_are_refused() {
        let buf = Bytes::from_static(b"abc").into();
        let mut works = works(Task::Write { buf, imm: None }, 3);
        let mut body = Slot::alloc(256).unwrap();
        let Some(Step::Write { piece }) = works.next(256, &mut body) else { panic!("a write") };
        assert_eq!(&body.filled()[REACH_BYTES..], b"abc");
        assert!(works.on_answer(Step::Wrote { piece: piece + 1 }, b"").is_none());
        assert!(works.on_answer(Step::Data { piece }, b"abc").is_none());
    }

    #[test]
    fn few_pieces_are_under_way_and_nothing_is_asked_for_twice() {
        let slot = Slot::alloc(10_000).unwrap();
        let mut works = works(Task::Read { slot }, 10_000);
        let mut body = Slot::alloc(4096).unwrap();
        let count = (0..100).filter(|_| works.next(256, &mut body).is_some()).count();
        assert_eq!(count, PIECES_MAX);
        assert!(!works.wants_to_post());
    }
}
