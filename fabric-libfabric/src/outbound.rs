//! From what an endpoint has to send to packets that its provider takes.

use std::collections::VecDeque;

use fabric_core::{Event, Slot};
use fabric_link::{HEAD_BYTES, Part, Reason, Stage, append};

use crate::endpoint::{Answer, Endpoint, Farewell, Message, Outgoing};
use crate::limits::FLIGHTS_MAX;
use crate::link::{Sent, Wires};
use crate::packet::{Head, Kind, Step};
use crate::region::Regions;
use crate::stock::Packet;
use crate::sys::Code;

/// What all endpoints of a domain share on the way out.
pub(crate) struct Shared<'a> {
    pub(crate) wires: &'a mut Wires,
    pub(crate) regions: &'a mut Regions,
    pub(crate) events: &'a mut VecDeque<Event>,
}

/// How far a look at an endpoint went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// Nothing is left that can go.
    All,
    /// Something is left that there is no room for.
    Short,
    /// The peer wants memory that is not exposed any more.
    Denied { piece: u32 },
}

/// What to send next.
enum Want {
    Stalled(Packet),
    Answer,
    Grant,
    Piece,
    Packet,
    Bye(Farewell),
}

impl Endpoint {
    /// Sends whatever may go.
    ///
    /// # Errors
    /// What the provider says when it takes no more; the endpoint is then broken.
    pub(crate) fn pump(&mut self, shared: &mut Shared<'_>) -> Result<Pumped, Code> {
        let mut has_sent = false;
        let pumped = loop {
            if self.send_small(shared) {
                has_sent = true;
                continue;
            }
            let Some(want) = self.want() else { break Pumped::All };
            let packet = match self.packet(want, shared) {
                Ok(packet) => packet,
                Err(pumped) => break pumped,
            };
            match shared.wires.send(&self.link.endpoint, self.id, packet)? {
                Sent::Copied => has_sent = true,
                Sent::InFlight => {
                    self.in_flight += 1;
                    has_sent = true;
                }
                Sent::Later(packet) => {
                    self.stalled = Some(packet);
                    break Pumped::Short;
                }
            }
        };
        if has_sent {
            self.link.on_sent(&mut shared.wires.clock);
        }
        Ok(pumped)
    }

    /// Hands the first message to the provider if that needs no packet, and says whether it did.
    fn send_small(&mut self, shared: &mut Shared<'_>) -> bool {
        let wires = &mut *shared.wires;
        let Some(Outgoing::Message(message)) = self.out.front().filter(|_| self.is_clear()) else {
            return false;
        };
        let bytes = HEAD_BYTES + message.cut.len();
        if message.cut.has_begun() || bytes > wires.inject_bytes.min(self.packet_bytes) {
            return false;
        }
        let kind = Kind::Part(message.cut.part());
        let head = Head { kind, granted: self.credit.granted() };
        wires.draft[..HEAD_BYTES].copy_from_slice(&head.encode());
        message.buf.copy_to(&mut wires.draft[HEAD_BYTES..bytes]);
        // What the provider has against it is heard when it is sent in the usual way.
        if self.link.endpoint.inject(&wires.draft[..bytes]).is_err() {
            return false;
        }
        self.credit.tell();
        self.credit.on_sent();
        if let Some(Outgoing::Message(Message { op, buf, .. })) = self.out.pop_front() {
            self.sent(op, buf, Ok(()), shared.events);
        }
        true
    }

    /// Whether nothing goes before a message, and the peer has room.
    fn is_clear(&self) -> bool {
        self.stage == Stage::Open
            && self.credit.room() > 0
            && self.stalled.is_none()
            && self.answers.is_empty()
            && !self.owes_greeting
            && !self.works.wants_to_post()
    }

    /// Whether a look at it could send something.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.stalled.is_some() || self.choice().is_some()
    }

    fn want(&mut self) -> Option<Want> {
        match self.stalled.take() {
            Some(packet) => Some(Want::Stalled(packet)),
            None => self.choice(),
        }
    }

    /// Answers and pieces of remote operations go first: few of them are under way at once, so that
    /// messages never wait long.
    fn choice(&self) -> Option<Want> {
        if self.stage == Stage::Closing {
            return self.bye.map(Want::Bye);
        }
        if self.owes_greeting || self.credit.owes(self.window) {
            Some(Want::Grant)
        } else if self.in_flight >= FLIGHTS_MAX {
            None
        } else if !self.answers.is_empty() {
            Some(Want::Answer)
        } else if self.works.wants_to_post() {
            Some(Want::Piece)
        } else if self.credit.room() > 0 && !self.out.is_empty() {
            Some(Want::Packet)
        } else {
            None
        }
    }

    fn packet(&mut self, want: Want, shared: &mut Shared<'_>) -> Result<Packet, Pumped> {
        if let Want::Stalled(packet) = want {
            return Ok(packet);
        }
        let wires = &mut *shared.wires;
        let mut packet = wires.stock.take(&wires.opened).ok_or(Pumped::Short)?;
        packet.slot.set_len(HEAD_BYTES);
        let kind = match want {
            Want::Answer => self.answer(&mut packet.slot, shared),
            Want::Piece => self
                .works
                .next(self.packet_bytes, &mut packet.slot)
                .map(Kind::Remote)
                .ok_or(Pumped::All),
            Want::Packet => self.part(&mut packet.slot, shared),
            Want::Bye(Farewell { reason, piece }) => {
                self.bye = None;
                Ok(Kind::Bye { reason, piece })
            }
            Want::Grant | Want::Stalled(_) => {
                self.owes_greeting = false;
                Ok(Kind::Grant)
            }
        };
        match kind {
            Ok(kind) => {
                let head = Head { kind, granted: self.credit.tell() };
                packet.slot.buffer_mut()[..HEAD_BYTES].copy_from_slice(&head.encode());
                Ok(packet)
            }
            Err(pumped) => {
                shared.wires.stock.give_back(packet);
                Err(pumped)
            }
        }
    }

    fn answer(&mut self, into: &mut Slot, shared: &mut Shared<'_>) -> Result<Kind, Pumped> {
        match self.answers.pop_front().ok_or(Pumped::All)? {
            Answer::Wrote { piece } => Ok(Kind::Remote(Step::Wrote { piece })),
            Answer::Value { piece, value } => {
                let fits = into.append(&value.to_le_bytes());
                debug_assert!(fits, "a packet has room for a word");
                Ok(Kind::Remote(Step::Value { piece }))
            }
            Answer::Data { piece, key, at, len } => {
                // It was allowed when it was asked for; it may have been revoked meanwhile.
                let bytes = shared.regions.bytes(&key, at, len).unwrap_or_default();
                if bytes.len() == len && into.append(bytes) {
                    Ok(Kind::Remote(Step::Data { piece }))
                } else {
                    Err(Pumped::Denied { piece })
                }
            }
        }
    }

    /// The next part of the first message, or a value.
    fn part(&mut self, into: &mut Slot, shared: &mut Shared<'_>) -> Result<Kind, Pumped> {
        let packet_bytes = self.packet_bytes;
        let message = match self.out.front_mut().ok_or(Pumped::All)? {
            &mut Outgoing::Immediate { op, value } => {
                self.out.pop_front();
                self.credit.on_sent();
                self.finish(op, Ok(()), shared.events);
                return Ok(Kind::Part(Part::Immediate { value }));
            }
            Outgoing::Message(message) => message,
        };
        let (part, from) = (message.cut.part(), message.cut.start());
        let len = message.cut.next_len(packet_bytes - HEAD_BYTES);
        append(&message.buf, from, len, into);
        message.cut.advance(len);
        let is_done = message.cut.is_done();
        self.credit.on_sent();
        if is_done && let Some(Outgoing::Message(message)) = self.out.pop_front() {
            // All of it is copied, so its buffer need not wait for anything.
            self.sent(message.op, message.buf, Ok(()), shared.events);
        }
        Ok(Kind::Part(part))
    }
}

impl Farewell {
    /// One about a piece of a remote operation.
    pub(crate) fn denied(piece: u32) -> Self {
        Self { reason: Reason::Access, piece }
    }
}
