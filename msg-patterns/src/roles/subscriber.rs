//! SUB: what matches its subscriptions, of all publishers, in turn.

use std::collections::HashMap;

use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::subscriber::Subscriptions;
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::{Role, next_of_run, next_ready};
use crate::Message;
use crate::engine::Net;
use crate::engine::inbox::Incoming;
use crate::monitor::PeerId;
use crate::options::Options;

/// The subscribing end.
pub(crate) struct Subscriber {
    pub(super) ready: FairQueue<PeerId>,
    pub(super) subscriptions: Subscriptions,
    invert: bool,
    /// Which publisher was last reached through a peer: one that came back after a broken
    /// connection is not asked for its history again.
    instances: HashMap<PeerId, u64>,
}

impl Subscriber {
    pub(crate) fn new(invert: bool) -> Self {
        Self {
            ready: FairQueue::new(),
            subscriptions: Subscriptions::new(),
            invert,
            instances: HashMap::new(),
        }
    }

    pub(crate) fn subscribe(&mut self, net: &mut Net, topic: &[u8]) {
        net.filter += 1;
        if self.subscriptions.subscribe(topic) {
            tell_all(net, &Frame::Subscribe { history: true, topic });
        }
    }

    pub(crate) fn unsubscribe(&mut self, net: &mut Net, topic: &[u8]) {
        net.filter += 1;
        if self.subscriptions.cancel(topic) {
            tell_all(net, &Frame::Cancel { topic });
        }
    }

    /// The next message, if there is one. Filters again: what was under way when a subscription
    /// was cancelled is not delivered (SUB-12).
    pub(crate) fn receive(&mut self, net: &mut Net) -> Option<Message> {
        loop {
            let (peer, message) = next_ready(&mut self.ready, net)?;
            net.remove_if_read(peer);
            let filtered = message.filter == net.filter;
            let message = Message::of(message.parts);
            if filtered || self.wants(message.first()) {
                return Some(message);
            }
            net.counters.discarded += 1;
            net.counters.delivered -= 1;
        }
    }

    /// As `receive`, for the plain case: nothing is to be filtered again.
    #[inline(always)]
    pub(crate) fn receive_at_once(&mut self, net: &mut Net) -> Option<Message> {
        let filter = net.filter;
        next_of_run(&mut self.ready, net, |_, run| run.filter == filter).map(Message::single)
    }

    /// Whether another publisher than before is reached through the peer, if any was.
    pub(super) fn is_new(&mut self, net: &Net, peer: PeerId) -> bool {
        let instance = net.peer(peer).info.map(|info| info.instance).unwrap_or_default();
        self.instances.insert(peer, instance) != Some(instance)
    }

    fn wants(&self, subject: &[u8]) -> bool {
        self.subscriptions.matches(subject) != self.invert
    }
}

pub(super) fn tell_all(net: &mut Net, frame: &Frame<'_>) {
    for peer in net.peer_ids() {
        if net.peer(peer).is_up() {
            net.control(peer, frame);
        }
    }
}

impl Role for Subscriber {
    const TYPE: SocketType = SocketType::Sub;
    const ONE_CONNECT_EACH: bool = true;

    fn has_incoming(&self) -> bool {
        !self.ready.is_empty()
    }

    fn configure(&mut self, options: &Options) {
        self.invert = options.invert_matching;
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        let history = self.is_new(net, peer);
        for topic in self.subscriptions.iter() {
            net.control(peer, &Frame::Subscribe { history, topic });
        }
        net.control(peer, &Frame::Settled);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.instances.remove(&peer);
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
    }

    fn on_frame(&mut self, net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        let Frame::Dropped { count } = *frame else { return Err(Fault::Protocol) };
        net.on_lost(peer, count);
        Ok(())
    }

    fn admits(&mut self, _net: &mut Net, _peer: PeerId, message: &Incoming) -> bool {
        // A first part that is still being read shows its topic later; `receive` filters again.
        message.pending > 0 || message.parts.first().is_some_and(|subject| self.wants(subject))
    }

    fn admits_lone(&self, body: &[u8]) -> bool {
        self.wants(body)
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }
}
