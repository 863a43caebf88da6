//! Who subscribed to what: the filter of a publisher.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::{fmt, slice};

use crate::Peer;
use crate::prefixes::PrefixMap;

/// What one peer may subscribe to. A topic takes about 150 bytes of memory beside its own: 400,000
/// short ones make 64 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicLimits {
    /// Distinct topics of one peer.
    pub topics_per_peer: usize,
    /// Length of one topic in bytes.
    pub topic_bytes_max: usize,
    /// Length of all distinct topics of one peer together, in bytes.
    pub bytes_per_peer: usize,
}

/// Why a subscription was refused. The peer's other subscriptions stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicError {
    /// The topic is too long.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The peer has as many topics as it may have.
    TooMany {
        /// The limit.
        topics_max: usize,
    },
    /// The peer's topics together would be too long.
    TooMuch {
        /// The limit in bytes.
        bytes_max: usize,
    },
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "the topic has {bytes} bytes, the publisher takes at most {bytes_max}")
            }
            Self::TooMany { topics_max } => {
                write!(f, "the publisher takes at most {topics_max} topics of one subscriber")
            }
            Self::TooMuch { bytes_max } => {
                write!(f, "the publisher takes at most {bytes_max} bytes of topics of a subscriber")
            }
        }
    }
}

impl core::error::Error for TopicError {}

/// What a subscription changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribed {
    /// The peer had not subscribed to this topic.
    pub first_of_peer: bool,
    /// Nobody had subscribed to this topic.
    pub first_of_topic: bool,
}

/// What a cancellation changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// The peer has no subscription to this topic left.
    pub last_of_peer: bool,
    /// Nobody has a subscription to this topic left.
    pub last_of_topic: bool,
    /// There was something to cancel. If not, nothing changed, and that is no fault (SUB-07).
    pub known: bool,
}

/// Counted subscriptions of peers to topics (SUB-06), with a binary prefix match (PUB-09).
#[derive(Debug, Clone)]
pub struct TopicTable<P> {
    limits: TopicLimits,
    subscribers: PrefixMap<Subscribers<P>>,
    peers: BTreeMap<P, Topics>,
}

/// The topics of one peer and how often it subscribed to each.
#[derive(Debug, Clone, Default)]
struct Topics {
    counts: PrefixMap<u64>,
    bytes: usize,
}

impl<P: Peer> TopicTable<P> {
    /// A table without subscriptions, with `limits` for each peer.
    pub fn new(limits: TopicLimits) -> Self {
        Self { limits, subscribers: PrefixMap::default(), peers: BTreeMap::new() }
    }

    /// Subscribes `peer` to all subjects that start with `topic`, once more if it is already.
    ///
    /// # Errors
    /// When a limit is in the way; nothing changes then.
    pub fn subscribe(&mut self, peer: P, topic: &[u8]) -> Result<Subscribed, TopicError> {
        if let Some(count) = self.peers.get_mut(&peer).and_then(|own| own.counts.get_mut(topic)) {
            *count += 1;
            return Ok(Subscribed { first_of_peer: false, first_of_topic: false });
        }
        self.check(peer, topic)?;
        let known = self.subscribers.shared(topic);
        let first_of_topic = known.is_none();
        self.insert(peer, known.unwrap_or_else(|| topic.into()));
        Ok(Subscribed { first_of_peer: true, first_of_topic })
    }

    /// Takes back one subscription of `peer` to `topic`.
    pub fn cancel(&mut self, peer: P, topic: &[u8]) -> Cancelled {
        self.cancel_times(peer, topic, 1)
    }

    /// Takes back so many subscriptions of `peer` to `topic`, or as many as there are.
    pub fn cancel_times(&mut self, peer: P, topic: &[u8], times: u64) -> Cancelled {
        let Some(own) = self.peers.get_mut(&peer) else { return Cancelled::UNKNOWN };
        let Some(count) = own.counts.get_mut(topic) else { return Cancelled::UNKNOWN };
        *count = count.saturating_sub(times);
        if *count > 0 {
            return Cancelled { last_of_peer: false, last_of_topic: false, known: true };
        }
        own.counts.remove(topic);
        own.bytes -= topic.len();
        if own.counts.len() == 0 {
            self.peers.remove(&peer);
        }
        let last_of_topic = forget(&mut self.subscribers, peer, topic);
        Cancelled { last_of_peer: true, last_of_topic, known: true }
    }

    /// Takes back all subscriptions of `peer`.
    pub fn remove_peer(&mut self, peer: P) {
        self.remove_peer_with(peer, |_, _, _| {});
    }

    /// Takes back all subscriptions of `peer`; `each` is told every topic, how often the peer had
    /// subscribed to it, and whether nobody else has.
    pub fn remove_peer_with(&mut self, peer: P, mut each: impl FnMut(&[u8], u64, bool)) {
        let Some(own) = self.peers.remove(&peer) else { return };
        for (topic, count) in own.counts.iter() {
            let last = forget(&mut self.subscribers, peer, topic);
            each(topic, *count, last);
        }
    }

    /// The topics of `peer` and how often it subscribed to each.
    pub fn counts_of(&self, peer: P) -> impl Iterator<Item = (&Arc<[u8]>, u64)> {
        let own = self.peers.get(&peer);
        own.into_iter().flat_map(|own| own.counts.iter()).map(|(topic, count)| (topic, *count))
    }

    /// Replaces `out` by the peers that a message on `subject` goes to: sorted, each once however
    /// many of its topics match (SUB-05).
    pub fn matches(&self, subject: &[u8], out: &mut Vec<P>) {
        out.clear();
        let mut topics = 0;
        for subscribers in self.subscribers.prefixes_of(subject) {
            out.extend_from_slice(subscribers.peers());
            topics += 1;
        }
        // The peers of one topic are sorted already.
        if topics > 1 {
            out.sort_unstable();
            out.dedup();
        }
    }

    /// Whether a message on `subject` goes to `peer`.
    pub fn matches_peer(&self, peer: P, subject: &[u8]) -> bool {
        let own = self.peers.get(&peer);
        own.is_some_and(|own| own.counts.prefixes_of(subject).next().is_some())
    }

    /// Whether a message on `subject` goes to anybody (NEW-02).
    pub fn any_match(&self, subject: &[u8]) -> bool {
        self.subscribers.prefixes_of(subject).next().is_some()
    }

    /// The number of distinct topics (PUB-17).
    pub fn topics(&self) -> usize {
        self.subscribers.len()
    }

    /// The peers that have a subscription, sorted.
    pub fn peers(&self) -> impl ExactSizeIterator<Item = P> {
        self.peers.keys().copied()
    }

    fn check(&self, peer: P, topic: &[u8]) -> Result<(), TopicError> {
        let TopicLimits { topics_per_peer, topic_bytes_max, bytes_per_peer } = self.limits;
        let (topics, bytes) =
            self.peers.get(&peer).map_or((0, 0), |own| (own.counts.len(), own.bytes));
        if topic.len() > topic_bytes_max {
            return Err(TopicError::TooLong { bytes: topic.len(), bytes_max: topic_bytes_max });
        }
        if topics >= topics_per_peer {
            return Err(TopicError::TooMany { topics_max: topics_per_peer });
        }
        if topic.len() > bytes_per_peer - bytes {
            return Err(TopicError::TooMuch { bytes_max: bytes_per_peer });
        }
        Ok(())
    }

    fn insert(&mut self, peer: P, topic: Arc<[u8]>) {
        match self.subscribers.get_mut(&topic) {
            Some(subscribers) => subscribers.add(peer),
            None => self.subscribers.insert(Arc::clone(&topic), Subscribers::One(peer)),
        }
        let own = self.peers.entry(peer).or_default();
        own.bytes += topic.len();
        own.counts.insert(topic, 1);
    }
}

impl Cancelled {
    const UNKNOWN: Self = Self { last_of_peer: false, last_of_topic: false, known: false };
}

/// Takes `peer` off a topic; says whether it was the last one there.
fn forget<P: Peer>(map: &mut PrefixMap<Subscribers<P>>, peer: P, topic: &[u8]) -> bool {
    let last = map.get_mut(topic).is_some_and(|subscribers| !subscribers.remove(peer));
    if last {
        map.remove(topic);
    }
    last
}

/// The peers of one topic, sorted. Most topics have one, which then costs no memory of its own.
#[derive(Debug, Clone)]
enum Subscribers<P> {
    One(P),
    Many(Vec<P>),
}

impl<P: Peer> Subscribers<P> {
    fn peers(&self) -> &[P] {
        match self {
            Self::One(peer) => slice::from_ref(peer),
            Self::Many(peers) => peers,
        }
    }

    fn add(&mut self, peer: P) {
        match self {
            Self::One(one) if *one == peer => {}
            Self::One(one) => *self = Self::Many(vec![peer.min(*one), peer.max(*one)]),
            Self::Many(peers) => {
                if let Err(at) = peers.binary_search(&peer) {
                    peers.insert(at, peer);
                }
            }
        }
    }

    /// Says whether anybody is left.
    fn remove(&mut self, peer: P) -> bool {
        match self {
            Self::One(one) => *one != peer,
            Self::Many(peers) => {
                if let Ok(at) = peers.binary_search(&peer) {
                    peers.remove(at);
                }
                !peers.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests;
