//! PUSH: each message to one peer, in turn.

use std::collections::{HashMap, VecDeque};

use msg_proto::fault::Fault;
use msg_proto::ledger::{Ledger, MsgId};
use msg_proto::round_robin::RoundRobin;
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::{Role, why_none};
use crate::Message;
use crate::engine::inbox::Incoming;
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::Options;

/// The pushing end.
pub(crate) struct Pusher {
    rotation: RoundRobin<PeerId>,
    acknowledge: bool,
    ledger: Ledger<PeerId>,
    /// What no peer has acknowledged yet.
    kept: HashMap<MsgId, Message>,
    /// What a peer that left did not acknowledge, to be given to another one.
    again: VecDeque<MsgId>,
    next: u64,
    scratch: Vec<MsgId>,
}

impl Pusher {
    pub(crate) fn new(acknowledge: bool) -> Self {
        Self {
            rotation: RoundRobin::new(),
            acknowledge,
            ledger: Ledger::new(),
            kept: HashMap::new(),
            again: VecDeque::new(),
            next: 0,
            scratch: Vec::new(),
        }
    }

    /// Gives the message to the next peer with room, or hands it back.
    pub(crate) fn push(&mut self, net: &mut Net, message: Message) -> Result<(), (Message, Room)> {
        self.redeliver(net);
        if !self.again.is_empty() {
            let room = if self.rotation.is_empty() { Room::Down } else { Room::Full };
            return Err((message, room));
        }
        let Some(peer) = self.pick(net, message.len() as u64) else {
            let room = why_none(&self.rotation, net, message.len() as u64);
            return Err((message, room));
        };
        net.counters.accepted += 1;
        if self.acknowledge {
            self.keep(net, peer, message);
        } else {
            net.give(peer, Outgoing::new(message, Head::None));
        }
        Ok(())
    }

    /// As `push`, for the plain case: the message joins others on their way. If that is not in
    /// order, nothing happened.
    #[inline]
    pub(crate) fn push_at_once(&mut self, net: &mut Net, message: &Message) -> bool {
        let Some(peer) = self.rotation.peek() else { return false };
        let plain = !self.acknowledge && self.again.is_empty();
        let done = plain && (net.append(&[peer], message) || net.append_to_queue(peer, message));
        if done {
            self.rotation.advance();
            net.counters.accepted += 1;
        }
        done
    }

    fn pick(&mut self, net: &Net, size: u64) -> Option<PeerId> {
        self.rotation.next(|peer| net.room(peer, size) == Room::Yes)
    }

    fn keep(&mut self, net: &mut Net, peer: PeerId, message: Message) {
        let id = MsgId(self.next);
        self.next += 1;
        self.kept.insert(id, message.clone());
        self.ledger.on_sent(peer, id);
        net.give(peer, Outgoing::new(message, Head::None));
    }

    /// Gives what came back to other peers, as far as they have room.
    fn redeliver(&mut self, net: &mut Net) {
        while let Some(id) = self.again.front().copied() {
            let Some(message) = self.kept.get(&id).cloned() else {
                self.again.pop_front();
                continue;
            };
            let size = message.len() as u64;
            let Some(peer) = self.pick(net, size) else {
                if why_none(&self.rotation, net, size) != Room::TooLong {
                    return;
                }
                // No peer will ever take it, and others wait behind it.
                self.again.pop_front();
                self.kept.remove(&id);
                net.counters.dropped += 1;
                continue;
            };
            self.again.pop_front();
            self.ledger.on_sent(peer, id);
            net.give(peer, Outgoing::new(message, Head::None));
        }
    }

    fn on_ack(&mut self, peer: PeerId, count: u64) -> Result<(), Fault> {
        let mut acked = std::mem::take(&mut self.scratch);
        let found = self.ledger.on_ack(peer, count, &mut acked);
        for id in acked.drain(..) {
            self.kept.remove(&id);
        }
        self.scratch = acked;
        found.map(drop).map_err(|_| Fault::Protocol)
    }

    /// Takes back what was given to a peer and not acknowledged, to give it out anew, the oldest
    /// first; says how many messages that is.
    fn take_back(&mut self, net: &mut Net, peer: PeerId) -> u64 {
        net.take_queue(peer);
        let mut lost = std::mem::take(&mut self.scratch);
        self.ledger.on_gone(peer, &mut lost);
        let count = lost.len() as u64;
        for id in lost.drain(..).rev() {
            self.again.push_front(id);
        }
        self.scratch = lost;
        count
    }
}

impl Role for Pusher {
    const TYPE: SocketType = SocketType::Push;

    fn has_room(&self, net: &Net) -> bool {
        self.again.is_empty() && self.rotation.any(|peer| net.room(peer, 1) == Room::Yes)
    }

    fn configure(&mut self, options: &Options) {
        self.acknowledge = options.acknowledge;
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
        if self.acknowledge {
            // What was queued before its limit was known may be too long for it.
            self.take_back(net, peer);
            self.redeliver(net);
        }
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.rotation.remove(peer);
        }
        if self.acknowledge {
            net.counters.redelivered += self.take_back(net, peer);
            self.redeliver(net);
        }
    }

    fn on_writable(&mut self, net: &mut Net, _peer: PeerId) {
        self.redeliver(net);
    }

    fn on_frame(&mut self, _net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        match *frame {
            Frame::Ack { count } if self.acknowledge => self.on_ack(peer, count),
            _ => Err(Fault::Protocol),
        }
    }

    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        false
    }

    fn is_pending(&self) -> bool {
        self.ledger.total() > 0 || !self.again.is_empty()
    }
}
