//! What each pattern does with peers and messages. The engine calls these; sockets command them.

use bytes::Bytes;
use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::link::PeerInfo;
use msg_proto::round_robin::RoundRobin;
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;
use std::time::Duration;

use crate::Message;
use crate::engine::inbound::AfterRun;
use crate::engine::inbox::{Incoming, Run, Tag, Taken};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::Options;

pub(crate) mod dealer;
mod envelope;
mod held;
pub(crate) mod pair;
pub(crate) mod publisher;
pub(crate) mod puller;
pub(crate) mod pusher;
pub(crate) mod replier;
pub(crate) mod requester;
pub(crate) mod router;
mod seen;
pub(crate) mod subscriber;
pub(crate) mod xpublisher;
pub(crate) mod xsubscriber;

/// One pattern's end.
pub(crate) trait Role: Send + 'static {
    /// The type told to peers.
    const TYPE: SocketType;
    /// Whether each message comes behind a REQUEST or REPLY frame.
    const NEEDS_TAG: bool = false;
    /// Whether a second `connect` to the same address is ignored (GEN-33).
    const ONE_CONNECT_EACH: bool = false;
    /// Whether messages of a burst wait for each other. Requests and replies have nothing to wait
    /// for: the other side does.
    const GATHERS: bool = true;

    /// Whether a REQUEST (or else a REPLY) frame may come here.
    fn tagged(_request: bool) -> Result<(), Fault> {
        Err(Fault::Protocol)
    }

    /// The settings were changed, before the first address was used.
    fn configure(&mut self, _options: &Options) {}
    /// Why a peer that comes now is turned away before it is greeted.
    fn turns_away(&self) -> Option<Fault> {
        None
    }
    /// A peer that this side connects to exists, connected or not.
    fn on_attach(&mut self, _net: &mut Net, _peer: PeerId) {}
    /// Messages may flow.
    fn on_up(&mut self, _net: &mut Net, _peer: PeerId) {}
    /// The connection ended. `last`: so did the peer.
    fn on_gone(&mut self, _net: &mut Net, _peer: PeerId, _last: bool) {}
    /// Another message could be given to the peer now.
    fn on_writable(&mut self, _net: &mut Net, _peer: PeerId) {}
    /// A frame of this pattern came.
    fn on_frame(&mut self, _net: &mut Net, _peer: PeerId, _frame: &Frame<'_>) -> Result<(), Fault> {
        Err(Fault::Protocol)
    }
    /// Whether messages of one part without tag may be kept as they come from the peer.
    #[inline]
    fn takes_runs(&self, _net: &Net, _peer: PeerId) -> bool {
        !Self::NEEDS_TAG
    }
    /// Whether a message is kept.
    fn admits(&mut self, net: &mut Net, peer: PeerId, message: &Incoming) -> bool;
    /// Whether a message of one part without tag is kept, told only its bytes. If not, it is asked
    /// again by `admits`.
    fn admits_lone(&self, _body: &[u8]) -> bool {
        false
    }
    /// Whether the message that comes from `peer` behind this tag need not stand in line.
    fn goes_first(&self, _net: &Net, _peer: PeerId, _id: u64) -> bool {
        false
    }
    /// A message that need not; `body` is its only part. It is to be told when it is delivered.
    fn on_first(&mut self, _net: &mut Net, _peer: PeerId, _tag: Tag, _body: Bytes) {}
    /// The oldest message of the peer is whole.
    fn on_ready(&mut self, _net: &mut Net, _peer: PeerId) {}
    /// Deadlines up to `now` are due.
    fn on_timeout(&mut self, _net: &mut Net, _now: Duration) {}
    /// Whether there is something to receive.
    fn has_incoming(&self) -> bool {
        false
    }
    /// Whether a small message could be sent.
    fn has_room(&self, _net: &Net) -> bool {
        true
    }
    /// Whether it is known what became of a request.
    fn has_result(&self, _id: u64) -> bool {
        true
    }
    /// When the next deadline is due.
    fn poll_timeout(&self) -> Option<Duration> {
        None
    }
    /// Called before a driver sleeps or leaves: what was put off is sent now.
    fn on_idle(&mut self, _net: &mut Net) {}
    /// Whether `close` still has something to wait for.
    fn is_pending(&self) -> bool {
        false
    }
    /// The socket ends: what is left here is dropped and counted.
    fn on_end(&mut self, _net: &mut Net) {}
}

/// An end that sends and receives freely.
pub(crate) trait TwoWay: Role {
    /// Takes the message, or hands it back.
    fn send(&mut self, net: &mut Net, message: Message) -> Result<(), (Message, Room)>;
    /// As `send`, for the plain case: the message joins others on their way. If that is not in
    /// order, nothing happened.
    fn send_at_once(&mut self, net: &mut Net, message: &Message) -> bool;
    /// The next message, if there is one.
    fn receive(&mut self, net: &mut Net) -> Option<Message>;
    /// As `receive`, if the next message is one of a run.
    fn receive_at_once(&mut self, net: &mut Net) -> Option<Message>;
}

/// Why none of the peers takes a message of `size` bytes: waiting helps if one is only full.
pub(crate) fn why_none(rotation: &RoundRobin<PeerId>, net: &Net, size: u64) -> Room {
    for room in [Room::Full, Room::TooLong] {
        if rotation.any(|peer| net.room(peer, size) == room) {
            return room;
        }
    }
    Room::Down
}

/// The next message in turn, if it is one of a run and nothing but counting is to be done for it.
/// If not, nothing happened.
#[inline(always)]
pub(crate) fn next_of_run(
    ready: &mut FairQueue<PeerId>,
    net: &mut Net,
    may: impl FnOnce(Option<&PeerInfo>, &Run) -> bool,
) -> Option<Bytes> {
    let peer = ready.peek()?;
    let (body, next) = net.take_of_run(peer, may)?;
    ready.advance();
    if next != AfterRun::Nothing {
        after_run(ready, net, peer, next);
    }
    Some(body)
}

/// What a message that was taken out of a run brings about.
#[cold]
fn after_run(ready: &mut FairQueue<PeerId>, net: &mut Net, peer: PeerId, next: AfterRun) {
    if next == AfterRun::Credit {
        net.send_credit(peer);
    }
    if !net.peer(peer).is_ready() {
        ready.idle(peer);
        net.remove_if_read(peer);
    }
}

/// The next whole message in turn. Peers without one leave the rotation.
pub(crate) fn next_ready(ready: &mut FairQueue<PeerId>, net: &mut Net) -> Option<(PeerId, Taken)> {
    while let Some(peer) = ready.next() {
        if !net.peers.contains(peer.0 as usize) {
            ready.remove(peer);
            continue;
        }
        let Some(message) = net.take(peer) else {
            ready.idle(peer);
            continue;
        };
        if !net.peer(peer).is_ready() {
            ready.idle(peer);
        }
        return Some((peer, message));
    }
    None
}
