//! PUB: each message to every peer that subscribed to it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use msg_proto::fault::Fault;
use msg_proto::topics::{Cancelled, Subscribed, TopicLimits, TopicTable};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::Role;
use super::held::Held;
use crate::Message;
use crate::engine::inbox::Incoming;
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::{OnFull, Options};

/// Longest topic in bytes.
pub(crate) const TOPIC_BYTES_MAX: usize = 32 << 10;
/// Bytes of topics of one subscriber.
const TOPICS_BYTES_MAX: usize = 64 << 20;

/// The publishing end.
pub(crate) struct Publisher {
    pub(super) topics: TopicTable<PeerId>,
    /// Peers that have said what they want.
    settled: BTreeSet<PeerId>,
    /// What is kept for peers being connected to that have not.
    pub(super) held: HashMap<PeerId, Held>,
    invert: bool,
    on_full: OnFull,
    conflate: bool,
    /// The last messages, for subscribers that come late.
    history: VecDeque<Message>,
    history_max: usize,
    published: u64,
    matched: Vec<PeerId>,
}

impl Publisher {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            topics: TopicTable::new(limits(options)),
            settled: BTreeSet::new(),
            held: HashMap::new(),
            invert: options.invert_matching,
            on_full: options.on_full,
            conflate: options.conflate,
            history: VecDeque::new(),
            history_max: options.history,
            published: 0,
            matched: Vec::new(),
        }
    }

    /// Publishes, or hands the message back if it is to wait for a subscriber without room.
    pub(crate) fn publish(&mut self, net: &mut Net, message: Message) -> Result<(), Message> {
        let mut matched = std::mem::take(&mut self.matched);
        self.find_matches(message.first(), &mut matched);
        let size = message.len() as u64;
        if self.on_full == OnFull::Block && self.is_full(net, &matched, size) {
            self.matched = matched;
            return Err(message);
        }
        net.counters.accepted += 1;
        self.hold(net, &message);
        matched.retain(|&peer| self.has_room(net, peer, size));
        self.remember(&message);
        if !matched.is_empty() {
            net.give_all(&matched, &Outgoing::new(message, Head::None));
        }
        self.matched = matched;
        Ok(())
    }

    /// As `publish`, for the plain case: the message joins others on their way to the same peers. If
    /// that is not in order, nothing happened.
    pub(crate) fn publish_at_once(&mut self, net: &mut Net, message: &Message) -> bool {
        if !self.held.is_empty() || self.conflate {
            return false;
        }
        let mut matched = std::mem::take(&mut self.matched);
        self.find_matches(message.first(), &mut matched);
        let done = match matched[..] {
            [] => message.len() <= net.options.message_bytes_max,
            [only] => net.append(&[only], message) || net.append_to_queue(only, message),
            _ => net.append(&matched, message),
        };
        if done {
            net.counters.accepted += 1;
            self.remember(message);
        }
        self.matched = matched;
        done
    }

    /// Who is known to want a message with this subject.
    fn find_matches(&self, subject: &[u8], matched: &mut Vec<PeerId>) {
        self.topics.matches(subject, matched);
        if self.invert {
            let matching = std::mem::take(matched);
            let others = self.settled.iter().filter(|peer| matching.binary_search(peer).is_err());
            matched.extend(others);
        }
        if !self.held.is_empty() {
            matched.retain(|peer| !self.held.contains_key(peer));
        }
    }

    /// Whether somebody who may want a message of `size` bytes has no room for it.
    fn is_full(&self, net: &Net, matched: &[PeerId], size: u64) -> bool {
        let holds = |peer| is_kept_for(net, peer);
        matched.iter().any(|&peer| net.room(peer, size) == Room::Full)
            || self.held.iter().any(|(&peer, held)| holds(peer) && !held.fits(net, peer, size))
    }

    /// Whether the peer can take the message; if not, it misses it and learns how many it missed.
    fn has_room(&self, net: &mut Net, peer: PeerId, size: u64) -> bool {
        if self.conflate {
            net.drop_unbegun(peer);
        }
        match net.room(peer, size) {
            Room::Yes => true,
            // Only what has begun to leave stands before it.
            Room::Full if self.conflate => true,
            Room::Full => {
                net.miss(peer, 1);
                false
            }
            Room::TooLong => {
                net.miss(peer, 1);
                // Nothing else may follow that would tell it.
                net.pump(peer);
                false
            }
            Room::Down | Room::Nobody => false,
        }
    }

    pub(super) fn give(&self, net: &mut Net, peer: PeerId, message: Message) {
        if self.has_room(net, peer, message.len() as u64) {
            net.give(peer, Outgoing::new(message, Head::None));
        }
    }

    /// Keeps the message for peers that have not said yet what they want.
    fn hold(&mut self, net: &mut Net, message: &Message) {
        for (&peer, held) in &mut self.held {
            if !is_kept_for(net, peer) {
                continue;
            }
            if held.fits(net, peer, message.len() as u64) {
                held.push(message.clone());
            } else {
                net.miss(peer, 1);
            }
        }
    }

    #[inline]
    fn remember(&mut self, message: &Message) {
        self.published += 1;
        if self.history_max > 0 {
            self.keep_in_history(message);
        }
    }

    fn keep_in_history(&mut self, message: &Message) {
        if self.history.len() == self.history_max {
            self.history.pop_front();
        }
        self.history.push_back(message.clone());
    }

    pub(super) fn subscribe(
        &mut self,
        net: &mut Net,
        peer: PeerId,
        history: bool,
        topic: &[u8],
    ) -> Result<Subscribed, Fault> {
        let mut past = Vec::new();
        if let Some(held) = self.held.get_mut(&peer) {
            held.history |= history;
        } else if history {
            past.extend(self.past(peer, topic));
        }
        let subscribed = self.topics.subscribe(peer, topic).map_err(|_| Fault::Limit)?;
        for message in past {
            self.give(net, peer, message);
        }
        Ok(subscribed)
    }

    pub(super) fn cancel(&mut self, peer: PeerId, topic: &[u8], times: u64) -> Cancelled {
        self.topics.cancel_times(peer, topic, times)
    }

    /// Messages of the past that this topic asks for and no earlier one of the peer did.
    fn past(&self, peer: PeerId, topic: &[u8]) -> impl Iterator<Item = Message> {
        let is_new = move |message: &&Message| {
            message.first().starts_with(topic) && !self.topics.matches_peer(peer, message.first())
        };
        self.history.iter().filter(is_new).cloned()
    }

    /// The peer has said what it wants: it gets what was kept for it, in order.
    pub(super) fn settle(&mut self, net: &mut Net, peer: PeerId) {
        self.settled.insert(peer);
        let Some(held) = self.held.remove(&peer) else { return };
        let past = if held.history { self.older_than(held.since) } else { 0 };
        let mut wanted: Vec<Message> =
            self.history.iter().take(past).chain(&held.messages).cloned().collect();
        wanted.retain(|message| self.topics.matches_peer(peer, message.first()) != self.invert);
        let skip = if self.conflate { wanted.len().saturating_sub(1) } else { 0 };
        net.miss(peer, skip as u64);
        for message in wanted.into_iter().skip(skip) {
            self.give(net, peer, message);
        }
    }

    /// How many messages of the history were published before the one with number `since`.
    fn older_than(&self, since: u64) -> usize {
        let first = self.published - self.history.len() as u64;
        usize::try_from(since.saturating_sub(first)).unwrap_or(usize::MAX)
    }

    /// How many subscribers get a message with this subject.
    pub(crate) fn matching(&self, net: &Net, subject: &[u8]) -> usize {
        let mut matched = Vec::new();
        self.find_matches(subject, &mut matched);
        matched.retain(|&peer| net.peer(peer).is_up());
        matched.len()
    }

    /// What happens to a message for a subscriber without room.
    pub(super) fn on_full(&self) -> OnFull {
        self.on_full
    }

    /// How many different topics are subscribed to.
    pub(crate) fn topics(&self) -> usize {
        self.topics.topics()
    }

    /// A peer is there and says next what it wants.
    pub(super) fn begin(&mut self, net: &mut Net, peer: PeerId) {
        self.settled.remove(&peer);
        if net.peer(peer).is_connector() {
            // What is still queued for it is in the history too: it gets nothing twice.
            let returns = !net.peer(peer).queue.is_empty();
            let since = if returns { 0 } else { self.published };
            self.held.entry(peer).or_insert_with(|| Held::since(since));
        }
    }

    /// The peer is gone, and with it what it wanted.
    pub(super) fn end(&mut self, net: &mut Net, peer: PeerId) {
        self.settled.remove(&peer);
        let held = self.held.remove(&peer);
        net.count_dropped(peer, held.map_or(0, |held| held.messages.len() as u64));
    }
}

/// An end with a publisher in it.
pub(crate) trait Publishes: Role {
    fn publisher(&self) -> &Publisher;
    fn publisher_mut(&mut self) -> &mut Publisher;
}

impl Publishes for Publisher {
    fn publisher(&self) -> &Publisher {
        self
    }

    #[inline]
    fn publisher_mut(&mut self) -> &mut Publisher {
        self
    }
}

impl Role for Publisher {
    const TYPE: SocketType = SocketType::Pub;
    const ONE_CONNECT_EACH: bool = true;

    /// No peer has subscribed yet; what is in the history stays as far as it may.
    fn configure(&mut self, options: &Options) {
        self.topics = TopicTable::new(limits(options));
        self.invert = options.invert_matching;
        self.on_full = options.on_full;
        self.conflate = options.conflate;
        self.history_max = options.history;
        self.history.drain(..self.history.len().saturating_sub(options.history));
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.held.insert(peer, Held::since(self.published));
    }

    /// A peer that comes back says anew what it wants.
    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.topics.remove_peer(peer);
        self.begin(net, peer);
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.topics.remove_peer(peer);
            self.end(net, peer);
        }
    }

    fn on_frame(&mut self, net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        match *frame {
            Frame::Subscribe { history, topic } => {
                self.subscribe(net, peer, history, topic).map(drop)
            }
            Frame::Cancel { topic } => {
                self.cancel(peer, topic, 1);
                Ok(())
            }
            Frame::Dropped { count } => {
                net.on_lost(peer, count);
                Ok(())
            }
            Frame::Settled => {
                self.settle(net, peer);
                Ok(())
            }
            _ => Err(Fault::Protocol),
        }
    }

    /// What a subscriber sends is dropped without a word (PUB-05).
    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        false
    }

    fn is_pending(&self) -> bool {
        self.held.values().any(|held| !held.messages.is_empty())
    }

    fn on_end(&mut self, net: &mut Net) {
        for (peer, held) in self.held.drain() {
            net.count_dropped(peer, held.messages.len() as u64);
        }
    }
}

/// Whether messages are kept for a peer that has not said yet what it wants.
fn is_kept_for(net: &Net, peer: PeerId) -> bool {
    net.peer(peer).is_up() || !net.options.immediate
}

pub(super) fn limits(options: &Options) -> TopicLimits {
    TopicLimits {
        topics_per_peer: options.subscriptions_max,
        topic_bytes_max: TOPIC_BYTES_MAX,
        bytes_per_peer: TOPICS_BYTES_MAX,
    }
}
