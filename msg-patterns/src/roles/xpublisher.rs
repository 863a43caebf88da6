//! XPUB: a publisher that sees subscriptions, and hears what XSUB sends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use msg_proto::fair_queue::FairQueue;
use msg_proto::fault::Fault;
use msg_proto::topics::{Cancelled, Subscribed, TopicTable};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::publisher::{Publisher, Publishes, limits};
use super::seen::Seen;
use super::{Role, envelope};
use crate::engine::inbox::Incoming;
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::{OnFull, Options};
use crate::{Message, Subscription, Upstream};

/// Topics, and how often each was subscribed to.
type Counts = Vec<(Arc<[u8]>, u64)>;

/// The publishing end that sees.
pub(crate) struct XPublisher {
    publisher: Publisher,
    seen: Seen,
    ready: FairQueue<PeerId>,
    /// A message goes before the next subscription, if one may.
    message_next: bool,
    verbose: bool,
    verboser: bool,
    /// What peers asked for where the application decides what they get.
    asked: Option<TopicTable<PeerId>>,
    /// What peers that came back wanted before.
    before: HashMap<PeerId, Counts>,
    welcome: Option<Message>,
    /// Who got the welcome over its connection.
    welcomed: BTreeSet<PeerId>,
}

impl XPublisher {
    pub(crate) fn new(options: &Options) -> Self {
        let mut new = Self {
            publisher: Publisher::new(options),
            seen: Seen::new(options),
            ready: FairQueue::new(),
            message_next: false,
            verbose: false,
            verboser: false,
            asked: None,
            before: HashMap::new(),
            welcome: None,
            welcomed: BTreeSet::new(),
        };
        new.set(options);
        new
    }

    fn set(&mut self, options: &Options) {
        self.seen = Seen::new(options);
        self.verbose = options.verbose || options.verboser;
        self.verboser = options.verboser;
        self.asked = options.manual.then(|| TopicTable::new(limits(options)));
        self.welcome = (!options.welcome.is_empty()).then(|| options.welcome.clone().into());
    }

    /// What came next: subscriptions and messages in turn, but those of one peer in their order.
    pub(crate) fn receive(&mut self, net: &mut Net) -> Option<Upstream> {
        if self.seen.waits(net) {
            return self.free_message(net);
        }
        let message = std::mem::take(&mut self.message_next) || self.seen.is_empty();
        let message = if message { self.free_message(net) } else { None };
        message.or_else(|| {
            self.message_next = true;
            self.seen.pop().map(Upstream::Subscription)
        })
    }

    /// The next message in turn that no subscription of its peer stands before.
    fn free_message(&mut self, net: &mut Net) -> Option<Upstream> {
        for _ in 0..self.ready.len() {
            let peer = self.ready.peek()?;
            if self.seen.holds_up(net, peer) {
                self.ready.advance();
                continue;
            }
            let message = self.message_of(net, peer);
            if message.is_some() {
                return message;
            }
        }
        None
    }

    fn message_of(&mut self, net: &mut Net, peer: PeerId) -> Option<Upstream> {
        let taken = net.peers.contains(peer.0 as usize).then(|| net.take(peer)).flatten();
        let Some(taken) = taken else {
            self.ready.idle(peer);
            return None;
        };
        self.ready.served(peer);
        if !net.peer(peer).is_ready() {
            self.ready.idle(peer);
        }
        net.remove_if_read(peer);
        Some(Upstream::Message { peer, message: Message::of(taken.parts) })
    }

    /// Gives the message to whoever subscribed or cancelled like this, and to nobody else, or hands
    /// it back.
    pub(crate) fn send_to(
        &mut self,
        net: &mut Net,
        to: &Subscription,
        message: Message,
    ) -> Result<(), (Message, Room)> {
        if !is_there(net, to) {
            return Err((message, Room::Nobody));
        }
        let room = net.room(to.peer, message.len() as u64);
        if room == Room::Full && self.publisher.on_full() == OnFull::Block {
            return Err((message, room));
        }
        net.counters.accepted += 1;
        self.publisher.give(net, to.peer, message);
        Ok(())
    }

    /// Subscribes who asked to `topic`, or takes that back; says whether it is still there.
    pub(crate) fn decide(
        &mut self,
        net: &mut Net,
        who: &Subscription,
        topic: &[u8],
        subscribes: bool,
    ) -> Result<bool, Fault> {
        if !is_there(net, who) {
            return Ok(false);
        }
        if subscribes {
            self.publisher.subscribe(net, who.peer, true, topic)?;
        } else {
            self.publisher.cancel(who.peer, topic, 1);
        }
        Ok(true)
    }

    /// Whether the application decides what subscribers get.
    pub(crate) fn is_manual(&self) -> bool {
        self.asked.is_some()
    }

    fn on_subscribe(
        &mut self,
        net: &mut Net,
        peer: PeerId,
        history: bool,
        topic: &[u8],
    ) -> Result<(), Fault> {
        if !self.seen.has_room(net, peer) {
            return Err(Fault::Limit);
        }
        let Subscribed { first_of_topic, .. } = match &mut self.asked {
            Some(asked) => asked.subscribe(peer, topic).map_err(|_| Fault::Limit)?,
            None => self.subscribe(net, peer, history, topic)?,
        };
        if first_of_topic || self.verbose || self.is_manual() {
            self.seen.push(net, peer, true, topic);
        }
        self.welcome(net, peer);
        Ok(())
    }

    /// A peer that came back with other topics than before is not to fail for both together.
    fn subscribe(
        &mut self,
        net: &mut Net,
        peer: PeerId,
        history: bool,
        topic: &[u8],
    ) -> Result<Subscribed, Fault> {
        let done = self.publisher.subscribe(net, peer, history, topic);
        if done.is_ok() || !self.before.contains_key(&peer) {
            return done;
        }
        self.forget_before(net, peer);
        self.publisher.subscribe(net, peer, history, topic)
    }

    fn on_cancel(&mut self, net: &mut Net, peer: PeerId, topic: &[u8]) -> Result<(), Fault> {
        if !self.seen.has_room(net, peer) {
            return Err(Fault::Limit);
        }
        let Cancelled { known, last_of_topic, .. } = match &mut self.asked {
            Some(asked) => asked.cancel(peer, topic),
            None => self.publisher.cancel(peer, topic, 1),
        };
        if last_of_topic || (known && (self.verboser || self.is_manual())) {
            self.seen.push(net, peer, false, topic);
        }
        Ok(())
    }

    fn on_settled(&mut self, net: &mut Net, peer: PeerId) {
        self.forget_before(net, peer);
        self.welcome_settled(net, peer);
        self.publisher.settle(net, peer);
    }

    /// What the peer wanted over an earlier connection holds no longer.
    fn forget_before(&mut self, net: &mut Net, peer: PeerId) {
        for (topic, count) in self.before.remove(&peer).unwrap_or_default() {
            let last = self.publisher.cancel(peer, &topic, count).last_of_topic;
            self.tell_cancelled(net, peer, &topic, count, last);
        }
    }

    fn tell_cancelled(&mut self, net: &Net, peer: PeerId, topic: &[u8], count: u64, last: bool) {
        let times = if self.verboser || self.is_manual() { count } else { u64::from(last) };
        for _ in 0..times {
            self.seen.push(net, peer, false, topic);
        }
    }

    /// All that the peer asked for is cancelled, and it gets nothing any more.
    fn cancel_all(&mut self, net: &mut Net, peer: PeerId) {
        let mut told = Vec::new();
        let asked = self.asked.as_mut().unwrap_or(&mut self.publisher.topics);
        asked.remove_peer_with(peer, |topic, count, last| told.push((topic.to_vec(), count, last)));
        for (topic, count, last) in told {
            self.tell_cancelled(net, peer, &topic, count, last);
        }
        self.publisher.topics.remove_peer(peer);
        self.before.remove(&peer);
    }

    fn welcome(&mut self, net: &mut Net, peer: PeerId) {
        if !self.publisher.held.contains_key(&peer) {
            self.welcome_settled(net, peer);
        }
    }

    /// Once for each connection, as soon as it is wanted.
    fn welcome_settled(&mut self, net: &mut Net, peer: PeerId) {
        let Some(welcome) = &self.welcome else { return };
        let asked = self.asked.as_ref().unwrap_or(&self.publisher.topics);
        if asked.matches_peer(peer, welcome.first()) && self.welcomed.insert(peer) {
            self.publisher.give(net, peer, welcome.clone());
        }
    }
}

/// Whether whoever subscribed like this is still connected as it was.
fn is_there(net: &Net, who: &Subscription) -> bool {
    let entry = net.peers.get(who.peer.0 as usize);
    entry.is_some_and(|entry| entry.epoch == who.epoch && entry.is_up() && entry.leaving.is_none())
}

impl Publishes for XPublisher {
    fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    #[inline]
    fn publisher_mut(&mut self) -> &mut Publisher {
        &mut self.publisher
    }
}

impl Role for XPublisher {
    const TYPE: SocketType = SocketType::XPub;
    const ONE_CONNECT_EACH: bool = Publisher::ONE_CONNECT_EACH;

    fn configure(&mut self, options: &Options) {
        self.publisher.configure(options);
        self.set(options);
    }

    fn has_incoming(&self) -> bool {
        !self.seen.is_empty() || !self.ready.is_empty()
    }

    fn turns_away(&self) -> Option<Fault> {
        self.seen.is_full().then_some(Fault::Limit)
    }

    fn on_attach(&mut self, net: &mut Net, peer: PeerId) {
        self.publisher.on_attach(net, peer);
    }

    /// A peer that comes back says anew what it wants; what it still wants then is no news. Where the
    /// application decides, it does so anew.
    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.welcomed.remove(&peer);
        if self.is_manual() {
            self.cancel_all(net, peer);
        } else {
            let counts = self.publisher.topics.counts_of(peer);
            let before: Counts = counts.map(|(topic, count)| (topic.clone(), count)).collect();
            if !before.is_empty() {
                self.before.insert(peer, before);
            }
        }
        self.publisher.begin(net, peer);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.cancel_all(net, peer);
            self.publisher.end(net, peer);
            self.welcomed.remove(&peer);
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
        self.seen.leave(net.peer(peer).epoch);
    }

    fn on_frame(&mut self, net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        match *frame {
            Frame::Subscribe { history, topic } => self.on_subscribe(net, peer, history, topic),
            Frame::Cancel { topic } => self.on_cancel(net, peer, topic),
            Frame::Settled => {
                self.on_settled(net, peer);
                Ok(())
            }
            _ => self.publisher.on_frame(net, peer, frame),
        }
    }

    fn takes_runs(&self, net: &Net, peer: PeerId) -> bool {
        envelope::kind(net, peer) == Some(SocketType::XSub)
    }

    /// What a SUB sends is dropped without a word.
    fn admits(&mut self, net: &mut Net, peer: PeerId, _message: &Incoming) -> bool {
        self.takes_runs(net, peer)
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }

    fn is_pending(&self) -> bool {
        self.publisher.is_pending()
    }

    fn on_end(&mut self, net: &mut Net) {
        self.publisher.on_end(net);
    }
}
