//! What completions mean: packets that left, packets that arrived.

use fabric_core::Error;
use fabric_link::{HEAD_BYTES, Part, Reason, Recvs, Stage, Taken, admit};

use crate::driver::Driver;
use crate::endpoint::{Endpoint, Farewell};
use crate::link::{Aloft, Flight};
use crate::packet::{Head, Kind, Step};
use crate::status;
use crate::stock::Packet;
use crate::sys::{Code, Completion};
use crate::table::Phase;

impl Driver {
    pub(crate) fn on_completion(&mut self, completion: Completion) {
        if self.take_whole(completion) {
            return;
        }
        // A late one finds nothing, or a packet of its own endpoint.
        let Some(flight) = self.wires.flights.try_remove(completion.index) else { return };
        let Flight { ep, mut packet, state } = flight;
        let (index, is_receive) = (self.table.index_of(ep), state == Aloft::Receiving);
        let Some(index) = index.filter(|_| is_receive && completion.error.is_none()) else {
            self.wires.stock.give_back(packet);
            return self.on_returned(index, is_receive, completion.error);
        };
        packet.slot.set_len(completion.bytes.min(packet.slot.capacity()));
        self.on_arrived(index, packet);
    }

    /// A message that is one packet, and that nothing goes before, goes straight to its slot. Its packet
    /// stays where it is. Says whether it was one.
    fn take_whole(&mut self, completion: Completion) -> bool {
        let Self { wires, table, recvs, events, read, .. } = self;
        let Some(flight) = wires.flights.get_mut(completion.index) else { return false };
        let is_good = flight.state == Aloft::Receiving && completion.error.is_none();
        let Some((index, endpoint)) = table.endpoint_of(flight.ep).filter(|_| is_good) else {
            return false;
        };
        let Some(bytes) = flight.packet.slot.buffer_mut().get(..completion.bytes) else {
            return false;
        };
        let Some(body) = whole(endpoint, bytes, recvs) else { return false };
        if !endpoint.out.is_empty() {
            // It may have brought room for them.
            table.mark_dirty(index);
        }
        let Some(event) = recvs.receive(flight.ep, body) else { return false };
        events.push_back(event);
        flight.state = Aloft::Read;
        read.push(completion.index);
        true
    }

    /// Offers again what was read and left where it is. What was taken back meanwhile is something
    /// else by now, or nothing.
    pub(crate) fn post_read(&mut self) {
        for at in 0..self.read.len() {
            let flight = self.read[at];
            let Some(Flight { ep, state: Aloft::Read, .. }) = self.wires.flights.get(flight) else {
                continue;
            };
            if let Some((index, endpoint)) = self.table.endpoint_of(*ep)
                && endpoint.stage != Stage::PeerEnded
            {
                let posted = self.wires.post_again(&endpoint.link.endpoint, flight);
                self.on_posted(index, posted, true);
            }
        }
        self.read.clear();
    }

    /// A packet left, or came back without having been used.
    fn on_returned(&mut self, index: Option<usize>, is_receive: bool, error: Option<Code>) {
        let Some(index) = index else { return };
        if let Some(endpoint) = self.table.endpoint(index)
            && !is_receive
        {
            endpoint.in_flight = endpoint.in_flight.saturating_sub(1);
            if endpoint.wants_to_send() {
                self.table.mark_dirty(index);
            }
        }
        // While a connection is made, its events say more than its completions.
        match (error, self.table.get(index).map(|conn| &conn.phase)) {
            (Some(code), Some(Phase::Open(_) | Phase::Parting(_))) => {
                self.on_lost(index, Some(code));
            }
            _ => self.settle_end(index),
        }
    }

    /// A packet arrived.
    pub(crate) fn on_arrived(&mut self, index: usize, packet: Packet) {
        match self.table.get(index).map(|conn| &mut conn.phase) {
            Some(Phase::Open(_)) => self.on_open_packet(index, packet),
            Some(Phase::Dialing(dial)) => dial.early.push(packet),
            Some(Phase::Parting(_)) => self.on_parting_packet(index, packet),
            Some(Phase::Accepting(_)) => self.on_early_packet(index, packet),
            Some(Phase::Gone) | None => self.wires.stock.give_back(packet),
        }
    }

    fn on_parting_packet(&mut self, index: usize, packet: Packet) {
        let is_bye = is_bye(&packet);
        self.wires.stock.give_back(packet);
        if is_bye {
            self.entomb(index);
        }
    }

    fn on_open_packet(&mut self, index: usize, packet: Packet) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage == Stage::Closing {
            endpoint.peer_said_bye |= is_bye(&packet);
            return self.wires.stock.give_back(packet);
        }
        match admit(packet.slot.filled(), &mut endpoint.credit, endpoint.stage, &endpoint.peer) {
            Ok(kind) => self.on_packet(index, kind, packet),
            Err(why) => {
                self.wires.stock.give_back(packet);
                self.end(index, why, Some(Farewell::plain(Reason::Protocol)));
            }
        }
    }

    fn on_packet(&mut self, index: usize, kind: Kind, packet: Packet) {
        match kind {
            Kind::Part(part) => {
                if let Some(endpoint) = self.table.endpoint(index) {
                    endpoint.held.push_back((part, packet));
                }
            }
            Kind::Bye { reason, piece } => {
                self.wires.stock.give_back(packet);
                self.on_bye(index, reason, piece);
            }
            Kind::Grant => self.repost(index, packet, false),
            Kind::Remote(step @ (Step::Read { .. } | Step::Write { .. } | Step::Atomic { .. })) => {
                let served = self.on_request(index, step, &packet);
                self.repost(index, packet, false);
                if let Err((why, farewell)) = served {
                    return self.end(index, why, Some(farewell));
                }
            }
            Kind::Remote(step) => {
                let known = self.on_answer(index, step, &packet);
                self.repost(index, packet, false);
                if let Err(why) = known {
                    return self.end(index, why, Some(Farewell::plain(Reason::Protocol)));
                }
            }
        }
        if self.table.endpoint(index).is_some_and(|endpoint| endpoint.wants_to_send()) {
            self.table.mark_dirty(index);
        }
        self.serve(index);
    }

    fn on_bye(&mut self, index: usize, reason: Reason, piece: u32) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        endpoint.peer_said_bye = true;
        endpoint.stage = Stage::PeerEnded;
        endpoint.why = Some(status::goodbye(reason, &endpoint.peer));
        if reason == Reason::Access
            && let Some(op) = endpoint.works.op_of(piece)
        {
            let denied = Err(status::denied(&endpoint.peer));
            endpoint.finish(op, denied, &mut self.events);
        }
    }

    fn on_answer(&mut self, index: usize, step: Step, packet: &Packet) -> Result<(), Error> {
        let Some(endpoint) = self.table.endpoint(index) else { return Ok(()) };
        match endpoint.works.on_answer(step, body(packet)) {
            Some(landed) => {
                endpoint.on_landed(landed, &mut self.events);
                Ok(())
            }
            None => Err(status::violation(&endpoint.peer, &"an answer that nobody asked for")),
        }
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
                    return self.end(index, why, Some(Farewell::plain(reason)));
                }
            }
            if let Some((_, packet)) = endpoint.held.pop_front() {
                self.repost(index, packet, true);
            }
        }
        if self.table.endpoint(index).is_some_and(|ep| ep.stage == Stage::PeerEnded) {
            self.conclude(index);
        }
    }

    /// A packet was read: the provider may use it again, and if it took a place in the window, the
    /// peer may send another.
    fn repost(&mut self, index: usize, packet: Packet, is_credited: bool) {
        let Some(endpoint) = self.table.endpoint(index) else {
            return self.wires.stock.give_back(packet);
        };
        if endpoint.stage == Stage::PeerEnded {
            return self.wires.stock.give_back(packet);
        }
        let posted = self.wires.post_receive(&endpoint.link.endpoint, endpoint.id, packet);
        self.on_posted(index, posted, is_credited);
    }

    fn on_posted(&mut self, index: usize, posted: Result<(), (Packet, Code)>, is_credited: bool) {
        match posted {
            Ok(()) if is_credited => self.renew_credit(index),
            Ok(()) => {}
            Err((packet, Code::AGAIN)) => {
                match self.table.endpoint(index) {
                    Some(endpoint) => endpoint.unposted.push((packet, is_credited)),
                    None => self.wires.stock.give_back(packet),
                }
                self.table.mark_short(index);
            }
            Err((packet, code)) => {
                // Its completions say what became of the endpoint.
                tracing::debug!(%code, "a receive was not posted");
                self.wires.stock.give_back(packet);
            }
        }
    }

    /// Posts again what there was no room for.
    pub(crate) fn repost_left(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        for (packet, is_credited) in std::mem::take(&mut endpoint.unposted) {
            self.repost(index, packet, is_credited);
        }
    }

    fn renew_credit(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        endpoint.credit.on_used();
        endpoint.credit.top_up(endpoint.window);
        if endpoint.credit.owes(endpoint.window) {
            self.table.mark_dirty(index);
        }
    }
}

/// What stands behind the head.
fn body(packet: &Packet) -> &[u8] {
    packet.slot.filled().get(HEAD_BYTES..).unwrap_or_default()
}

fn is_bye(packet: &Packet) -> bool {
    let head = Head::decode(packet.slot.filled());
    head.is_some_and(|head| matches!(head.kind, Kind::Bye { .. }))
}

/// The body of a packet that is a message by itself and the next to be delivered, if there is a slot
/// for it. Only such a one is counted.
fn whole<'a>(endpoint: &mut Endpoint, packet: &'a [u8], recvs: &Recvs) -> Option<&'a [u8]> {
    let Head { kind: Kind::Part(Part::First { total }), granted } = Head::decode(packet)? else {
        return None;
    };
    let body = packet.get(HEAD_BYTES..)?;
    let is_next = endpoint.stage == Stage::Open
        && endpoint.held.is_empty()
        && endpoint.assembly.is_empty()
        && total as usize == body.len()
        && recvs.room().is_some_and(|room| body.len() <= room);
    // A breach is found once more, and ends the endpoint, where packets are taken in.
    (is_next && endpoint.credit.on_arrived(true, granted).is_ok()).then_some(body)
}
