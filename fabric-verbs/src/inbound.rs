//! What completions mean: requests that came back, packets that arrived.

use fabric_core::{Error, Event};
use fabric_link::{Done, HEAD_BYTES, Part, Reason, Recvs, Stage, Taken, admit};

use crate::buffers::Packet;
use crate::driver::Driver;
use crate::endpoint::{Endpoint, Hold, Outgoing};
use crate::packet::Kind;
use crate::status::{self, Verdict};
use crate::sys::Completion;
use crate::table::Phase;
use crate::works::Landed;

impl Driver {
    /// A request came back, and with it all that were posted before it.
    pub(crate) fn on_sent(&mut self, completion: &Completion) {
        let Some(index) = self.table.index_of_name(completion.qp.into()) else { return };
        let Some(endpoint) = self.table.endpoint(index) else { return };
        let verdict = status::verdict(completion, &endpoint.peer);
        while endpoint.flights.front().is_some_and(|flight| flight.seq <= completion.id) {
            let Some(flight) = endpoint.flights.pop_front() else { break };
            self.room += usize::from(!matches!(flight.hold, Hold::Marker));
            let result = match &verdict {
                Verdict::Bad(error) if flight.seq == completion.id => Err(copy_of(error)),
                Verdict::Flushed if flight.seq == completion.id => {
                    Err(status::flushed(endpoint.why.as_ref()))
                }
                // Requests without a completion of their own went well.
                _ => Ok(()),
            };
            settle(endpoint, flight.hold, result, &mut self.events);
        }
        if endpoint.wants_to_send() {
            self.table.mark_dirty(index);
        }
        self.table.rouse_short();
        match verdict {
            Verdict::Good => {}
            Verdict::Bad(error) => self.on_failure(index, error),
            Verdict::Flushed => self.on_flushed(index),
        }
        self.settle_end(index);
    }

    /// The queue pair failed with a reason.
    fn on_failure(&mut self, index: usize, error: Error) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        match endpoint.stage {
            Stage::Open => self.end(index, error, None),
            // The peer said goodbye before.
            Stage::PeerEnded => {}
            Stage::Closing => endpoint.cut(),
        }
    }

    /// The queue pair failed without a reason that this side was told.
    fn on_flushed(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage == Stage::Open {
            let why = status::vanished(&endpoint.peer);
            self.end(index, why, None);
        }
    }

    /// A packet arrived.
    pub(crate) fn on_received(&mut self, completion: &Completion) {
        let Some(packet) = self.stock.take(completion.id, completion.bytes) else { return };
        let index = self.table.index_of_name(completion.qp.into());
        let Some(index) = index.filter(|_| completion.status == 0) else {
            return self.stock.give_back(packet);
        };
        if let Some(Phase::Accepting(_)) = self.table.get(index).map(|conn| &conn.phase) {
            // The peer has finished, though the connection manager has not said so yet.
            self.promote(index);
        }
        let Some(endpoint) = self.table.endpoint(index) else {
            return self.stock.give_back(packet);
        };
        if endpoint.stage == Stage::Closing {
            return self.stock.give_back(packet);
        }
        let Endpoint { credit, stage, peer, .. } = &mut *endpoint;
        let kind = match admit(packet.slot.filled(), credit, *stage, peer) {
            Ok(kind) => kind,
            Err(why) => {
                self.stock.give_back(packet);
                return self.end(index, why, Some(Reason::Protocol));
            }
        };
        let Some(event) = whole(endpoint, kind, &packet, &mut self.recvs) else {
            return self.on_packet(index, kind, packet);
        };
        self.reserved = self.reserved.saturating_sub(1) + endpoint.renew();
        let wants_to_send = endpoint.wants_to_send();
        self.events.push_back(event);
        self.stock.give_back(packet);
        if wants_to_send {
            // The packets stand in the queue before the peer hears of them: `restock` comes first.
            self.table.mark_dirty(index);
        }
    }

    fn on_packet(&mut self, index: usize, kind: Kind, packet: Packet) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        match kind {
            Kind::Grant => self.stock.give_back(packet),
            Kind::Bye { reason, .. } => {
                self.stock.give_back(packet);
                endpoint.why = Some(status::goodbye(reason, &endpoint.peer));
                endpoint.stage = Stage::PeerEnded;
            }
            Kind::Part(part) => endpoint.held.push_back((part, packet)),
        }
        if endpoint.wants_to_send() {
            self.table.mark_dirty(index);
        }
        self.serve(index);
    }

    /// Copies what is held to posted slots, as far as there are any.
    pub(crate) fn serve(&mut self, index: usize) {
        loop {
            let Some(endpoint) = self.table.endpoint(index) else { return };
            if endpoint.stage == Stage::Closing {
                return;
            }
            let Some((part, packet)) = endpoint.held.front() else { break };
            match endpoint.assembly.take(endpoint.id, *part, body(packet), &mut self.recvs) {
                Ok(Taken::Starved) => return self.table.mark_starved(index),
                Ok(Taken::Partly) => {}
                Ok(Taken::Whole(event)) => self.events.push_back(event),
                Err(misfit) => {
                    let (why, reason) = misfit.explain(&endpoint.peer);
                    return self.end(index, why, Some(reason));
                }
            }
            if let Some((_, packet)) = endpoint.held.pop_front() {
                self.on_used(index, packet);
            }
        }
        if self.table.endpoint(index).is_some_and(|ep| ep.stage == Stage::PeerEnded) {
            self.conclude(index);
        }
    }

    /// The memory of a packet is free again, so the peer may send another.
    fn on_used(&mut self, index: usize, packet: Packet) {
        self.stock.give_back(packet);
        let Some(endpoint) = self.table.endpoint(index) else { return };
        self.reserved = self.reserved.saturating_sub(1) + endpoint.renew();
        if endpoint.credit.owes(endpoint.window) {
            // As above.
            self.table.mark_dirty(index);
        }
    }
}

/// A message that is all in one packet, as most are, if nothing is before it and there is a slot
/// that it fits.
fn whole(endpoint: &Endpoint, kind: Kind, packet: &Packet, recvs: &mut Recvs) -> Option<Event> {
    let Kind::Part(Part::First { total }) = kind else { return None };
    if !endpoint.is_caught_up() {
        return None;
    }
    let bytes = packet.slot.filled().get(HEAD_BYTES..)?;
    if bytes.len() != total as usize {
        return None;
    }
    recvs.receive(endpoint.id, bytes)
}

/// What stands behind the head.
fn body(packet: &Packet) -> &[u8] {
    packet.slot.filled().get(HEAD_BYTES..).unwrap_or_default()
}

/// Gives back what a request kept.
fn settle(
    endpoint: &mut Endpoint,
    hold: Hold,
    result: Result<(), Error>,
    events: &mut std::collections::VecDeque<Event>,
) {
    match hold {
        Hold::Nothing | Hold::Packet { .. } | Hold::Marker | Hold::Bye { .. } => {}
        Hold::Message { op, buf, .. } => endpoint.sent(op, buf, result, events),
        Hold::Binding(window) => {
            if result.is_ok() {
                window.set_bound();
            }
        }
        Hold::Piece { op, len, packet } => {
            match endpoint.works.on_piece(op, len, packet.as_ref(), result) {
                Some(Landed::Done(done)) => finish(endpoint, done, events),
                Some(Landed::Immediate(value)) => {
                    endpoint.out.push_back(Outgoing::Immediate { op, value });
                }
                None => {}
            }
        }
        Hold::Value { op, packet } => {
            let value =
                packet.slot.filled().first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
            if let Some(done) = endpoint.works.on_value(op, value, result) {
                finish(endpoint, done, events);
            }
        }
        Hold::Immediate { op, .. } => {
            if result.is_ok()
                && let Some(done) = endpoint.works.finish(op, Ok(()))
            {
                finish(endpoint, done, events);
            }
        }
    }
}

fn finish(endpoint: &mut Endpoint, done: Done, events: &mut std::collections::VecDeque<Event>) {
    endpoint.ops = endpoint.ops.saturating_sub(1);
    events.push_back(done.event(endpoint.id));
}

fn copy_of(error: &Error) -> Error {
    Error::new(error.kind(), error.message())
}
