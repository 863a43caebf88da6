//! ROUTER: the messages of all peers in turn, each with its peer's name, and each message to the peer
//! that is named.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::types::SocketType;

use super::{Role, envelope, next_of_run, next_ready};
use crate::engine::inbox::Incoming;
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::ids::IdMap;
use crate::monitor::PeerId;
use crate::options::{Notify, Options};
use crate::routing::{Asked, RoutingId};
use crate::{Message, MonitorEvent};

/// The routing end.
pub(crate) struct Router {
    /// Who can be reached. Peers choose names, so their hashes must not be foreseeable.
    routes: HashMap<Bytes, PeerId>,
    /// The names of peers, also of those whose last messages are still to be received.
    names: IdMap<PeerId, Named>,
    ready: FairQueue<PeerId>,
    /// The number in the next name made here.
    next: u64,
    /// The name of the peer that is being connected to.
    given: Option<Bytes>,
    mandatory: bool,
    handover: bool,
    notify: Notify,
    /// Names of peers that have come or gone, to be received before all else.
    notices: VecDeque<Bytes>,
    notices_max: usize,
    /// Peers that are gone, which is to be told behind their messages.
    parted: usize,
}

struct Named {
    name: Bytes,
    origin: Origin,
    kind: Option<SocketType>,
    presence: Presence,
}

/// What has been told, or is to be, of whether a peer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Away,
    There,
    /// It is gone; that is told behind its messages.
    Parted,
}

/// Who chose a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The peer.
    Peer,
    /// The application, for a peer that it connects to.
    Given,
    /// The router, for one connection.
    Made,
}

impl Router {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            routes: HashMap::new(),
            names: IdMap::default(),
            ready: FairQueue::new(),
            // Names of another router shall lead nowhere.
            next: fastrand::u64(..),
            given: None,
            mandatory: options.mandatory,
            handover: options.handover,
            notify: options.notify,
            notices: VecDeque::new(),
            notices_max: notices_max(options),
            parted: 0,
        }
    }

    /// Whether a peer has this name.
    pub(crate) fn knows(&self, name: &[u8]) -> bool {
        self.routes.contains_key(name)
    }

    /// Names the peer that is connected to next.
    pub(crate) fn name_next(&mut self, name: Option<Bytes>) {
        self.given = name;
    }

    /// The next message, if there is one, and from whom it is.
    pub(crate) fn receive(&mut self, net: &mut Net) -> Option<(RoutingId, Message)> {
        loop {
            if let Some(name) = self.notices.pop_front() {
                return Some((RoutingId { name, request: None }, Message::single(Bytes::new())));
            }
            let (peer, taken) = next_ready(&mut self.ready, net)?;
            let name = self.names.get(&peer).map(|named| named.name.clone());
            net.remove_if_read(peer);
            self.forget_if_gone(net, peer);
            // Nothing is kept of peers without a name.
            let Some(name) = name else { continue };
            let request = taken.tag.map(|(id, _)| Asked { epoch: taken.epoch, id });
            return Some((RoutingId { name, request }, Message::of(taken.parts)));
        }
    }

    /// As `receive`, if the next message is one of a run.
    #[inline]
    pub(crate) fn receive_at_once(&mut self, net: &mut Net) -> Option<(RoutingId, Message)> {
        if !self.notices.is_empty() {
            return None;
        }
        let name = &self.names.get(&self.ready.peek()?)?.name;
        let peer = self.ready.peek()?;
        let body = next_of_run(&mut self.ready, net, |_, _| true)?;
        let id = RoutingId { name: name.clone(), request: None };
        self.forget_if_gone(net, peer);
        Some((id, Message::single(body)))
    }

    fn forget_if_gone(&mut self, net: &Net, peer: PeerId) {
        if self.parted > 0 {
            self.tell_parted(net, peer);
        }
        if !net.peers.contains(peer.0 as usize) {
            self.forget(peer);
        }
    }

    fn forget(&mut self, peer: PeerId) {
        if let Some(named) = self.names.remove(&peer)
            && named.presence == Presence::Parted
        {
            self.parted -= 1;
            self.notices.push_back(named.name);
        }
    }

    /// The last message of a peer that is gone was received.
    #[cold]
    fn tell_parted(&mut self, net: &Net, peer: PeerId) {
        let unread = net.peers.get(peer.0 as usize).is_some_and(|entry| !entry.inbox.is_empty());
        if let Some(named) = self.names.get_mut(&peer).filter(|_| !unread)
            && named.presence == Presence::Parted
        {
            named.presence = Presence::Away;
            self.parted -= 1;
            self.notices.push_back(named.name.clone());
        }
    }

    /// A peer has come; that an earlier connection of it is gone is told first.
    fn tell_there(&mut self, peer: PeerId) {
        let Some(named) = self.names.get_mut(&peer) else { return };
        let before = std::mem::replace(&mut named.presence, Presence::There);
        if before == Presence::Parted {
            self.parted -= 1;
            self.notices.push_back(named.name.clone());
        }
        if self.notify.on_connect {
            self.notices.push_back(named.name.clone());
        }
    }

    /// A peer is gone.
    fn tell_gone(&mut self, peer: PeerId, unread: bool) {
        let Some(named) = self.names.get_mut(&peer) else { return };
        if named.presence != Presence::There {
            return;
        }
        named.presence = Presence::Away;
        if self.notify.on_disconnect && unread {
            named.presence = Presence::Parted;
            self.parted += 1;
        } else if self.notify.on_disconnect {
            self.notices.push_back(named.name.clone());
        }
    }

    /// Gives the message to the peer that is named. If there is none, or it has no room, the message
    /// is dropped and counted, or handed back where sending is mandatory.
    pub(crate) fn send_to(
        &mut self,
        net: &mut Net,
        to: &RoutingId,
        message: Message,
    ) -> Result<(), (Message, Room)> {
        let (room, way) = self.way(net, to, message.len() as u64);
        if room == Room::TooLong || (self.mandatory && room != Room::Yes) {
            return Err((message, room));
        }
        net.counters.accepted += 1;
        match way {
            Some((peer, head)) if room == Room::Yes => {
                net.give(peer, Outgoing::new(message, head));
            }
            Some((peer, _)) => {
                net.count_dropped(peer, 1);
                net.tell_undelivered(to, "its peer has no room");
            }
            None => {
                net.counters.dropped += 1;
                net.tell_undelivered(to, "no peer has that name, or none such request");
            }
        }
        Ok(())
    }

    /// As `send_to`, for the plain case: the message joins others on their way. If that is not in
    /// order, nothing happened.
    #[inline]
    pub(crate) fn send_at_once(
        &mut self,
        net: &mut Net,
        to: &RoutingId,
        message: &Message,
    ) -> bool {
        let Some((peer, Head::None)) = self.route(net, to) else { return false };
        let done = net.append(&[peer], message) || net.append_to_queue(peer, message);
        net.counters.accepted += u64::from(done);
        done
    }

    /// Whether a message of `size` bytes would reach its peer, and by which way.
    pub(crate) fn way(
        &self,
        net: &Net,
        to: &RoutingId,
        size: u64,
    ) -> (Room, Option<(PeerId, Head)>) {
        let Some((peer, head)) = self.route(net, to) else { return (Room::Nobody, None) };
        let room = match net.room(peer, size) {
            Room::Down => Room::Nobody,
            room => room,
        };
        (room, Some((peer, head)))
    }

    /// The peer that is named. A REQ is only told what it asked for, over the connection it asked.
    fn route(&self, net: &Net, to: &RoutingId) -> Option<(PeerId, Head)> {
        let peer = *self.routes.get(&to.name)?;
        let asks = envelope::kind(net, peer) == Some(SocketType::Req);
        match to.request {
            None => (!asks).then_some((peer, Head::None)),
            Some(Asked { epoch, id }) => (asks && net.peer(peer).epoch == epoch)
                .then_some((peer, Head::Reply { id, envelope: Bytes::new() })),
        }
    }

    /// The name that a peer comes with, and who chose it.
    fn name_for(&mut self, identity: &Bytes) -> (Bytes, Origin) {
        if !identity.is_empty() {
            return (identity.clone(), Origin::Peer);
        }
        self.next = self.next.wrapping_add(1);
        (RoutingId::made(self.next), Origin::Made)
    }

    /// Nothing is sent to the peer any more.
    fn close_route(&mut self, net: &mut Net, peer: PeerId) {
        let Some(named) = self.names.get(&peer) else { return };
        if self.routes.get(&named.name) == Some(&peer) {
            self.routes.remove(&named.name);
        }
        net.drop_queue(peer);
    }

    /// Makes way for a peer with a name that is taken; false if it is not to have it.
    fn make_way(&mut self, net: &mut Net, name: &Bytes) -> bool {
        let Some(&holder) = self.routes.get(name) else { return true };
        if self.handover {
            // Its successor is told of next.
            self.tell_gone(holder, false);
            self.close_route(net, holder);
            net.refuse(holder, Fault::Replaced);
        }
        self.handover
    }
}

impl Role for Router {
    const TYPE: SocketType = SocketType::Router;

    fn has_incoming(&self) -> bool {
        !self.ready.is_empty() || !self.notices.is_empty()
    }

    fn has_room(&self, net: &Net) -> bool {
        !self.mandatory || self.routes.values().any(|&peer| net.room(peer, 1) == Room::Yes)
    }

    fn turns_away(&self) -> Option<Fault> {
        (self.notices.len() >= self.notices_max).then_some(Fault::Limit)
    }

    fn tagged(request: bool) -> Result<(), Fault> {
        if request { Ok(()) } else { Err(Fault::Protocol) }
    }

    fn configure(&mut self, options: &Options) {
        self.mandatory = options.mandatory;
        self.handover = options.handover;
        self.notify = options.notify;
        self.notices_max = notices_max(options);
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        let Some(name) = self.given.take() else { return };
        self.routes.insert(name.clone(), peer);
        let presence = Presence::Away;
        self.names.insert(peer, Named { name, origin: Origin::Given, kind: None, presence });
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        let kind = envelope::kind(net, peer);
        let identity = net.peer(peer).identity.clone();
        let stays = |named: &&mut Named| named.origin == Origin::Given || named.name == identity;
        if let Some(named) = self.names.get_mut(&peer).filter(stays) {
            named.kind = kind;
        } else {
            self.close_route(net, peer);
            self.forget(peer);
            let (name, origin) = self.name_for(&identity);
            if !self.make_way(net, &name) {
                return net.refuse(peer, Fault::Identity);
            }
            self.routes.insert(name.clone(), peer);
            let presence = Presence::Away;
            self.names.insert(peer, Named { name, origin, kind, presence });
        }
        self.tell_there(peer);
        net.probe(peer);
    }

    /// A peer that this side connects to keeps the name that was chosen for it, and its queue; what
    /// answers a request goes with the connection.
    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        self.tell_gone(peer, !net.peer(peer).inbox.is_empty());
        let Some(named) = self.names.get(&peer) else { return };
        let made = named.origin == Origin::Made;
        if last || made || named.kind == Some(SocketType::Req) {
            // What is queued for a peer that is being left still leaves.
            let leaving = net.peer(peer).leaving.is_some();
            let name = named.name.clone();
            if self.routes.get(&name) == Some(&peer) {
                self.routes.remove(&name);
            }
            if !leaving {
                net.drop_queue(peer);
            }
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
            self.forget(peer);
        }
    }

    fn takes_runs(&self, net: &Net, peer: PeerId) -> bool {
        envelope::kind(net, peer) != Some(SocketType::Req) && self.names.contains_key(&peer)
    }

    /// From a REQ come requests, from all others messages.
    fn admits(&mut self, net: &mut Net, peer: PeerId, message: &Incoming) -> bool {
        let asks = envelope::kind(net, peer) == Some(SocketType::Req);
        let request = message.tag.as_ref().is_some_and(|(_, envelope)| envelope.is_empty());
        asks == message.tag.is_some() && asks == request && self.names.contains_key(&peer)
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }
}

/// Notices that may wait before no more peers may come: two for each that may be there.
fn notices_max(options: &Options) -> usize {
    options.peers_max.saturating_mul(2).saturating_add(1)
}

impl Net {
    #[cold]
    fn tell_undelivered(&mut self, to: &RoutingId, why: &'static str) {
        self.tell(&MonitorEvent::Undelivered { name: to.name.clone(), why });
    }
}
