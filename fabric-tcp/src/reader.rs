//! The reading half of a connection: straight into posted slots, exposed memory and the slots of
//! reads, with one vectored read per readiness.
//!
//! A read asks for the rest of what is expected now, the header behind it, and whatever follows
//! into the next posted slot. So a stream of large messages moves without a copy, a lone small
//! message costs one system call, and of several small messages in one read only those behind the
//! first are copied, once.

use std::io::{self, ErrorKind as IoKind, Read};

use fabric_core::{Error, ErrorKind, Event, OpId, Slot};

use crate::endpoint::{Context, End, Farewell};
use crate::frame::{Frame, HEAD_BYTES_MAX, HEADER_BYTES, Reason, head_bytes};
use crate::limits::READ_BYTES_PER_POLL;
use crate::read_once::ReadOnce;
use crate::recvs::{Posted, Recvs};
use crate::region::{RegionId, Regions};
use crate::remote;
use crate::status;

/// What the next bytes of the stream are.
#[derive(Debug)]
pub(crate) enum State {
    /// The head of a frame.
    Head,
    /// A message into a posted slot.
    Message { op: OpId, slot: Slot, len: usize, got: usize },
    /// A chunk of a read of this side.
    Data { op: OpId, left: usize },
    /// A chunk that the peer writes to memory exposed here.
    Write(Landing),
    /// Nothing until a slot is posted.
    Starved(Wanted),
}

/// What a slot is wanted for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Message { len: usize },
    Imm { id: u64, imm: u32 },
}

/// A chunk of a write on its way into exposed memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Landing {
    pub(crate) region: RegionId,
    pub(crate) offset: usize,
    pub(crate) left: usize,
    pub(crate) id: u64,
    pub(crate) is_last: bool,
    pub(crate) imm: Option<u32>,
}

/// What is known about a connection before and after a turn of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The kernel may have bytes.
    pub(crate) readable: bool,
    /// The kernel said that the stream ends, so a short read does not mean that it is drained.
    pub(crate) ends: bool,
    /// A slot must be posted before anything else can be read.
    pub(crate) starved: bool,
}

/// Where a connection stands in the stream of its peer.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) state: State,
    pub(crate) head: [u8; HEAD_BYTES_MAX],
    pub(crate) head_got: usize,
    pub(crate) head_need: usize,
    /// Bytes read ahead that no slot could take. Bounded by one read ahead.
    spill: Vec<u8>,
    spill_at: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            state: State::Head,
            head: [0; HEAD_BYTES_MAX],
            head_got: 0,
            head_need: HEADER_BYTES,
            spill: Vec::new(),
            spill_at: 0,
        }
    }
}

impl Reader {
    /// Reads until the kernel has no more, slots are wanted, or others should have their turn.
    ///
    /// # Errors
    /// Why the endpoint ends.
    pub(crate) fn turn(
        &mut self,
        from: &mut impl Read,
        cx: &mut Context<'_>,
        mut turn: Turn,
    ) -> Result<Turn, End> {
        let mut budget = READ_BYTES_PER_POLL;
        loop {
            self.drain_spill(cx)?;
            turn.starved = self.is_starved();
            if turn.starved || !turn.readable || budget == 0 {
                return Ok(turn);
            }
            match self.read_once(from, cx) {
                Ok(read) => {
                    turn.readable = turn.ends || read.got == read.wanted;
                    budget = budget.saturating_sub(read.got);
                    self.on_read(&read, cx)?;
                }
                Err(error) if error.kind() == IoKind::WouldBlock => turn.readable = false,
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(broken(error, cx)),
            }
        }
    }

    /// Gives back the slot of a message that was not completed.
    pub(crate) fn finish(self, recvs: &mut Recvs) {
        if let State::Message { op, slot, .. } = self.state {
            recvs.put_back(Posted { op, slot });
        }
    }

    /// Whether only a posted slot lets this go on.
    fn is_starved(&self) -> bool {
        matches!(self.state, State::Starved(_))
    }

    /// Whether the stream may end here.
    fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::Head) && self.head_got == 0
    }
}

impl Reader {
    fn on_read(&mut self, read: &ReadOnce, cx: &mut Context<'_>) -> Result<(), End> {
        if read.got == 0 {
            return Err(ended(self.is_at_boundary(), cx));
        }
        let first = read.got.min(read.first);
        self.landed(first, cx)?;
        let next = (read.got - first).min(read.next_len);
        self.feed(&read.next[..next], cx)?;
        let ahead = (read.got - first - next).min(read.ahead);
        match ahead {
            0 => return Ok(()),
            _ if read.ahead_in_slot => self.on_ahead_in_slot(ahead, cx)?,
            _ => self.on_ahead_in_scratch(ahead, cx)?,
        }
        self.feed(&read.over[..read.got - first - next - ahead], cx)
    }

    /// `len` bytes were read into the next posted slot. If they are a message, they stay there.
    fn on_ahead_in_slot(&mut self, len: usize, cx: &mut Context<'_>) -> Result<(), End> {
        let Some(mut posted) = cx.shared.recvs.take() else { return Ok(()) };
        match self.state {
            State::Starved(Wanted::Message { len: message }) if self.spill.is_empty() => {
                self.adopt(posted, message, len, cx)
            }
            _ => {
                let result = self.feed(&posted.slot.buffer_mut()[..len], cx);
                cx.shared.recvs.put_back(posted);
                result
            }
        }
    }

    fn on_ahead_in_scratch(&mut self, len: usize, cx: &mut Context<'_>) -> Result<(), End> {
        let mut scratch = std::mem::take(&mut cx.shared.scratch);
        let result = self.feed(&scratch.bytes()[..len], cx);
        cx.shared.scratch = scratch;
        result
    }

    /// Begins a message of `len` bytes in a slot that already holds the next `got` bytes of the
    /// stream.
    fn adopt(
        &mut self,
        posted: Posted,
        len: usize,
        got: usize,
        cx: &mut Context<'_>,
    ) -> Result<(), End> {
        let Posted { op, mut slot } = posted;
        if len > slot.capacity() {
            let end = too_long(len, slot.capacity(), cx);
            cx.shared.recvs.put_back(Posted { op, slot });
            return Err(end);
        }
        if got < len {
            self.state = State::Message { op, slot, len, got };
            return Ok(());
        }
        self.expect_head();
        let place = cx.shared.events.reserve();
        let result = self.feed(&slot.buffer_mut()[len..got], cx);
        slot.set_len(len);
        cx.shared.recvs.delivered();
        cx.shared.events.fill(&place, Event::Received { ep: cx.ep, op, slot, imm: None });
        result
    }

    /// Interprets bytes that were read ahead. What no slot can take is kept.
    fn feed(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), End> {
        let fed = if self.spill.is_empty() { self.feed_some(bytes, cx)? } else { 0 };
        self.spill.extend_from_slice(&bytes[fed..]);
        Ok(())
    }

    /// Interprets what was kept, and takes a slot if one is wanted. The memory is freed when empty.
    fn drain_spill(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if !self.spill.is_empty() {
            let spill = std::mem::take(&mut self.spill);
            self.spill_at += self.feed_some(&spill[self.spill_at..], cx)?;
            if self.spill_at < spill.len() {
                self.spill = spill;
                return Ok(());
            }
            self.spill_at = 0;
        }
        self.settle(cx)
    }

    /// Interprets bytes until they end or a slot is wanted; says how many.
    fn feed_some(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<usize, End> {
        let mut fed = 0;
        while fed < bytes.len() {
            self.settle(cx)?;
            if self.is_starved() {
                break;
            }
            let len = self.copy_in(&bytes[fed..], cx);
            fed += len;
            self.landed(len, cx)?;
        }
        Ok(fed)
    }

    /// Copies as many bytes as the state expects now.
    fn copy_in(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> usize {
        let len = bytes.len().min(self.left());
        let place = match &mut self.state {
            State::Head => self.head.get_mut(self.head_got..self.head_need),
            State::Message { slot, got, len, .. } => slot.buffer_mut().get_mut(*got..*len),
            State::Data { op, left } => cx.requests.landing(*op, *left),
            State::Write(landing) => landing.place(&mut cx.shared.regions),
            State::Starved(_) => None,
        };
        if let Some(place) = place {
            place[..len].copy_from_slice(&bytes[..len]);
        }
        len
    }

    /// How many bytes the state expects.
    fn left(&self) -> usize {
        match &self.state {
            State::Head => self.head_need - self.head_got,
            State::Message { len, got, .. } => len - got,
            State::Data { left, .. } => *left,
            State::Write(landing) => landing.left,
            State::Starved(_) => 0,
        }
    }

    /// `len` bytes that were expected are in their place.
    fn landed(&mut self, len: usize, cx: &mut Context<'_>) -> Result<(), End> {
        match &mut self.state {
            State::Head => self.head_got += len,
            State::Message { got, .. } => *got += len,
            State::Data { left, .. } => *left -= len,
            State::Write(landing) => {
                landing.left -= len;
                landing.offset += len;
            }
            State::Starved(_) => {}
        }
        if self.left() == 0 { self.on_complete(cx) } else { Ok(()) }
    }

    /// What was expected is complete.
    fn on_complete(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        match std::mem::replace(&mut self.state, State::Head) {
            State::Head => self.on_head(cx),
            State::Message { op, mut slot, len, .. } => {
                slot.set_len(len);
                self.expect_head();
                deliver(cx, Posted { op, slot }, None);
                Ok(())
            }
            State::Data { op, .. } => {
                self.expect_head();
                remote::on_data(cx, op);
                Ok(())
            }
            State::Write(landing) => {
                self.expect_head();
                match remote::on_landed(cx, &landing)? {
                    Some(wanted) => self.begin(State::Starved(wanted), cx),
                    None => Ok(()),
                }
            }
            starved @ State::Starved(_) => {
                self.state = starved;
                Ok(())
            }
        }
    }

    fn on_head(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let violated = |violation| status::violation(cx.peer, &violation);
        let need = head_bytes(self.head[0]).map_err(violated)?;
        if self.head_got < need {
            self.head_need = need;
            return Ok(());
        }
        let frame = Frame::decode(&self.head[..need]).map_err(violated)?;
        self.expect_head();
        match frame {
            Frame::Message { len } => {
                let wanted = Wanted::Message { len: check_message(len as usize, cx)? };
                self.begin(State::Starved(wanted), cx)
            }
            other => match remote::on_frame(cx, &other)? {
                Some(state) => self.begin(state, cx),
                None => Ok(()),
            },
        }
    }

    /// Enters a state, which may already be complete because it expects no bytes.
    fn begin(&mut self, state: State, cx: &mut Context<'_>) -> Result<(), End> {
        self.state = state;
        if self.left() == 0 && !self.is_starved() { self.on_complete(cx) } else { Ok(()) }
    }

    /// Takes a posted slot if one is wanted and there.
    fn settle(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let State::Starved(wanted) = self.state else { return Ok(()) };
        let Some(posted) = cx.shared.recvs.take() else { return Ok(()) };
        match wanted {
            Wanted::Message { len } => self.adopt(posted, len, 0, cx),
            Wanted::Imm { id, imm } => {
                self.expect_head();
                let Posted { op, mut slot } = posted;
                slot.set_len(0);
                deliver(cx, Posted { op, slot }, Some(imm));
                remote::answer(cx, &Frame::WriteDone { id })
            }
        }
    }

    fn expect_head(&mut self) {
        (self.state, self.head_got, self.head_need) = (State::Head, 0, HEADER_BYTES);
    }
}

impl Landing {
    /// Where the rest of the chunk belongs; nowhere if the exposure ended meanwhile.
    pub(crate) fn place<'a>(&self, regions: &'a mut Regions) -> Option<&'a mut [u8]> {
        regions.bytes_mut(self.region)?.get_mut(self.offset..self.offset + self.left)
    }
}

fn deliver(cx: &mut Context<'_>, posted: Posted, imm: Option<u32>) {
    let Posted { op, slot } = posted;
    cx.shared.recvs.delivered();
    cx.shared.events.push(Event::Received { ep: cx.ep, op, slot, imm });
}

fn check_message(len: usize, cx: &Context<'_>) -> Result<usize, End> {
    let len_max = cx.shared.message_bytes_max;
    if len <= len_max {
        return Ok(len);
    }
    let text = format!(
        "{} sent a message of {len} bytes, over the limit of {len_max}: set the same \
         message_bytes_max on both sides",
        cx.peer
    );
    Err(refusal(Error::new(ErrorKind::Protocol, text), Reason::Protocol))
}

fn too_long(len: usize, capacity: usize, cx: &Context<'_>) -> End {
    let text = format!(
        "{} sent a message of {len} bytes, but the posted slot has {capacity}: post larger slots",
        cx.peer
    );
    refusal(Error::new(ErrorKind::NoReceive, text), Reason::NoReceive)
}

/// An end that the peer is told about.
pub(crate) fn refusal(why: Error, reason: Reason) -> End {
    End::new(why, Farewell::Nak(Frame::Nak { id: 0, reason }))
}

fn broken(error: io::Error, cx: &Context<'_>) -> End {
    End::new(status::stream_error(error, cx.peer), Farewell::Gone)
}

/// The stream ended, and nobody said goodbye.
fn ended(at_boundary: bool, cx: &Context<'_>) -> End {
    let place = if at_boundary { "without a goodbye" } else { "in the middle of a frame" };
    let text = format!("the connection to {} ended {place}: the peer died or was dropped", cx.peer);
    End::new(Error::new(ErrorKind::Reset, text), Farewell::Gone)
}

#[cfg(test)]
mod tests;
