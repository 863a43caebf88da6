//! DEALER: each message to one peer in turn, and the messages of all peers in turn.

use bytes::Bytes;
use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::round_robin::RoundRobin;
use msg_proto::types::SocketType;

use super::{Role, TwoWay, envelope, next_of_run, next_ready, why_none};
use crate::Message;
use crate::engine::inbox::{Incoming, Taken};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;

/// The end that asks and answers without waiting.
pub(crate) struct Dealer {
    rotation: RoundRobin<PeerId>,
    ready: FairQueue<PeerId>,
}

impl Dealer {
    pub(crate) fn new() -> Self {
        Self { rotation: RoundRobin::new(), ready: FairQueue::new() }
    }
}

impl TwoWay for Dealer {
    fn send(&mut self, net: &mut Net, message: Message) -> Result<(), (Message, Room)> {
        let size = message.len() as u64;
        let Some(peer) = self.rotation.next(|peer| net.room(peer, size) == Room::Yes) else {
            return Err((message, why_none(&self.rotation, net, size)));
        };
        net.counters.accepted += 1;
        let to = envelope::kind(net, peer);
        net.give(peer, envelope::outgoing(message, to));
        Ok(())
    }

    #[inline]
    fn send_at_once(&mut self, net: &mut Net, message: &Message) -> bool {
        let Some(peer) = self.rotation.peek() else { return false };
        let plain = envelope::kind(net, peer) != Some(SocketType::Rep);
        let done = plain && (net.append(&[peer], message) || net.append_to_queue(peer, message));
        if done {
            self.rotation.advance();
            net.counters.accepted += 1;
        }
        done
    }

    fn receive(&mut self, net: &mut Net) -> Option<Message> {
        let (peer, taken) = next_ready(&mut self.ready, net)?;
        net.remove_if_read(peer);
        Some(message_of(taken))
    }

    #[inline(always)]
    fn receive_at_once(&mut self, net: &mut Net) -> Option<Message> {
        next_of_run(&mut self.ready, net, |_, _| true).map(Message::single)
    }
}

/// The message as the application gets it: a reply has the envelope of its request before it.
fn message_of(taken: Taken) -> Message {
    match taken.tag {
        Some((_, envelope)) => envelope::join(envelope, taken.parts),
        None => Message::of(taken.parts),
    }
}

impl Role for Dealer {
    const TYPE: SocketType = SocketType::Dealer;
    const ONE_CONNECT_EACH: bool = true;

    fn has_incoming(&self) -> bool {
        !self.ready.is_empty()
    }

    fn has_room(&self, net: &Net) -> bool {
        self.rotation.any(|peer| net.room(peer, 1) == Room::Yes)
    }

    fn tagged(request: bool) -> Result<(), Fault> {
        if request { Err(Fault::Protocol) } else { Ok(()) }
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
        envelope::fit_queue(net, peer);
        net.probe(peer);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.rotation.remove(peer);
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
    }

    fn takes_runs(&self, net: &Net, peer: PeerId) -> bool {
        envelope::kind(net, peer) != Some(SocketType::Rep)
    }

    /// From a REP come replies, from all others messages.
    fn admits(&mut self, net: &mut Net, peer: PeerId, message: &Incoming) -> bool {
        match &message.tag {
            None => self.takes_runs(net, peer),
            Some((_, envelope)) => !self.takes_runs(net, peer) && envelope::is_valid(envelope),
        }
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }
}

impl Net {
    /// Lets a ROUTER know that this side is there, with an empty message before all others.
    pub(super) fn probe(&mut self, peer: PeerId) {
        if !self.options.probe_router || envelope::kind(self, peer) != Some(SocketType::Router) {
            return;
        }
        let behind = self.take_queue(peer);
        let probe = Message::single(Bytes::new());
        self.give(peer, envelope::outgoing(probe, None));
        for queued in behind.into_messages() {
            self.peer_mut(peer).queue.push(queued);
        }
    }
}
