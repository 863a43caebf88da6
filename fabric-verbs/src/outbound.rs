//! From what an endpoint has to send to requests in its send queue.

use std::collections::VecDeque;
use std::io;

use fabric_core::{Event, Segment, SendBuf};
use fabric_link::{HEAD_BYTES, Part, Stage, append};
use smallvec::{SmallVec, smallvec};

use crate::buffers::{OutPackets, Packet, Registry};
use crate::endpoint::{Endpoint, Flight, Hold, Message, Outgoing};
use crate::limits::{COPY_BYTES_MAX, POST_BATCH, SEND_QUEUE, SEND_QUEUE_RESERVE, UNSIGNALLED_MAX};
use crate::packet::{Head, Kind};
use crate::sys::{Chain, Op, Sges, Wr};
use crate::works::{Answer, Piece, cut};

/// What all endpoints of a domain share on the way out.
pub(crate) struct Shared<'a> {
    pub(crate) packets: &'a OutPackets,
    pub(crate) registry: &'a Registry,
    /// Requests whose completions the queue has room for.
    pub(crate) room: &'a mut usize,
    /// Requests for one doorbell; empty between looks.
    pub(crate) chain: &'a mut Chain,
    pub(crate) events: &'a mut VecDeque<Event>,
}

/// How far a look at an endpoint went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// Nothing is left that can go, or its own completions will bring it back.
    All,
    /// Something is left that waits for memory or completions of others.
    Short,
}

/// Whether a request makes a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Somebody waits for it.
    Always,
    /// When there has been none for long enough.
    IfDue,
}

/// Whether a message goes in copies.
pub(crate) fn is_copied(buf: &SendBuf, len: usize, registry: &Registry) -> bool {
    len <= COPY_BYTES_MAX || pieces(buf, registry).is_none()
}

/// Where the segments lie, if all of them lie in registered pools.
pub(crate) fn pieces(buf: &SendBuf, registry: &Registry) -> Option<SmallVec<[Piece; 8]>> {
    let filled = buf.segments().iter().map(|s| s.filled()).filter(|bytes| !bytes.is_empty());
    let piece = |bytes: &[u8]| {
        let key = registry.key_of(bytes.as_ptr(), bytes.len())?;
        Some(Piece { addr: bytes.as_ptr() as u64, len: bytes.len(), key })
    };
    filled.map(piece).collect()
}

impl Endpoint {
    /// Posts whatever may go.
    ///
    /// # Errors
    /// What the device says when it takes no more; the endpoint is then broken.
    pub(crate) fn pump(&mut self, shared: &mut Shared<'_>) -> io::Result<Pumped> {
        loop {
            let mut pumped = Pumped::All;
            while shared.chain.len() < POST_BATCH {
                match self.add_one(shared) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(NoMemory) => {
                        pumped = Pumped::Short;
                        break;
                    }
                }
            }
            let count = shared.chain.len();
            if count > 0 {
                self.post(shared)?;
            }
            if count < POST_BATCH {
                return Ok(pumped);
            }
        }
    }

    /// Adds a request to the batch, and says whether there was one to add.
    fn add_one(&mut self, shared: &mut Shared<'_>) -> Result<bool, NoMemory> {
        let taken = self.flights.len();
        if taken >= SEND_QUEUE {
            return Ok(false);
        }
        if *shared.room == 0 {
            return if self.wants_to_send() { Err(NoMemory) } else { Ok(false) };
        }
        let added = self.choose(taken, shared)?;
        *shared.room -= usize::from(added);
        Ok(added)
    }

    /// Remote operations first: few of them are in flight at once, so messages never wait long.
    fn choose(&mut self, taken: usize, shared: &mut Shared<'_>) -> Result<bool, NoMemory> {
        if self.stage != Stage::Closing && taken < SEND_QUEUE - SEND_QUEUE_RESERVE {
            if self.add_piece(shared)? {
                return Ok(true);
            }
            if self.credit.room() > 0 && self.add_packet(shared)? {
                return Ok(true);
            }
        }
        if self.stage != Stage::Closing && self.credit.owes(self.window) {
            return self.add_grant(shared).map(|()| true);
        }
        self.add_bye(shared)
    }

    fn add_grant(&mut self, shared: &mut Shared<'_>) -> Result<(), NoMemory> {
        self.add_head(Kind::Grant, held, Signal::IfDue, shared)
    }

    fn add_bye(&mut self, shared: &mut Shared<'_>) -> Result<bool, NoMemory> {
        let Some(reason) = self.bye else { return Ok(false) };
        let hold = |packet| Hold::Bye { _packet: packet };
        self.add_head(Kind::Bye { reason, piece: 0 }, hold, Signal::Always, shared)?;
        self.bye = None;
        Ok(true)
    }

    fn add_packet(&mut self, shared: &mut Shared<'_>) -> Result<bool, NoMemory> {
        match self.out.front() {
            Some(&Outgoing::Immediate { op, value }) => {
                let hold = |packet| Hold::Immediate { op, _packet: packet };
                self.add_head(Kind::Part(Part::Immediate { value }), hold, Signal::Always, shared)?;
                self.out.pop_front();
                self.credit.on_sent();
                Ok(true)
            }
            Some(Outgoing::Message(message)) if self.is_inline(message) => {
                self.add_small(shared.chain);
                Ok(true)
            }
            Some(Outgoing::Message(_)) => self.add_message(shared).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether the device takes all of it when it is posted.
    fn is_inline(&self, message: &Message) -> bool {
        let bytes = HEAD_BYTES + message.cut.len();
        message.copied
            && !message.cut.has_begun()
            && bytes <= self.inline_bytes.min(self.packet_bytes)
    }

    fn add_small(&mut self, chain: &mut Chain) {
        let Some(Outgoing::Message(message)) = self.out.pop_front() else { return };
        let kind = Kind::Part(message.cut.part());
        let parts = message.buf.segments().iter().map(Segment::filled);
        self.add_inline(kind, parts, Hold::Nothing, Signal::IfDue, chain);
        self.credit.on_sent();
        self.copied.push((message.op, message.buf));
    }

    /// A packet that is a head only.
    fn add_head(
        &mut self,
        kind: Kind,
        hold: impl FnOnce(Option<Packet>) -> Hold,
        signal: Signal,
        shared: &mut Shared<'_>,
    ) -> Result<(), NoMemory> {
        if HEAD_BYTES <= self.inline_bytes {
            self.add_inline(kind, std::iter::empty(), hold(None), signal, shared.chain);
        } else {
            let packet = self.packet(kind, HEAD_BYTES, shared)?;
            self.add(Op::Send, smallvec![packet.sge()], hold(Some(packet)), signal, shared.chain);
        }
        Ok(())
    }

    fn add_inline<'a>(
        &mut self,
        kind: Kind,
        parts: impl Iterator<Item = &'a [u8]>,
        hold: Hold,
        signal: Signal,
        chain: &mut Chain,
    ) {
        let head = Head { kind, granted: self.credit.tell() }.encode();
        let (id, signal) = self.number(signal);
        chain.push_inline(id, signal, &head, parts);
        self.flights.push_back(Flight { seq: id, hold });
    }

    fn add_message(&mut self, shared: &mut Shared<'_>) -> Result<(), NoMemory> {
        let Some(Outgoing::Message(message)) = self.out.front() else { return Err(NoMemory) };
        let Message { cut: at, copied, .. } = *message;
        let (from, len) = (at.start(), at.next_len(self.packet_bytes - HEAD_BYTES));
        let bytes = if copied { HEAD_BYTES + len } else { HEAD_BYTES };
        let mut packet = self.packet(Kind::Part(at.part()), bytes, shared)?;
        let Some(Outgoing::Message(message)) = self.out.front_mut() else { return Err(NoMemory) };
        message.cut.advance(len);
        let is_last = message.cut.is_done();
        let mut sges = Sges::new();
        if copied {
            append(&message.buf, from, len, &mut packet.slot);
        } else {
            sges =
                cut(&pieces(&message.buf, shared.registry).unwrap_or_default(), from, len).into();
        }
        self.credit.on_sent();
        let last = if is_last { self.out.pop_front() } else { None };
        if copied {
            if let Some(Outgoing::Message(message)) = last {
                self.copied.push((message.op, message.buf));
            }
            let sges = smallvec![packet.sge()];
            self.add(Op::Send, sges, held(Some(packet)), Signal::IfDue, shared.chain);
        } else {
            self.add_gathered(packet, sges, last, shared.chain);
        }
        Ok(())
    }

    /// A packet whose bytes are read from where they lie; the last one keeps the message.
    fn add_gathered(
        &mut self,
        head: Packet,
        mut sges: Sges,
        last: Option<Outgoing>,
        chain: &mut Chain,
    ) {
        sges.insert(0, head.sge());
        let (hold, signal) = match last {
            Some(Outgoing::Message(Message { op, buf, .. })) => {
                (Hold::Message { op, buf, _head: head }, Signal::Always)
            }
            _ => (Hold::Packet { _packet: head }, Signal::IfDue),
        };
        self.add(Op::Send, sges, hold, signal, chain);
    }

    fn add(&mut self, op: Op, sges: Sges, hold: Hold, signal: Signal, chain: &mut Chain) {
        let (id, signal) = self.number(signal);
        chain.push(Wr { id, op, sges, signal });
        self.flights.push_back(Flight { seq: id, hold });
    }

    /// The number of the next request, and whether it makes a completion.
    fn number(&mut self, signal: Signal) -> (u64, bool) {
        self.unsignalled += 1;
        let signal = signal == Signal::Always || self.unsignalled >= UNSIGNALLED_MAX;
        if signal {
            self.unsignalled = 0;
        }
        self.next_seq += 1;
        (self.next_seq - 1, signal)
    }

    /// A packet with its head.
    fn packet(
        &mut self,
        kind: Kind,
        bytes: usize,
        shared: &Shared<'_>,
    ) -> Result<Packet, NoMemory> {
        let mut packet = shared.packets.take(bytes).ok_or(NoMemory)?;
        let head = Head { kind, granted: self.credit.tell() };
        packet.slot.set_len(0);
        if packet.slot.append(&head.encode()) { Ok(packet) } else { Err(NoMemory) }
    }

    fn add_piece(&mut self, shared: &mut Shared<'_>) -> Result<bool, NoMemory> {
        let Some(mut ask) = self.works.next() else { return Ok(false) };
        let mut packet = None;
        if ask.answer != Answer::Given {
            let bytes = if ask.answer == Answer::Value { 8 } else { ask.len };
            let Some(mut taken) = shared.packets.take(bytes) else {
                self.works.undo(ask.op, ask.len);
                return Err(NoMemory);
            };
            taken.slot.set_len(bytes);
            ask.sges.push(taken.sge());
            packet = Some(taken);
        }
        let hold = match (ask.answer, packet) {
            (Answer::Value, Some(packet)) => Hold::Value { op: ask.op, packet },
            (_, packet) => Hold::Piece { op: ask.op, len: ask.len, packet },
        };
        self.add(ask.wr, ask.sges.into(), hold, Signal::Always, shared.chain);
        Ok(true)
    }

    /// Has the device tell when it is done with everything so far. Requests that went well and had
    /// no completion of their own would otherwise never be heard of. A write of no bytes reaches
    /// nobody, and comes back from a queue pair that failed, too.
    pub(crate) fn mark(&mut self) {
        if self.unsignalled == 0 || self.flights.is_empty() {
            return;
        }
        let (id, op) = (self.next_seq, Op::Write { addr: 0, key: 0 });
        let wr = Wr { id, op, sges: SmallVec::new(), signal: true };
        match self.link.post_one(wr) {
            Ok(()) => {
                (self.next_seq, self.unsignalled) = (id + 1, 0);
                self.flights.push_back(Flight { seq: id, hold: Hold::Marker });
            }
            // The queue pair is destroyed in time, which tells the same.
            Err(error) => tracing::debug!(%error, "the end is not marked"),
        }
    }

    fn post(&mut self, shared: &mut Shared<'_>) -> io::Result<()> {
        let chain = &mut *shared.chain;
        if self.flights.back().is_some_and(|last| !matches!(last.hold, Hold::Nothing)) {
            chain.signal_last();
            self.unsignalled = 0;
        }
        let (count, (posted, result)) = (chain.len(), self.link.post(chain));
        // Those that the device did not take never come back by themselves.
        for _ in posted..count {
            *shared.room += 1;
            if let Some(flight) = self.flights.pop_back() {
                self.recall(flight.hold, shared.events);
            }
        }
        self.report_copied(shared.events);
        result
    }

    /// Messages that were copied whole need not wait for anything.
    fn report_copied(&mut self, events: &mut VecDeque<Event>) {
        let mut copied = std::mem::take(&mut self.copied);
        for (op, buf) in copied.drain(..) {
            self.sent(op, buf, Ok(()), events);
        }
        self.copied = copied;
    }

    fn recall(&mut self, hold: Hold, events: &mut VecDeque<Event>) {
        if let Hold::Message { op, buf, .. } = hold {
            let why = crate::status::flushed(self.why.as_ref());
            self.sent(op, buf, Err(why), events);
        }
    }
}

/// There is no packet or no room for a completion for now.
struct NoMemory;

/// What keeps a packet, or nothing if the device took it when it was posted.
fn held(packet: Option<Packet>) -> Hold {
    packet.map_or(Hold::Nothing, |packet| Hold::Packet { _packet: packet })
}
