//! What a REQ asked and who is to answer.

use alloc::vec::Vec;
use core::time::Duration;

use crate::Peer;
use crate::id_queue::IdQueue;
use crate::timers::Timers;

/// A request. Given once, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What to do with a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It is the one that was waited for: hand it over. The request is done.
    Accept,
    /// Nobody waits for it, or not from this peer: drop it.
    Stale,
}

/// What became of a request without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Send it again, to another peer if there is one, and `assign` it.
    Retry,
    /// Its peer is gone and it is not to be retried. The request is done.
    Failed,
    /// Its deadline passed. The request is done.
    Expired,
}

/// The requests under way, any number at once. Each waits for one reply, from the peer it was sent
/// to last (REQ-06), until its deadline.
#[derive(Debug, Clone)]
pub struct Requests<P> {
    open: IdQueue<Request<P>>,
    timers: Timers,
    resend_after: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Request<P> {
    deadline: Option<Duration>,
    retry: bool,
    state: State<P>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State<P> {
    /// To be sent by the engine, which knows.
    Waiting,
    /// A peer has it.
    Sent { peer: P, resend_at: Option<Duration> },
    /// A peer has it, but took so long that the engine was told to send it to another one.
    Overdue { peer: P },
}

impl<P: Peer> Requests<P> {
    /// No request is under way. Requests with retry that got no reply within `resend_after` are
    /// sent again (REQ-N1); `None` leaves that to their peer's end.
    pub fn new(resend_after: Option<Duration>) -> Self {
        Self { open: IdQueue::new(), timers: Timers::new(), resend_after }
    }

    /// A new request, to be sent. It ends at `deadline` at the latest; with `retry` it is sent
    /// again when it got no answer from a peer.
    pub fn start(&mut self, deadline: Option<Duration>, retry: bool) -> RequestId {
        let id = self.open.push(Request { deadline, retry, state: State::Waiting });
        if let Some(at) = deadline {
            self.timers.arm(at, id);
        }
        RequestId(id)
    }

    /// The request is sent to `peer` at `now`; from here on only that peer's reply counts. False
    /// if the request is done already and need not be sent. `now` matters only if it `resends`.
    pub fn assign(&mut self, id: RequestId, peer: P, now: Duration) -> bool {
        let Some(request) = self.open.get_mut(id.0) else { return false };
        let resend_after = self.resend_after.filter(|_| request.retry);
        let resend_at = resend_after.and_then(|after| now.checked_add(after));
        request.state = State::Sent { peer, resend_at };
        if let Some(at) = resend_at {
            self.timers.arm(at, id.0);
        }
        self.prune();
        true
    }

    /// `peer` replies to `id`, whatever that is.
    pub fn on_reply(&mut self, peer: P, id: RequestId) -> Reply {
        if self.holder(id) != Some(peer) {
            return Reply::Stale;
        }
        self.cancel(id);
        Reply::Accept
    }

    /// `peer` is gone. Appends what became of its requests to `out`, oldest first. Takes time for
    /// every open request.
    pub fn on_gone(&mut self, peer: P, out: &mut Vec<(RequestId, Lost)>) {
        self.open.retain(|id, request| {
            if request.state.holder() != Some(peer) {
                return true;
            }
            let told = matches!(request.state, State::Overdue { .. });
            request.state = State::Waiting;
            if !told {
                out.push((RequestId(id), if request.retry { Lost::Retry } else { Lost::Failed }));
            }
            request.retry
        });
        self.prune();
    }

    /// It is `now`. Appends what became of requests whose time has come to `out`.
    pub fn on_timeout(&mut self, now: Duration, out: &mut Vec<(RequestId, Lost)>) {
        while let Some(id) = self.timers.pop_due(now) {
            out.extend(self.fire(id, now).map(|lost| (RequestId(id), lost)));
        }
        self.prune();
    }

    /// Whether `assign` has to know the time.
    pub fn resends(&self) -> bool {
        self.resend_after.is_some()
    }

    /// When `on_timeout` is due next.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Nobody waits for the reply any more; a late one is stale. True if the request was open.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let open = self.open.remove(id.0).is_some();
        self.prune();
        open
    }

    /// Who has the request, so that a retry can pass that peer by.
    pub fn holder(&self, id: RequestId) -> Option<P> {
        self.open.get(id.0)?.state.holder()
    }

    /// Whether the request is under way: not answered, lost or cancelled.
    pub fn is_open(&self, id: RequestId) -> bool {
        self.open.get(id.0).is_some()
    }

    /// How many requests are under way.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What became of a request one of whose times has come, if it still means anything.
    fn fire(&mut self, id: u64, now: Duration) -> Option<Lost> {
        let request = self.open.get_mut(id)?;
        if request.deadline.is_some_and(|at| at <= now) {
            self.open.remove(id);
            return Some(Lost::Expired);
        }
        let peer = request.state.overdue(now)?;
        request.state = State::Overdue { peer };
        Some(Lost::Retry)
    }

    fn prune(&mut self) {
        let open = &self.open;
        self.timers.prune(open.len(), |at, id| open.get(id).is_some_and(|r| r.waits_for(at)));
    }
}

impl<P: Peer> Request<P> {
    fn waits_for(&self, at: Duration) -> bool {
        let resend_at = match self.state {
            State::Sent { resend_at, .. } => resend_at,
            State::Waiting | State::Overdue { .. } => None,
        };
        self.deadline == Some(at) || resend_at == Some(at)
    }
}

impl<P: Peer> State<P> {
    fn holder(self) -> Option<P> {
        match self {
            Self::Waiting => None,
            Self::Sent { peer, .. } | Self::Overdue { peer } => Some(peer),
        }
    }

    /// The peer that had its time.
    fn overdue(self, now: Duration) -> Option<P> {
        match self {
            Self::Sent { peer, resend_at: Some(at) } if at <= now => Some(peer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
