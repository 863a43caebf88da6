//! What happens in a poll: packets arrive.

use fabric_core::{EpId, Error, ErrorKind, Event, OpId, Slot};

use crate::Bug;
use crate::endpoint::At;
use crate::net::Net;
use crate::packet::{Packet, Side};

impl Net {
    /// One turn of a domain.
    pub(crate) fn progress(&mut self, dom: u64) {
        if let Some(state) = self.doms.get_mut(&dom) {
            state.polls += 1;
        }
        self.flush(dom);
        self.answer_syns(dom);
        self.expire_dialing(dom);
        for ep in self.busy_in_any_order(dom) {
            self.deliver(At { dom, ep });
        }
        self.deliver_datagrams(dom);
    }

    /// Appends up to `max` events.
    pub(crate) fn take_events(&mut self, dom: u64, events: &mut Vec<Event>, max: usize) -> usize {
        let max = if self.has(Bug::PollExceedsMax) { max + 1 } else { max };
        let Some(state) = self.doms.get_mut(&dom) else { return 0 };
        let count = max.min(state.ready.len());
        events.extend(state.ready.drain(..count));
        count
    }

    /// A fabric promises no order between endpoints, so nobody may get used to one.
    fn busy_in_any_order(&mut self, dom: u64) -> Vec<EpId> {
        let Some(state) = self.doms.get(&dom) else { return Vec::new() };
        let mut busy: Vec<EpId> = state.busy.iter().copied().collect();
        self.rng.shuffle(&mut busy);
        busy
    }

    fn deliver(&mut self, at: At) {
        while let Some(side) = self.next_side(at) {
            self.on_side(at, side);
        }
        while let Some(packet) = self.next_packet(at) {
            self.on_packet(at, packet);
        }
        // What was taken made room for what waits at the sender.
        if let Some(peer) = self.ep(at).and_then(|ep| ep.peer) {
            self.hand_over(peer);
        }
        self.settle(at);
    }

    fn settle(&mut self, at: At) {
        let Some(dom) = self.doms.get_mut(&at.dom) else { return };
        if dom.eps.get(&at.ep).is_none_or(|ep| ep.is_quiet()) {
            dom.busy.remove(&at.ep);
        }
    }

    fn next_side(&mut self, at: At) -> Option<Side> {
        let (due, _) = self.ep(at)?.side.front()?;
        if !self.is_due(at.dom, *due) || self.is_cut_off(at) {
            return None;
        }
        self.ep_mut(at)?.side.pop_front().map(|(_, side)| side)
    }

    fn next_packet(&mut self, at: At) -> Option<Packet> {
        let (due, packet) = self.ep(at)?.inbox.front()?;
        let waits = packet.needs_recv() && !self.has_recv(at.dom) && !self.has(Bug::LosesWaiting);
        if waits || !self.is_due(at.dom, *due) || self.is_cut_off(at) {
            return None;
        }
        self.ep_mut(at)?.inbox.pop_front().map(|(_, packet)| packet)
    }

    /// Whether a partition stands between the endpoint and its peer.
    pub(crate) fn is_cut_off(&self, at: At) -> bool {
        let peer = self.ep(at).and_then(|ep| ep.peer);
        peer.is_some_and(|peer| self.cut.contains(&(peer.dom, at.dom)))
    }

    pub(crate) fn has_recv(&self, dom: u64) -> bool {
        self.doms.get(&dom).is_some_and(|dom| !dom.recvs.is_empty())
    }

    fn on_side(&mut self, at: At, side: Side) {
        match side {
            Side::Ask(op, ask) => self.on_ask(at, op, &ask),
            Side::Answer(op, answer) => self.on_answer(at, op, &answer),
        }
    }

    fn on_packet(&mut self, at: At, packet: Packet) {
        if self.strikes(self.options.faults.broken_per_mille) {
            self.break_link(at);
        } else if self.strikes(self.options.faults.deaths_per_mille) {
            drop(self.kill(at.dom));
        } else {
            self.take_packet(at, packet);
        }
    }

    fn take_packet(&mut self, at: At, packet: Packet) {
        match packet {
            Packet::Hello => self.on_hello(at),
            Packet::Message(bytes) => self.on_message(at, &bytes),
            Packet::Imm { op, imm } => self.on_imm(at, op, imm),
            Packet::Bye(kind, why) => self.finish(at, Error::new(kind, why)),
        }
    }

    fn on_hello(&mut self, at: At) {
        let Some(ep) = self.ep_mut(at) else { return };
        ep.open = true;
        let peer = ep.peer_addr.clone();
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.dialing.remove(&at.ep);
            dom.report(Event::Connected { ep: at.ep, peer });
        }
    }

    fn on_message(&mut self, at: At, bytes: &[u8]) {
        let Some((op, mut slot)) = self.take_recv(at.dom) else { return };
        let fits = bytes.len().min(slot.capacity());
        if fits < bytes.len() && !self.has(Bug::TruncatesLong) {
            self.refuse_long(at, op, slot);
            return;
        }
        slot.buffer_mut()[..fits].copy_from_slice(&bytes[..fits]);
        slot.set_len(fits);
        let ep = self.blamed_ep(at);
        self.report(at.dom, Event::Received { ep, op, slot, imm: None });
    }

    pub(crate) fn take_recv(&mut self, dom: u64) -> Option<(OpId, Slot)> {
        self.doms.get_mut(&dom)?.recvs.pop_front()
    }

    /// The receive stays posted: it was not its fault.
    fn refuse_long(&mut self, at: At, op: OpId, slot: Slot) {
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.recvs.push_front((op, slot));
        }
        self.fail(at, ErrorKind::NoReceive, "a message was longer than the receive posted for it");
    }

    fn blamed_ep(&self, at: At) -> EpId {
        let first = self.doms.get(&at.dom).and_then(|dom| dom.eps.keys().next().copied());
        first.filter(|_| self.has(Bug::CrossesEndpoints)).unwrap_or(at.ep)
    }
}
