//! REQ: each request to one peer in turn, and its reply back to whoever asked.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use msg_proto::fault::Fault;
use msg_proto::requests::{Lost, Reply, RequestId, Requests};
use msg_proto::round_robin::RoundRobin;
use msg_proto::types::SocketType;

use super::{Role, why_none};
use crate::engine::inbox::{Incoming, Tag};
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::ids::IdMap;
use crate::monitor::PeerId;
use crate::options::Options;
use crate::{Error, ErrorKind, Message};

/// The asking end.
pub(crate) struct Requester {
    requests: Requests<PeerId>,
    rotation: RoundRobin<PeerId>,
    retry: bool,
    /// With `retry`: requests that may have to be sent again.
    kept: IdMap<RequestId, Message>,
    waiting: Waiting,
    results: Results,
    scratch: Vec<(RequestId, Lost)>,
}

impl Requester {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            requests: Requests::new(options.resend_after),
            rotation: RoundRobin::new(),
            retry: options.retry || options.resend_after.is_some(),
            kept: IdMap::default(),
            waiting: Waiting::default(),
            results: Results::default(),
            scratch: Vec::new(),
        }
    }

    /// Sends a request to the next peer with room, keeps it for the first of those being connected
    /// to, or hands it back.
    pub(crate) fn request(
        &mut self,
        net: &mut Net,
        message: Message,
    ) -> Result<RequestId, (Message, Room)> {
        let peer = self.pick(net, &message, None);
        if peer.is_none() {
            let room = self.room_to_wait(net, message.len() as u64);
            if room != Room::Yes {
                return Err((message, room));
            }
        }
        net.counters.accepted += 1;
        // Which of them may go to another peer is decided when one is lost. Who waits for the reply
        // knows for how long.
        let id = self.requests.start(None, true);
        if self.retry {
            self.kept.insert(id, message.clone());
        }
        match peer {
            Some(peer) => self.assign(net, id, peer, message),
            None => self.waiting.push(id, message),
        }
        Ok(id)
    }

    /// The next connected peer with room, if possible another one than `not`.
    fn pick(&mut self, net: &Net, message: &Message, not: Option<PeerId>) -> Option<PeerId> {
        let size = message.len() as u64;
        let fits = |peer| net.peer(peer).is_up() && net.room(peer, size) == Room::Yes;
        self.rotation
            .next(|peer| Some(peer) != not && fits(peer))
            .or_else(|| self.rotation.next(fits))
    }

    /// Whether a request can wait for a peer that is being connected to. Bound to one of them it
    /// would be stuck should another one come first.
    fn room_to_wait(&self, net: &Net, size: u64) -> Room {
        if !self.rotation.any(|peer| net.room(peer, size) == Room::Yes) {
            return why_none(&self.rotation, net, size);
        }
        if self.waiting.fits(&net.options, size) { Room::Yes } else { Room::Full }
    }

    fn assign(&mut self, net: &mut Net, id: RequestId, peer: PeerId, message: Message) {
        let now = if self.requests.resends() { net.now() } else { Duration::ZERO };
        self.requests.assign(id, peer, now);
        net.give_alone(
            peer,
            Outgoing::new(message, Head::Request { id: id.0, envelope: Bytes::new() }),
        );
    }

    /// What became of a request, if anything has.
    pub(crate) fn take_result(&mut self, id: RequestId) -> Option<Outcome> {
        let cancelled = || Err(Error::new(ErrorKind::State, "another request took its place"));
        self.results.remove(id).or_else(|| (!self.requests.is_open(id)).then(cancelled))
    }

    /// Nobody wants the request any more: it is not sent if that can be helped, and a late reply is
    /// dropped.
    pub(crate) fn cancel(&mut self, id: RequestId) {
        self.waiting.remove(id);
        self.abandon(id);
    }

    /// Nobody waits for the reply any more; the request itself still leaves.
    pub(crate) fn abandon(&mut self, id: RequestId) {
        self.requests.cancel(id);
        self.kept.remove(&id);
        self.results.remove(id);
    }

    fn finish(&mut self, id: RequestId, result: Outcome) {
        self.waiting.remove(id);
        self.requests.cancel(id);
        self.keep_result(id, result);
    }

    /// The request is done with, until somebody asks what became of it.
    fn keep_result(&mut self, id: RequestId, result: Outcome) {
        if self.retry {
            self.kept.remove(&id);
        }
        self.results.insert(id, result);
    }

    fn on_lost(&mut self, net: &mut Net, id: RequestId, lost: Lost) {
        match (lost, self.kept.get(&id)) {
            (Lost::Expired, _) => self.finish(id, Err(Error::timed_out("no reply came"))),
            (Lost::Retry, Some(message)) => {
                net.counters.redelivered += 1;
                self.waiting.push(id, message.clone());
            }
            (Lost::Retry | Lost::Failed, _) => {
                let text = "the peer that held the request is gone: ask again, or set retry";
                self.finish(id, Err(Error::new(ErrorKind::PeerGone, text)));
            }
        }
    }

    /// Sends waiting requests to peers with room, to another one than before if possible.
    fn send_waiting(&mut self, net: &mut Net) {
        while let Some((id, message)) = self.waiting.pop() {
            let before = self.requests.holder(id);
            if let Some(peer) = self.pick(net, &message, before) {
                self.assign(net, id, peer, message);
            } else if why_none(&self.rotation, net, message.len() as u64) == Room::TooLong {
                let text =
                    "the request has more bytes than the peer takes: raise message_bytes_max";
                self.finish(id, Err(Error::new(ErrorKind::TooLong, text)));
            } else {
                return self.waiting.push_front(id, message);
            }
        }
    }
}

impl Role for Requester {
    const TYPE: SocketType = SocketType::Req;
    const NEEDS_TAG: bool = true;
    const ONE_CONNECT_EACH: bool = true;
    const GATHERS: bool = false;

    fn has_incoming(&self) -> bool {
        !self.results.is_empty()
    }

    fn has_room(&self, net: &Net) -> bool {
        let fits = |peer| net.peer(peer).is_up() && net.room(peer, 1) == Room::Yes;
        self.rotation.any(fits) || self.room_to_wait(net, 1) == Room::Yes
    }

    /// Nothing was asked yet: there was nobody to ask.
    fn configure(&mut self, options: &Options) {
        *self = Self::new(options);
    }

    fn tagged(request: bool) -> Result<(), Fault> {
        if request { Err(Fault::Protocol) } else { Ok(()) }
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
        self.send_waiting(net);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.rotation.remove(peer);
        }
        let mut unsent = take_unsent(net, peer);
        let mut lost = std::mem::take(&mut self.scratch);
        self.requests.on_gone(peer, &mut lost);
        for (id, what) in lost.drain(..) {
            match unsent.remove(&id) {
                Some(message) => self.waiting.push(id, message),
                None => self.on_lost(net, id, what),
            }
        }
        self.scratch = lost;
        self.send_waiting(net);
    }

    fn on_writable(&mut self, net: &mut Net, _peer: PeerId) {
        self.send_waiting(net);
    }

    /// Replies of others than the peer that was asked, and late ones, are dropped (REQ-06, REQ-11).
    fn admits(&mut self, _net: &mut Net, peer: PeerId, message: &Incoming) -> bool {
        let id = message.tag.as_ref().map(|(id, _)| RequestId(*id));
        id.is_some_and(|id| self.requests.holder(id) == Some(peer))
    }

    /// Replies are told apart by their ids, so their order does not matter.
    fn goes_first(&self, _net: &Net, peer: PeerId, id: u64) -> bool {
        self.requests.holder(RequestId(id)) == Some(peer)
    }

    fn on_first(&mut self, net: &mut Net, peer: PeerId, (id, _): Tag, body: Bytes) {
        net.on_delivered(peer, net.peer(peer).epoch, body.len() as u64);
        let id = RequestId(id);
        self.requests.cancel(id);
        self.keep_result(id, Ok(body.into()));
    }

    fn on_ready(&mut self, net: &mut Net, peer: PeerId) {
        while let Some(message) = net.take(peer) {
            let Some((id, _)) = message.tag else { continue };
            let id = RequestId(id);
            if self.requests.on_reply(peer, id) == Reply::Accept {
                self.keep_result(id, Ok(Message::of(message.parts)));
            }
        }
    }

    fn on_timeout(&mut self, net: &mut Net, now: Duration) {
        let mut lost = std::mem::take(&mut self.scratch);
        self.requests.on_timeout(now, &mut lost);
        for (id, what) in lost.drain(..) {
            self.on_lost(net, id, what);
        }
        self.scratch = lost;
        self.send_waiting(net);
    }

    fn has_result(&self, id: u64) -> bool {
        let id = RequestId(id);
        self.results.has(id) || !self.requests.is_open(id)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.requests.poll_timeout()
    }

    fn is_pending(&self) -> bool {
        !self.waiting.queue.is_empty()
    }
}

/// Requests that never left the queue of a peer that is gone: they are as good as new.
fn take_unsent(net: &mut Net, peer: PeerId) -> HashMap<RequestId, Message> {
    let unsent = net.take_queue(peer).into_messages().map(|outgoing| match outgoing.head {
        Head::Request { id, .. } => Some((RequestId(id), outgoing.message)),
        Head::None | Head::Reply { .. } => None,
    });
    unsent.flatten().collect()
}

type Outcome = Result<Message, Error>;

/// What became of requests, until it is asked for. Mostly that is one, which then stands here.
#[derive(Default)]
struct Results {
    last: Option<(RequestId, Outcome)>,
    others: IdMap<RequestId, Outcome>,
}

impl Results {
    fn insert(&mut self, id: RequestId, result: Outcome) {
        if let Some((id, result)) = self.last.replace((id, result)) {
            self.others.insert(id, result);
        }
    }

    fn is_empty(&self) -> bool {
        self.last.is_none() && self.others.is_empty()
    }

    fn has(&self, id: RequestId) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| *last == id) || self.others.contains_key(&id)
    }

    fn remove(&mut self, id: RequestId) -> Option<Outcome> {
        let last = self.last.take_if(|(last, _)| *last == id);
        last.map(|(_, result)| result).or_else(|| self.others.remove(&id))
    }
}

/// Requests that wait for a peer with room.
#[derive(Default)]
struct Waiting {
    queue: VecDeque<(RequestId, Message)>,
    bytes: u64,
}

impl Waiting {
    fn fits(&self, options: &Options, size: u64) -> bool {
        let messages = (self.queue.len() as u64) < Options::limit(options.send_hwm);
        let bytes = self.bytes.saturating_add(size) <= Options::limit(options.send_hwm_bytes);
        messages && (bytes || self.queue.is_empty())
    }

    fn push(&mut self, id: RequestId, message: Message) {
        self.bytes += message.len() as u64;
        self.queue.push_back((id, message));
    }

    fn push_front(&mut self, id: RequestId, message: Message) {
        self.bytes += message.len() as u64;
        self.queue.push_front((id, message));
    }

    fn pop(&mut self) -> Option<(RequestId, Message)> {
        let (id, message) = self.queue.pop_front()?;
        self.bytes -= message.len() as u64;
        Some((id, message))
    }

    fn remove(&mut self, id: RequestId) {
        let at = self.queue.iter().position(|(waiting, _)| *waiting == id);
        if let Some((_, message)) = at.and_then(|at| self.queue.remove(at)) {
            self.bytes -= message.len() as u64;
        }
    }
}
