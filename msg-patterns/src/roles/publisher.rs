//! PUB: each message to every peer that subscribed to it.

use std::collections::{HashMap, VecDeque};

use msg_proto::fault::Fault;
use msg_proto::topics::{TopicLimits, TopicTable};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::Role;
use crate::Message;
use crate::engine::peer::{Head, Incoming, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::{OnFull, Options};

/// Longest topic in bytes.
pub(crate) const TOPIC_BYTES_MAX: usize = 32 << 10;
/// Bytes of topics of one subscriber.
const TOPICS_BYTES_MAX: usize = 64 << 20;

/// The publishing end.
pub(crate) struct Publisher {
    topics: TopicTable<PeerId>,
    invert: bool,
    on_full: OnFull,
    conflate: bool,
    /// The last messages, for subscribers that come late.
    history: VecDeque<Message>,
    history_max: usize,
    /// Messages for peers being connected to that have not said yet what they want (PUB-03).
    held: HashMap<PeerId, VecDeque<Message>>,
    held_max: usize,
    matched: Vec<PeerId>,
}

impl Publisher {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = TopicLimits {
            topics_per_peer: options.subscriptions_max,
            topic_bytes_max: TOPIC_BYTES_MAX,
            bytes_per_peer: TOPICS_BYTES_MAX,
        };
        Self {
            topics: TopicTable::new(limits),
            invert: options.invert_matching,
            on_full: options.on_full,
            conflate: options.conflate,
            history: VecDeque::new(),
            history_max: options.history,
            held: HashMap::new(),
            held_max: usize::try_from(Options::limit(options.send_hwm)).unwrap_or(usize::MAX),
            matched: Vec::new(),
        }
    }

    /// Publishes, or hands the message back if it is to wait for a subscriber without room.
    pub(crate) fn publish(&mut self, net: &mut Net, message: Message) -> Result<(), Message> {
        let mut matched = std::mem::take(&mut self.matched);
        self.find_matches(net, message.first(), &mut matched);
        let size = message.len() as u64;
        let block = self.on_full == OnFull::Block
            && matched.iter().any(|&peer| net.room(peer, size) == Room::Full);
        if block {
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

    fn find_matches(&self, net: &Net, subject: &[u8], matched: &mut Vec<PeerId>) {
        self.topics.matches(subject, matched);
        if self.invert {
            let all = net.peer_ids();
            let matching = std::mem::take(matched);
            matched.extend(
                all.into_iter().filter(|peer| net.peer(*peer).is_up() && !matching.contains(peer)),
            );
        }
    }

    /// Whether the peer can take the message; if not, it misses it and learns how many it missed.
    fn has_room(&self, net: &mut Net, peer: PeerId, size: u64) -> bool {
        if self.conflate && !net.peer(peer).queue.is_empty() {
            net.drop_queue(peer);
        }
        match net.room(peer, size) {
            Room::Yes => true,
            Room::Full | Room::TooLong => {
                net.count_dropped(peer, 1);
                net.peer_mut(peer).dropped_untold += 1;
                false
            }
            Room::Down => false,
        }
    }

    /// Keeps the message for peers that have not said yet what they want.
    fn hold(&mut self, net: &mut Net, message: &Message) {
        let topics = &self.topics;
        self.held.retain(|peer, held| {
            // Once a peer has subscribed, what it did not want then is of no use.
            let waiting = !topics.peers().any(|subscribed| subscribed == *peer);
            if waiting {
                held.push_back(message.clone());
            }
            waiting
        });
        for (&peer, held) in &mut self.held {
            if held.len() > self.held_max {
                held.pop_front();
                net.count_dropped(peer, 1);
            }
        }
    }

    fn remember(&mut self, message: &Message) {
        if self.history_max == 0 {
            return;
        }
        if self.history.len() == self.history_max {
            self.history.pop_front();
        }
        self.history.push_back(message.clone());
    }

    fn subscribe(
        &mut self,
        net: &mut Net,
        peer: PeerId,
        history: bool,
        topic: &[u8],
    ) -> Result<(), Fault> {
        let past = self.wanted_past(peer, history, topic);
        self.topics.subscribe(peer, topic).map_err(|_| Fault::Limit)?;
        for message in past {
            if self.has_room(net, peer, message.len() as u64) {
                net.give(peer, Outgoing::new(message, Head::None));
            }
        }
        Ok(())
    }

    /// Messages of the past that this subscription asks for and no earlier one of the peer did.
    fn wanted_past(&mut self, peer: PeerId, history: bool, topic: &[u8]) -> Vec<Message> {
        let topics = &self.topics;
        let is_new = |message: &Message| {
            message.first().starts_with(topic) && !topics.matches_peer(peer, message.first())
        };
        let mut past = Vec::new();
        if let Some(held) = self.held.get_mut(&peer) {
            held.retain(|message| {
                let wanted = message.first().starts_with(topic);
                if wanted {
                    past.push(message.clone());
                }
                !wanted
            });
        } else if history {
            past.extend(self.history.iter().filter(|message| is_new(message)).cloned());
        }
        past
    }

    /// How many subscribers get a message with this subject.
    pub(crate) fn matching(&self, net: &Net, subject: &[u8]) -> usize {
        let mut matched = Vec::new();
        self.find_matches(net, subject, &mut matched);
        matched.retain(|&peer| net.peer(peer).is_up());
        matched.len()
    }

    /// How many different topics are subscribed to.
    pub(crate) fn topics(&self) -> usize {
        self.topics.topics()
    }
}

impl Role for Publisher {
    const TYPE: SocketType = SocketType::Pub;
    const ONE_CONNECT_EACH: bool = true;

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.held.insert(peer, VecDeque::new());
    }

    fn on_up(&mut self, _net: &mut Net, peer: PeerId) {
        // A peer that comes back says anew what it wants.
        self.topics.remove_peer(peer);
    }

    fn on_gone(&mut self, _net: &mut Net, peer: PeerId, last: bool) {
        if last {
            self.topics.remove_peer(peer);
            self.held.remove(&peer);
        }
    }

    fn on_frame(&mut self, net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        match *frame {
            Frame::Subscribe { history, topic } => self.subscribe(net, peer, history, topic),
            Frame::Cancel { topic } => {
                self.topics.cancel(peer, topic);
                Ok(())
            }
            _ => Err(Fault::Protocol),
        }
    }

    /// What a subscriber sends is dropped without a word (PUB-05).
    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        false
    }
}
