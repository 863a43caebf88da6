//! The writing half of a connection: a queue of frames, handed over with vectored writes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};

use bytes::Bytes;
use fabric_core::{EpId, Event, OpId, SendBuf};
use smallvec::SmallVec;

use crate::events::Events;
use crate::frame::{ANSWERS_MAX, Frame, Head, Reason};
use crate::limits::{PIECES_PER_WRITE, WRITE_BYTES_PER_FLUSH};
use crate::region::{RegionId, Regions};
use crate::requests::{Chunk, Requests};

/// Pieces of one vectored write. Small bursts need no allocation.
type Pieces<'a> = SmallVec<[IoSlice<'a>; 32]>;

/// What follows a frame's head. Large payloads are named, not held: their owner may take them away.
#[derive(Debug)]
enum Body {
    Empty,
    Message {
        op: OpId,
        buf: SendBuf,
    },
    /// A piece of a write of this side.
    Chunk(Chunk),
    /// A piece of memory exposed here, which the peer reads.
    Data {
        region: RegionId,
        offset: usize,
        len: usize,
    },
    /// The rest of such a piece, copied when its exposure ended.
    Rest(Bytes),
}

#[derive(Debug)]
struct Item {
    head: Head,
    body: Body,
    /// Head and body in bytes.
    len: usize,
    is_answer: bool,
}

/// Frames on their way out.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: VecDeque<Item>,
    /// Bytes of the first item that the kernel already has.
    written: usize,
    sends: usize,
    answers: usize,
}

/// What stands behind the names in the queue.
pub(crate) struct Memory<'a> {
    pub(crate) requests: &'a mut Requests,
    pub(crate) regions: &'a Regions,
}

/// How a flush of one connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything is with the kernel.
    All,
    /// The kernel has no room: wait for it to say so.
    Blocked,
    /// Others should have their turn first.
    Budget,
}

impl Default for Writer {
    /// With little room: a queue grows by four at least, and most connections are idle.
    fn default() -> Self {
        Self { queue: VecDeque::with_capacity(2), written: 0, sends: 0, answers: 0 }
    }
}

impl Writer {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Messages not yet with the kernel.
    pub(crate) fn sends(&self) -> usize {
        self.sends
    }

    pub(crate) fn push_message(&mut self, op: OpId, buf: SendBuf) {
        let len = buf.len();
        self.sends += 1;
        self.push(&Frame::Message { len: len as u32 }, Body::Message { op, buf }, len);
    }

    pub(crate) fn push_request(&mut self, frame: &Frame) {
        self.push(frame, Body::Empty, 0);
    }

    pub(crate) fn push_chunk(&mut self, frame: &Frame, chunk: Chunk) {
        self.push(frame, Body::Chunk(chunk), chunk.len);
    }

    /// Answers a request. Says no if the peer asked for more than it may.
    #[must_use]
    pub(crate) fn push_answer(&mut self, frame: &Frame) -> bool {
        self.push(frame, Body::Empty, 0);
        self.count_answer()
    }

    /// Answers a read with memory exposed here.
    #[must_use]
    pub(crate) fn push_data(
        &mut self,
        id: u64,
        region: RegionId,
        offset: usize,
        len: usize,
    ) -> bool {
        let frame = Frame::ReadData { id, len: len as u32 };
        self.push(&frame, Body::Data { region, offset, len }, len);
        self.count_answer()
    }

    /// Hands as much as possible to the kernel.
    ///
    /// # Errors
    /// What the kernel says about a broken connection.
    pub(crate) fn flush(
        &mut self,
        ep: EpId,
        out: &mut impl Write,
        memory: &mut Memory<'_>,
        events: &mut Events,
    ) -> io::Result<Flushed> {
        let mut budget = WRITE_BYTES_PER_FLUSH;
        while !self.queue.is_empty() {
            if budget == 0 {
                return Ok(Flushed::Budget);
            }
            let (result, len) = self.write_once(out, memory);
            let written = match result {
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Flushed::Blocked),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.advance(ep, written, memory, events);
            if written < len {
                return Ok(Flushed::Blocked);
            }
            budget = budget.saturating_sub(written);
        }
        Ok(Flushed::All)
    }

    /// An exposure ends: what is half written is copied, what is not begun is refused.
    pub(crate) fn forget(&mut self, region: RegionId, memory: &[u8]) {
        let written = self.written;
        for (at, item) in self.queue.iter_mut().enumerate() {
            match item.body {
                Body::Data { region: named, offset, len } if named == region => {
                    let begun = at == 0 && written > 0;
                    item.forget(begun.then(|| &memory[offset..offset + len]));
                }
                _ => {}
            }
        }
    }

    /// Ends everything. What is left of a half written frame is kept for the peer, if it is at most
    /// `keep_bytes_max` bytes: it then counts as handed over.
    pub(crate) fn finish(
        mut self,
        ep: EpId,
        keep_bytes_max: usize,
        memory: &mut Memory<'_>,
        events: &mut Events,
        why: impl Fn() -> fabric_core::Error,
    ) -> Option<Vec<u8>> {
        let rest = self.rest_of_first(memory);
        let kept = rest.filter(|rest| rest.len() <= keep_bytes_max);
        if let Some(rest) = kept.as_ref().filter(|rest| !rest.is_empty()) {
            self.advance(ep, rest.len(), memory, events);
        }
        for item in self.queue {
            if let Body::Message { op, buf } = item.body {
                events.push(Event::Sent { ep, op, buf, result: Err(why()) });
            }
        }
        kept
    }

    fn push(&mut self, frame: &Frame, body: Body, body_len: usize) {
        let (head, is_answer) = (frame.encode(), is_answer(frame));
        let len = head.bytes().len() + body_len;
        self.queue.push_back(Item { head, body, len, is_answer });
    }

    fn count_answer(&mut self) -> bool {
        self.answers += 1;
        self.answers <= ANSWERS_MAX
    }

    /// One vectored write, and how long it wanted to be.
    fn write_once(&self, out: &mut impl Write, memory: &Memory<'_>) -> (io::Result<usize>, usize) {
        let pieces = self.gather(memory);
        match pieces.iter().map(|piece| piece.len()).sum() {
            // Would mean that memory was taken away without `forget`, and never end.
            0 => (Err(io::Error::other("queued bytes are gone")), 0),
            len => (out.write_vectored(&pieces), len),
        }
    }

    /// The next bytes to write. Only one chunk of a write is in it, so that messages pass between
    /// its chunks.
    fn gather<'a>(&'a self, memory: &'a Memory<'_>) -> Pieces<'a> {
        let mut pieces = Pieces::new();
        let mut skip = self.written;
        let mut has_chunk = false;
        for item in &self.queue {
            let is_chunk = matches!(item.body, Body::Chunk(_));
            if pieces.len() + 2 > PIECES_PER_WRITE || (is_chunk && has_chunk) {
                break;
            }
            has_chunk |= is_chunk;
            item.gather(skip, memory, &mut pieces);
            skip = 0;
        }
        pieces
    }

    /// The kernel took `len` more bytes.
    fn advance(&mut self, ep: EpId, len: usize, memory: &mut Memory<'_>, events: &mut Events) {
        self.written += len;
        while let Some(first) = self.queue.front() {
            if self.written < first.len {
                break;
            }
            self.written -= first.len;
            if let Some(item) = self.queue.pop_front() {
                self.on_written(ep, item, memory, events);
            }
        }
    }

    fn on_written(&mut self, ep: EpId, item: Item, memory: &mut Memory<'_>, events: &mut Events) {
        self.answers -= usize::from(item.is_answer);
        match item.body {
            Body::Message { op, buf } => {
                self.sends -= 1;
                events.push(Event::Sent { ep, op, buf, result: Ok(()) });
            }
            Body::Chunk(chunk) => self.queue_next_chunk(chunk, memory),
            Body::Empty | Body::Data { .. } | Body::Rest(_) => {}
        }
    }

    /// The next chunk of a write goes behind what waits, but stays before later writes.
    fn queue_next_chunk(&mut self, chunk: Chunk, memory: &mut Memory<'_>) {
        let Some((frame, next)) = memory.requests.on_chunk_left(chunk) else { return };
        let is_chunk = |item: &Item| matches!(item.body, Body::Chunk(_));
        let at = self.queue.iter().position(is_chunk).unwrap_or(self.queue.len());
        let head = frame.encode();
        let len = head.bytes().len() + next.len;
        self.queue.insert(at, Item { head, body: Body::Chunk(next), len, is_answer: false });
    }

    /// What is left of a half written frame: nothing at a frame's boundary.
    fn rest_of_first(&self, memory: &Memory<'_>) -> Option<Vec<u8>> {
        let first = self.queue.front().filter(|_| self.written > 0);
        let Some(first) = first else { return Some(Vec::new()) };
        let mut pieces = Pieces::new();
        first.gather(self.written, memory, &mut pieces);
        let rest = pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>();
        (rest.len() == first.len - self.written).then_some(rest)
    }
}

impl Item {
    /// Adds the pieces of this item behind its first `skip` bytes.
    fn gather<'a>(&'a self, mut skip: usize, memory: &'a Memory<'_>, pieces: &mut Pieces<'a>) {
        push_piece(self.head.bytes(), &mut skip, pieces);
        match &self.body {
            Body::Empty => {}
            Body::Message { buf, .. } => push_range(buf, 0..buf.len(), skip, pieces),
            Body::Chunk(Chunk { op, from, len }) => {
                if let Some(buf) = memory.requests.write_buf(*op) {
                    push_range(buf, *from..*from + *len, skip, pieces);
                }
            }
            Body::Data { region, offset, len } => {
                let bytes = memory.regions.bytes(*region).unwrap_or_default();
                let bytes = bytes.get(*offset..*offset + *len).unwrap_or_default();
                push_piece(bytes, &mut skip, pieces);
            }
            Body::Rest(bytes) => push_piece(bytes, &mut skip, pieces),
        }
    }

    /// The memory of this answer goes away; `begun` holds it if the peer already awaits it.
    fn forget(&mut self, begun: Option<&[u8]>) {
        match begun {
            Some(memory) => self.body = Body::Rest(Bytes::copy_from_slice(memory)),
            None => {
                self.head = refuse_instead(&self.head);
                self.len = self.head.bytes().len();
                self.body = Body::Empty;
            }
        }
    }
}

/// The refusal of the read that `head` answers.
fn refuse_instead(head: &Head) -> Head {
    let id = match Frame::decode(head.bytes()) {
        Ok(Frame::ReadData { id, .. }) => id,
        _ => 0,
    };
    Frame::Nak { id, reason: Reason::Access }.encode()
}

fn is_answer(frame: &Frame) -> bool {
    matches!(
        frame,
        Frame::ReadData { .. }
            | Frame::WriteDone { .. }
            | Frame::AtomicDone { .. }
            | Frame::Nak { .. }
    )
}

/// Adds `bytes` without its first `skip` bytes, which are then skipped.
fn push_piece<'a>(bytes: &'a [u8], skip: &mut usize, pieces: &mut Pieces<'a>) {
    let skipped = bytes.len().min(*skip);
    *skip -= skipped;
    if skipped < bytes.len() {
        pieces.push(IoSlice::new(&bytes[skipped..]));
    }
}

/// Adds the bytes of `range` of a gathered buffer, without the first `skip` of them.
fn push_range<'a>(
    buf: &'a SendBuf,
    range: std::ops::Range<usize>,
    skip: usize,
    pieces: &mut Pieces<'a>,
) {
    let (mut skip, mut left) = (range.start + skip, range.end - (range.start + skip));
    for segment in buf.segments() {
        let bytes = segment.filled();
        let end = bytes.len().min(skip + left);
        left -= end.saturating_sub(skip);
        push_piece(&bytes[..end], &mut skip, pieces);
    }
}

#[cfg(test)]
mod tests;
