//! REP: requests of all peers in turn, and each reply back to its asker.

use bytes::Bytes;
use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::replies::{Replies, Ticket};
use msg_proto::types::SocketType;

use super::{Role, next_ready};
use crate::Message;
use crate::engine::inbox::{Incoming, Tag};
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::ids::IdMap;
use crate::monitor::PeerId;

/// The answering end.
pub(crate) struct Replier {
    /// Goes before all others.
    first: Option<First>,
    ready: FairQueue<PeerId>,
    replies: Replies<PeerId>,
    envelopes: IdMap<Ticket, Bytes>,
}

/// A request that came when no other waited.
struct First {
    peer: PeerId,
    tag: Tag,
    body: Bytes,
}

impl Replier {
    pub(crate) fn new() -> Self {
        Self {
            first: None,
            ready: FairQueue::new(),
            replies: Replies::new(),
            envelopes: IdMap::default(),
        }
    }

    /// The next request, if there is one.
    pub(crate) fn receive(&mut self, net: &mut Net) -> Option<(Message, Ticket)> {
        self.receive_first(net).or_else(|| self.receive_ready(net))
    }

    fn receive_first(&mut self, net: &mut Net) -> Option<(Message, Ticket)> {
        let First { peer, tag, body } = self.first.take()?;
        if !net.peer(peer).is_up() {
            net.discard(peer, body.len() as u64);
            return None;
        }
        net.on_delivered(peer, net.peer(peer).epoch, body.len() as u64);
        self.ready.served(peer);
        Some((body.into(), self.accept(peer, tag)))
    }

    fn receive_ready(&mut self, net: &mut Net) -> Option<(Message, Ticket)> {
        loop {
            let (peer, message) = next_ready(&mut self.ready, net)?;
            // Nobody would get the reply, or another one under the same id.
            let gone = !net.peer(peer).is_up() || net.peer(peer).epoch != message.epoch;
            net.remove_if_read(peer);
            let Some(tag) = message.tag else { continue };
            if gone {
                net.counters.discarded += 1;
                net.counters.delivered -= 1;
                continue;
            }
            return Some((Message::of(message.parts), self.accept(peer, tag)));
        }
    }

    fn accept(&mut self, peer: PeerId, (id, envelope): Tag) -> Ticket {
        let ticket = self.replies.on_request(peer, id);
        if !envelope.is_empty() {
            self.envelopes.insert(ticket, envelope);
        }
        ticket
    }

    /// Answers. A reply whose asker is gone or has no room is dropped and counted (REP-05, REP-06);
    /// one that is too long for its asker is handed back, so that a shorter one can take its place.
    pub(crate) fn reply(
        &mut self,
        net: &mut Net,
        ticket: Ticket,
        message: Message,
    ) -> Result<(), (Message, Room)> {
        let asker = self.replies.asker(ticket);
        let room = asker.map_or(Room::Down, |peer| net.room(peer, message.len() as u64));
        if room == Room::TooLong {
            return Err((message, room));
        }
        net.counters.accepted += 1;
        let envelope = self.take_envelope(ticket);
        match self.replies.reply(ticket) {
            Some((peer, id)) if room == Room::Yes => {
                net.give_alone(peer, Outgoing::new(message, Head::Reply { id, envelope }));
            }
            Some((peer, _)) => net.count_dropped(peer, 1),
            None => net.counters.dropped += 1,
        }
        Ok(())
    }

    /// Only requests that came by way of others have one.
    fn take_envelope(&mut self, ticket: Ticket) -> Bytes {
        if self.envelopes.is_empty() {
            return Bytes::new();
        }
        self.envelopes.remove(&ticket).unwrap_or_default()
    }

    /// A request will not be answered.
    pub(crate) fn abandon(&mut self, ticket: Ticket) {
        self.envelopes.remove(&ticket);
        self.replies.abandon(ticket);
    }
}

impl Role for Replier {
    const TYPE: SocketType = SocketType::Rep;
    const NEEDS_TAG: bool = true;
    const GATHERS: bool = false;

    fn has_incoming(&self) -> bool {
        self.first.is_some() || !self.ready.is_empty()
    }

    fn tagged(request: bool) -> Result<(), Fault> {
        if request { Ok(()) } else { Err(Fault::Protocol) }
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        self.replies.on_gone(peer);
        if self.first.take_if(|first| first.peer == peer).is_some() {
            net.counters.discarded += 1;
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
    }

    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        true
    }

    fn goes_first(&self, net: &Net, peer: PeerId, _id: u64) -> bool {
        self.first.is_none() && self.ready.is_empty() && net.peer(peer).inbox.is_empty()
    }

    fn on_first(&mut self, _net: &mut Net, peer: PeerId, tag: Tag, body: Bytes) {
        self.first = Some(First { peer, tag, body });
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }
}
