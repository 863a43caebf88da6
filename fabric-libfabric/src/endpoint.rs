//! One connection: what it has to send, what is under way, what arrived and was not read yet.

use std::collections::VecDeque;

use fabric_core::{Addr, EpId, Error, Event, OpId, RemoteKey, SendBuf};
use fabric_link::{Assembly, Credit, Cut, Part, Reason, Recvs, Stage};

use crate::link::Link;
use crate::status;
use crate::stock::{Packet, Stock};
use crate::works::{Landed, Works};

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
    /// How far it is in packets.
    pub(crate) cut: Cut,
}

/// What is owed to the peer for a piece of a remote operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Data { piece: u32, key: RemoteKey, at: u64, len: usize },
    Wrote { piece: u32 },
    Value { piece: u32, value: u64 },
}

/// What to say at the end, and about which piece of a remote operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Farewell {
    pub(crate) reason: Reason,
    pub(crate) piece: u32,
}

impl Farewell {
    /// One that is about no piece.
    pub(crate) fn plain(reason: Reason) -> Self {
        Self { reason, piece: u32::MAX }
    }
}

pub(crate) struct Endpoint {
    pub(crate) link: Link,
    pub(crate) id: EpId,
    pub(crate) peer: Addr,
    /// Bytes of a packet that the peer takes.
    pub(crate) packet_bytes: usize,
    pub(crate) credit: Credit,
    pub(crate) window: usize,
    pub(crate) stage: Stage,
    pub(crate) why: Option<Error>,
    /// A goodbye that is still to be sent.
    pub(crate) bye: Option<Farewell>,
    pub(crate) peer_said_bye: bool,
    /// A first packet is owed: providers without connections make acquaintance with it, which would
    /// otherwise hold up the user's first message.
    pub(crate) owes_greeting: bool,
    pub(crate) out: VecDeque<Outgoing>,
    pub(crate) works: Works,
    pub(crate) answers: VecDeque<Answer>,
    /// A packet that the provider had no room for. It goes before all others.
    pub(crate) stalled: Option<Packet>,
    /// Packets that it has and will give back.
    pub(crate) in_flight: usize,
    /// Packets to receive into that it had no room for, and whether each gives room for another.
    pub(crate) unposted: Vec<(Packet, bool)>,
    pub(crate) held: VecDeque<(Part, Packet)>,
    pub(crate) assembly: Assembly,
    /// Operations of the user that have not come back.
    pub(crate) ops: usize,
}

impl Endpoint {
    /// An endpoint with nothing to do.
    pub(crate) fn new(link: Link, id: EpId, terms: Terms) -> Self {
        let Terms { peer, packet_bytes, credit, window } = terms;
        let owes_greeting = link.side.is_some();
        Self {
            link,
            id,
            peer,
            packet_bytes,
            credit,
            window,
            stage: Stage::Open,
            why: None,
            bye: None,
            peer_said_bye: false,
            owes_greeting,
            out: VecDeque::new(),
            works: Works::default(),
            answers: VecDeque::new(),
            stalled: None,
            in_flight: 0,
            unposted: Vec::new(),
            held: VecDeque::new(),
            assembly: Assembly::default(),
            ops: 0,
        }
    }

    /// Whether the user may still post to it.
    pub(crate) fn is_usable(&self) -> bool {
        self.stage != Stage::Closing
    }

    /// Whether everything that was sent has left.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.bye.is_none() && self.stalled.is_none() && self.in_flight == 0
    }

    /// Gives back everything that the user posted.
    pub(crate) fn return_all(&mut self, events: &mut VecDeque<Event>) {
        for out in std::mem::take(&mut self.out) {
            // The buffer of a write with a value is with the works.
            if let Outgoing::Message(Message { op, buf, .. }) = out {
                let why = status::flushed(self.why.as_ref());
                self.sent(op, buf, Err(why), events);
            }
        }
        for done in self.works.drain(|| status::flushed(self.why.as_ref())) {
            events.push_back(done.event(self.id));
        }
        self.ops = 0;
    }

    /// Drops what arrived and was not read, and offers the slot of half a message again.
    pub(crate) fn drop_inbox(&mut self, stock: &mut Stock, recvs: &mut Recvs) {
        self.answers.clear();
        for (_, packet) in self.held.drain(..) {
            stock.give_back(packet);
        }
        for (packet, _) in self.unposted.drain(..) {
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

    /// A piece of a remote operation was answered.
    pub(crate) fn on_landed(&mut self, landed: Landed, events: &mut VecDeque<Event>) {
        match landed {
            Landed::Partly => {}
            Landed::Done(done) => {
                self.ops = self.ops.saturating_sub(1);
                events.push_back(done.event(self.id));
            }
            Landed::Immediate { op, value } => {
                self.out.push_back(Outgoing::Immediate { op, value });
            }
        }
    }

    /// Ends one remote operation.
    pub(crate) fn finish(
        &mut self,
        op: OpId,
        result: Result<(), Error>,
        events: &mut VecDeque<Event>,
    ) {
        if let Some(done) = self.works.finish(op, result) {
            self.ops = self.ops.saturating_sub(1);
            events.push_back(done.event(self.id));
        }
    }
}

/// What both sides agreed on.
pub(crate) struct Terms {
    pub(crate) peer: Addr,
    pub(crate) packet_bytes: usize,
    pub(crate) credit: Credit,
    pub(crate) window: usize,
}
