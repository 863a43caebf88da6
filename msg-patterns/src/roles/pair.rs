//! PAIR: all messages to and from one peer.

use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::types::SocketType;

use super::{Role, TwoWay, next_of_run, next_ready};
use crate::Message;
use crate::engine::inbox::Incoming;
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;

/// One of two ends.
pub(crate) struct Pair {
    /// The peer, there or being connected to.
    peer: Option<PeerId>,
    /// Peers with messages to be received: this one, and those before it.
    ready: FairQueue<PeerId>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self { peer: None, ready: FairQueue::new() }
    }

    fn is_other(&self, peer: PeerId) -> bool {
        self.peer.is_some_and(|own| own != peer)
    }
}

impl TwoWay for Pair {
    fn send(&mut self, net: &mut Net, message: Message) -> Result<(), (Message, Room)> {
        let Some(peer) = self.peer else { return Err((message, Room::Down)) };
        match net.room(peer, message.len() as u64) {
            Room::Yes => {
                net.counters.accepted += 1;
                net.give(peer, Outgoing::new(message, Head::None));
                Ok(())
            }
            room => Err((message, room)),
        }
    }

    #[inline]
    fn send_at_once(&mut self, net: &mut Net, message: &Message) -> bool {
        let Some(peer) = self.peer else { return false };
        let done = net.append(&[peer], message) || net.append_to_queue(peer, message);
        net.counters.accepted += u64::from(done);
        done
    }

    fn receive(&mut self, net: &mut Net) -> Option<Message> {
        let (peer, taken) = next_ready(&mut self.ready, net)?;
        net.remove_if_read(peer);
        Some(Message::of(taken.parts))
    }

    #[inline(always)]
    fn receive_at_once(&mut self, net: &mut Net) -> Option<Message> {
        next_of_run(&mut self.ready, net, |_, _| true).map(Message::single)
    }
}

impl Role for Pair {
    const TYPE: SocketType = SocketType::Pair;

    fn has_incoming(&self) -> bool {
        !self.ready.is_empty()
    }

    fn has_room(&self, net: &Net) -> bool {
        self.peer.is_some_and(|peer| net.room(peer, 1) == Room::Yes)
    }

    fn turns_away(&self) -> Option<Fault> {
        self.peer.map(|_| Fault::Occupied)
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.peer.get_or_insert(peer);
    }

    /// Another peer may have come first while this one was greeted.
    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        if *self.peer.get_or_insert(peer) != peer {
            net.refuse(peer, Fault::Occupied);
        }
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last && self.peer == Some(peer) {
            self.peer = None;
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
    }

    fn takes_runs(&self, _net: &Net, peer: PeerId) -> bool {
        !self.is_other(peer)
    }

    fn admits(&mut self, _net: &mut Net, peer: PeerId, _message: &Incoming) -> bool {
        !self.is_other(peer)
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }
}
