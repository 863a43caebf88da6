//! Subscriptions and cancellations that wait to be received, in the order they came in.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::Subscription;
use crate::engine::Net;
use crate::ids::IdMap;
use crate::monitor::PeerId;
use crate::options::Options;

/// What may wait beside two for each topic that a peer may have.
const SPARE: usize = 1000;

/// Those of all peers in one line: one that subscribes what another one cancelled stays behind it.
#[derive(Debug)]
pub(crate) struct Seen {
    line: VecDeque<Subscription>,
    by_connection: IdMap<u32, Told>,
    /// How many are of connections that are gone.
    left_behind: usize,
    max: usize,
}

/// What waits of one connection.
#[derive(Debug, Default)]
struct Told {
    /// For each: messages of the peer with a lower number came before it.
    behind: VecDeque<u64>,
    gone: bool,
}

impl Seen {
    pub(crate) fn new(options: &Options) -> Self {
        let max = options.subscriptions_max.saturating_mul(2).saturating_add(SPARE);
        Self { line: VecDeque::new(), by_connection: IdMap::default(), left_behind: 0, max }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Whether another one of the peer may wait.
    pub(crate) fn has_room(&self, net: &Net, peer: PeerId) -> bool {
        let told = self.by_connection.get(&net.peer(peer).epoch);
        told.is_none_or(|told| told.behind.len() < self.max)
    }

    /// Whether so much is left of peers that are gone that no new one may come.
    pub(crate) fn is_full(&self) -> bool {
        self.left_behind >= self.max
    }

    pub(crate) fn push(&mut self, net: &Net, peer: PeerId, subscribes: bool, topic: &[u8]) {
        let entry = net.peer(peer);
        let (topic, epoch) = (Bytes::copy_from_slice(topic), entry.epoch);
        self.line.push_back(Subscription { topic, subscribes, peer, epoch });
        let told = self.by_connection.entry(epoch).or_default();
        told.behind.push_back(entry.seq_next);
        self.left_behind += usize::from(told.gone);
    }

    /// The connection is gone.
    pub(crate) fn leave(&mut self, epoch: u32) {
        let Some(told) = self.by_connection.get_mut(&epoch) else { return };
        if !std::mem::replace(&mut told.gone, true) {
            self.left_behind += told.behind.len();
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Subscription> {
        let first = self.line.pop_front()?;
        if let Some(told) = self.by_connection.get_mut(&first.epoch) {
            told.behind.pop_front();
            self.left_behind -= usize::from(told.gone);
            if told.behind.is_empty() {
                self.by_connection.remove(&first.epoch);
            }
        }
        Some(first)
    }

    /// Whether the first one waits for a message of its peer that came before.
    pub(crate) fn waits(&self, net: &Net) -> bool {
        let message_before = |first: &Subscription| {
            let (seq, epoch) = next_message(net, first.peer)?;
            let behind = self.by_connection.get(&first.epoch)?.behind.front()?;
            Some(epoch == first.epoch && seq < *behind)
        };
        self.line.front().and_then(message_before).unwrap_or(false)
    }

    /// Whether the next message of the peer came after one that waits here.
    pub(crate) fn holds_up(&self, net: &Net, peer: PeerId) -> bool {
        let waits_before = || {
            let (seq, epoch) = next_message(net, peer)?;
            let behind = self.by_connection.get(&epoch)?.behind.front()?;
            Some(seq >= *behind)
        };
        waits_before().unwrap_or(false)
    }
}

/// Number and connection of the next message of the peer.
fn next_message(net: &Net, peer: PeerId) -> Option<(u64, u32)> {
    net.peers.get(peer.0 as usize)?.inbox.front()
}
