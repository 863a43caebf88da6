//! One connection: what it has to send, what is in flight, what arrived and was not read yet.

use std::collections::VecDeque;
use std::sync::Arc;

use fabric_core::{Addr, EpId, Error, Event, OpId, SendBuf};
use fabric_link::{Assembly, Credit, Cut, Part, Reason, Recvs, Stage, flushed};

use crate::buffers::Packet;
use crate::stock::Stock;
use crate::sys::{Id, Window};
use crate::works::Works;

/// A message or value on its way.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Message(Message),
    /// Follows the pieces of a write.
    Immediate {
        op: OpId,
        value: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) op: OpId,
    pub(crate) buf: SendBuf,
    /// How far it was posted.
    pub(crate) cut: Cut,
    /// Whether its packets are copies, as it is small or lies outside registered memory.
    pub(crate) copied: bool,
}

/// A request that the device has.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) seq: u64,
    pub(crate) hold: Hold,
}

/// What has to stay where it is until the request comes back.
#[derive(Debug)]
pub(crate) enum Hold {
    /// The device took everything when it was posted.
    Nothing,
    /// A packet of the provider's own, for its memory alone.
    Packet { _packet: Packet },
    /// The last packet of a message that is read from where it lies.
    Message { op: OpId, buf: SendBuf, _head: Packet },
    /// A piece of a remote read or write.
    Piece { op: OpId, len: usize, packet: Option<Packet> },
    /// An atomic, whose result is written to the packet.
    Value { op: OpId, packet: Packet },
    /// The value behind a write.
    Immediate { op: OpId, _packet: Option<Packet> },
    /// Nothing: its completion is that of all before it.
    Marker,
    /// A window that is being bound.
    Binding(Arc<Window>),
    /// The goodbye.
    Bye { _packet: Option<Packet> },
}

pub(crate) struct Endpoint {
    /// First, so that the queue pair is gone before anything that the device may use.
    pub(crate) link: Id,
    pub(crate) id: EpId,
    pub(crate) qp: u32,
    pub(crate) peer: Addr,
    /// Names the connection in keys.
    pub(crate) salt: u64,
    /// Bytes of a packet that the peer takes.
    pub(crate) packet_bytes: usize,
    pub(crate) inline_bytes: usize,
    pub(crate) credit: Credit,
    pub(crate) window: usize,
    pub(crate) stage: Stage,
    pub(crate) why: Option<Error>,
    /// A goodbye that is still to be posted.
    pub(crate) bye: Option<Reason>,
    pub(crate) is_cut: bool,
    pub(crate) out: VecDeque<Outgoing>,
    /// Messages whose last copy is about to be posted.
    pub(crate) copied: Vec<(OpId, SendBuf)>,
    pub(crate) works: Works,
    pub(crate) flights: VecDeque<Flight>,
    pub(crate) next_seq: u64,
    pub(crate) unsignalled: usize,
    /// The oldest request when somebody began to watch whether the device tells anything.
    pub(crate) watch: Option<u64>,
    pub(crate) held: VecDeque<(Part, Packet)>,
    pub(crate) assembly: Assembly,
    /// Operations of the user that have not come back.
    pub(crate) ops: usize,
}

impl Endpoint {
    /// An endpoint with nothing to do.
    pub(crate) fn new(link: Id, id: EpId, terms: Terms) -> Self {
        let Terms { peer, qp, salt, packet_bytes, inline_bytes, credit, window } = terms;
        Self {
            link,
            id,
            qp,
            peer,
            salt,
            packet_bytes,
            inline_bytes,
            credit,
            window,
            stage: Stage::Open,
            why: None,
            bye: None,
            is_cut: false,
            out: VecDeque::new(),
            copied: Vec::new(),
            works: Works::default(),
            flights: VecDeque::new(),
            next_seq: 0,
            unsignalled: 0,
            watch: None,
            held: VecDeque::new(),
            assembly: Assembly::default(),
            ops: 0,
        }
    }

    /// Whether the user may still post to it.
    pub(crate) fn is_usable(&self) -> bool {
        self.stage != Stage::Closing
    }

    /// Whether there is anything that a look at it could post.
    pub(crate) fn wants_to_send(&self) -> bool {
        let may_send = self.credit.room() > 0 && !self.out.is_empty();
        self.bye.is_some()
            || (self.is_usable()
                && (may_send || self.works.wants_to_post() || self.credit.owes(self.window)))
    }

    /// The memory of a packet is free again. Says how many more the peer may send for it.
    pub(crate) fn renew(&mut self) -> usize {
        self.credit.on_used();
        self.credit.top_up_in_bulk(self.window)
    }

    /// Whether all that arrived before was handed over.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.stage == Stage::Open && self.held.is_empty() && self.assembly.is_empty()
    }

    /// Ends the connection underneath; everything in flight comes back.
    pub(crate) fn cut(&mut self) {
        if !std::mem::replace(&mut self.is_cut, true) {
            self.link.disconnect();
            self.mark();
        }
    }

    /// Gives back what was not handed to the device at all.
    pub(crate) fn return_unposted(&mut self, events: &mut VecDeque<Event>) {
        let (begun, fresh): (VecDeque<_>, VecDeque<_>) = self
            .out
            .drain(..)
            .partition(|out| matches!(out, Outgoing::Message(m) if m.cut.has_begun()));
        self.out = begun;
        for out in fresh {
            self.return_one(out, events);
        }
    }

    /// Gives back everything, once nothing is in flight.
    pub(crate) fn return_all(&mut self, events: &mut VecDeque<Event>) {
        for out in std::mem::take(&mut self.out) {
            self.return_one(out, events);
        }
        for done in self.works.drain(|| flushed(self.why.as_ref())) {
            events.push_back(done.event(self.id));
        }
        self.ops = 0;
    }

    /// Drops what arrived and was not read, and offers the slot of half a message again.
    pub(crate) fn drop_inbox(&mut self, stock: &mut Stock, recvs: &mut Recvs) {
        for (_, packet) in self.held.drain(..) {
            stock.give_back(packet);
        }
        self.assembly.give_up(recvs);
    }

    /// A message came back.
    pub(crate) fn sent(
        &mut self,
        op: OpId,
        buf: SendBuf,
        result: Result<(), Error>,
        events: &mut VecDeque<Event>,
    ) {
        self.ops = self.ops.saturating_sub(1);
        events.push_back(Event::Sent { ep: self.id, op, buf, result });
    }

    fn return_one(&mut self, out: Outgoing, events: &mut VecDeque<Event>) {
        // The buffer of a write with a value is with the works.
        if let Outgoing::Message(Message { op, buf, .. }) = out {
            let why = flushed(self.why.as_ref());
            self.sent(op, buf, Err(why), events);
        }
    }
}

/// What both sides agreed on.
pub(crate) struct Terms {
    pub(crate) peer: Addr,
    pub(crate) qp: u32,
    pub(crate) salt: u64,
    pub(crate) packet_bytes: usize,
    pub(crate) inline_bytes: usize,
    pub(crate) credit: Credit,
    pub(crate) window: usize,
}
