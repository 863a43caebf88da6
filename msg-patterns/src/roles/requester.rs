//! REQ: each request to one peer in turn, and its reply back to whoever asked.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use msg_proto::fault::Fault;
use msg_proto::requests::{Lost, Reply, RequestId, Requests};
use msg_proto::round_robin::RoundRobin;
use msg_proto::types::SocketType;

use super::{Role, why_none};
use crate::engine::peer::{Head, Incoming, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::Options;
use crate::{Error, ErrorKind, Message};

/// The asking end.
pub(crate) struct Requester {
    requests: Requests<PeerId>,
    rotation: RoundRobin<PeerId>,
    retry: bool,
    /// Requests that may have to be sent again.
    kept: HashMap<RequestId, Message>,
    /// Requests that wait for a peer with room.
    waiting: VecDeque<RequestId>,
    /// Where each request went first, and what became of it.
    results: HashMap<RequestId, Result<Message, Error>>,
    scratch: Vec<(RequestId, Lost)>,
}

impl Requester {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            requests: Requests::new(options.resend_after),
            rotation: RoundRobin::new(),
            retry: options.retry || options.resend_after.is_some(),
            kept: HashMap::new(),
            waiting: VecDeque::new(),
            results: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Sends a request to the next peer with room, or hands it back.
    pub(crate) fn request(
        &mut self,
        net: &mut Net,
        message: Message,
        deadline: Option<Duration>,
    ) -> Result<RequestId, (Message, Room)> {
        let Some(peer) = self.pick(net, &message, None) else {
            let room = why_none(&self.rotation, net, message.len() as u64);
            return Err((message, room));
        };
        net.counters.accepted += 1;
        // Which of them may go to another peer is decided when one is lost.
        let id = self.requests.start(deadline, true);
        if self.retry {
            self.kept.insert(id, message.clone());
        }
        self.assign(net, id, peer, message);
        Ok(id)
    }

    fn pick(&mut self, net: &Net, message: &Message, not: Option<PeerId>) -> Option<PeerId> {
        let size = message.len() as u64;
        let fits = |peer| net.room(peer, size) == Room::Yes;
        self.rotation
            .next(|peer| Some(peer) != not && fits(peer))
            .or_else(|| self.rotation.next(fits))
    }

    fn assign(&mut self, net: &mut Net, id: RequestId, peer: PeerId, message: Message) {
        self.requests.assign(id, peer, net.now());
        net.give(peer, Outgoing::new(message, Head::Request { id: id.0 }));
    }

    /// What became of a request, if anything has.
    pub(crate) fn take_result(&mut self, id: RequestId) -> Option<Result<Message, Error>> {
        self.results.remove(&id)
    }

    /// Nobody waits for the reply any more: a late one is dropped.
    pub(crate) fn cancel(&mut self, id: RequestId) {
        self.requests.cancel(id);
        self.kept.remove(&id);
        self.results.remove(&id);
    }

    fn finish(&mut self, id: RequestId, result: Result<Message, Error>) {
        self.kept.remove(&id);
        self.results.insert(id, result);
    }

    /// Requests that never left the queue of a peer that is gone are as good as new.
    fn take_unsent(&mut self, net: &mut Net, peer: PeerId) -> HashSet<RequestId> {
        let mut unsent = HashSet::new();
        for outgoing in net.take_queue(peer) {
            if let Head::Request { id } = outgoing.head {
                unsent.insert(RequestId(id));
                self.kept.insert(RequestId(id), outgoing.message);
            }
        }
        unsent
    }

    fn on_lost(&mut self, net: &mut Net, id: RequestId, lost: Lost, may_retry: bool) {
        match lost {
            Lost::Expired => self.finish(id, Err(Error::timed_out("no reply came"))),
            Lost::Retry if may_retry => {
                net.counters.redelivered += 1;
                self.waiting.push_back(id);
            }
            Lost::Retry | Lost::Failed => {
                self.requests.cancel(id);
                let text = "the peer that held the request is gone: ask again, or set retry";
                self.finish(id, Err(Error::new(ErrorKind::PeerGone, text)));
            }
        }
    }

    /// Sends waiting requests to peers with room, to another one than before if possible.
    fn send_waiting(&mut self, net: &mut Net) {
        for _ in 0..self.waiting.len() {
            let Some(id) = self.waiting.pop_front() else { return };
            let Some(message) = self.kept.get(&id).cloned() else { continue };
            let before = self.requests.holder(id);
            match self.pick(net, &message, before) {
                Some(peer) => self.assign(net, id, peer, message),
                None => self.waiting.push_back(id),
            }
        }
    }
}

impl Role for Requester {
    const TYPE: SocketType = SocketType::Req;
    const NEEDS_TAG: bool = true;
    const ONE_CONNECT_EACH: bool = true;

    fn tagged(request: bool) -> Result<(), Fault> {
        if request { Err(Fault::Protocol) } else { Ok(()) }
    }

    fn on_attach(&mut self, net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
        self.send_waiting(net);
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.rotation.add(peer);
        self.send_waiting(net);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.rotation.remove(peer);
        }
        let unsent = self.take_unsent(net, peer);
        let mut lost = std::mem::take(&mut self.scratch);
        self.requests.on_gone(peer, &mut lost);
        for (id, what) in lost.drain(..) {
            self.on_lost(net, id, what, self.retry || unsent.contains(&id));
        }
        self.scratch = lost;
        self.send_waiting(net);
    }

    fn on_writable(&mut self, net: &mut Net, _peer: PeerId) {
        if !self.waiting.is_empty() {
            self.send_waiting(net);
        }
    }

    /// Replies of others than the peer that was asked, and late ones, are dropped (REQ-06, REQ-11).
    fn admits(&mut self, _net: &mut Net, peer: PeerId, message: &Incoming) -> bool {
        let id = message.tag.as_ref().map(|(id, _)| RequestId(*id));
        id.is_some_and(|id| self.requests.holder(id) == Some(peer))
    }

    fn on_ready(&mut self, net: &mut Net, peer: PeerId) {
        while let Some(message) = net.take(peer) {
            let Some((id, _)) = message.tag else { continue };
            let id = RequestId(id);
            if self.requests.on_reply(peer, id) == Reply::Accept {
                self.finish(id, Ok(Message::of(message.parts)));
            }
        }
    }

    fn on_timeout(&mut self, net: &mut Net, now: Duration) {
        let mut lost = std::mem::take(&mut self.scratch);
        self.requests.on_timeout(now, &mut lost);
        for (id, what) in lost.drain(..) {
            self.on_lost(net, id, what, self.retry);
        }
        self.scratch = lost;
        self.send_waiting(net);
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.requests.poll_timeout()
    }
}
