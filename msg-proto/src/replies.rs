//! Whom a REP owes an answer.

use alloc::collections::BTreeMap;

use crate::Peer;
use crate::id_queue::IdQueue;

/// A request that is being answered. Given once, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The requests that were handed out and not answered yet, from any number of peers at once. They
/// are as many as the engine lets in: its credit is the bound.
#[derive(Debug, Clone)]
pub struct Replies<P> {
    open: IdQueue<(P, u64)>,
    per_peer: BTreeMap<P, usize>,
}

impl<P: Peer> Replies<P> {
    /// Nothing was asked.
    pub fn new() -> Self {
        Self { open: IdQueue::new(), per_peer: BTreeMap::new() }
    }

    /// `peer` asks under its own `id`, which need not be unique.
    pub fn on_request(&mut self, peer: P, id: u64) -> Ticket {
        match self.per_peer.get_mut(&peer) {
            Some(open) => *open += 1,
            None => drop(self.per_peer.insert(peer, 1)),
        }
        Ticket(self.open.push((peer, id)))
    }

    /// Answers a request: the peer to send to and its own id (REP-04). `None` if the peer is gone,
    /// and the answer with it (REP-05, REP-09), or if the request was answered or abandoned before.
    pub fn reply(&mut self, ticket: Ticket) -> Option<(P, u64)> {
        let (peer, id) = self.open.remove(ticket.0)?;
        if let Some(count) = self.per_peer.get_mut(&peer) {
            *count -= 1;
        }
        Some((peer, id))
    }

    /// Whom the answer would go to, if it is still wanted.
    pub fn asker(&self, ticket: Ticket) -> Option<P> {
        self.open.get(ticket.0).map(|(peer, _)| *peer)
    }

    /// A request will not be answered. True if it was open.
    pub fn abandon(&mut self, ticket: Ticket) -> bool {
        self.reply(ticket).is_some()
    }

    /// `peer` is gone: nothing is owed to it. Takes time for every open request.
    pub fn on_gone(&mut self, peer: P) {
        if self.per_peer.remove(&peer).is_some_and(|open| open > 0) {
            self.open.retain(|_, (asker, _)| *asker != peer);
        }
    }

    /// How many requests of `peer` are open.
    pub fn open(&self, peer: P) -> usize {
        self.per_peer.get(&peer).copied().unwrap_or(0)
    }

    /// How many requests are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether everything was answered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Peer> Default for Replies<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rep_04_a_reply_goes_to_whom_it_is_owed_in_any_order() {
        let mut replies = Replies::new();
        let (a, b, c) =
            (replies.on_request(1, 7), replies.on_request(2, 7), replies.on_request(1, 8));
        assert_eq!(replies.reply(c), Some((1, 8)));
        assert_eq!(replies.reply(a), Some((1, 7)));
        assert_eq!((replies.asker(a), replies.asker(b)), (None, Some(2)));
        assert_eq!(replies.reply(b), Some((2, 7)));
    }

    #[test]
    fn a_request_is_answered_once() {
        let mut replies = Replies::new();
        let ticket = replies.on_request(1, 7);
        assert_eq!((replies.reply(ticket), replies.reply(ticket)), (Some((1, 7)), None));
    }

    #[test]
    fn rep_09_the_answer_to_a_gone_peer_goes_nowhere_and_the_next_is_served() {
        let mut replies = Replies::new();
        let (gone, next) = (replies.on_request(1, 7), replies.on_request(2, 1));
        replies.on_gone(1);
        assert_eq!((replies.reply(gone), replies.reply(next)), (None, Some((2, 1))));
    }

    #[test]
    fn an_abandoned_request_is_owed_nothing() {
        let mut replies = Replies::new();
        let ticket = replies.on_request(1, 7);
        assert!(replies.abandon(ticket) && !replies.abandon(ticket));
        assert_eq!((replies.reply(ticket), replies.open(1), replies.is_empty()), (None, 0, true));
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_list(ops in prop::collection::vec((0u8..8, 0u32..4, 0usize..40), 0..200)) {
            let (mut replies, mut open, mut given) = (Replies::new(), Vec::new(), Vec::new());
            for (op, peer, which) in ops {
                match (op, given.get(which)) {
                    (0, _) => { replies.on_gone(peer); open.retain(|(_, p, _)| *p != peer); }
                    (1..4, Some(ticket)) => {
                        let at = open.iter().position(|(t, _, _)| t == ticket);
                        let expected = at.map(|at| open.remove(at)).map(|(_, p, id)| (p, id));
                        prop_assert_eq!(replies.reply(*ticket), expected);
                    }
                    _ => {
                        let ticket = replies.on_request(peer, which as u64);
                        prop_assert!(!given.contains(&ticket));
                        given.push(ticket);
                        open.push((ticket, peer, which as u64));
                    }
                }
                let owed = open.iter().filter(|(_, p, _)| *p == peer).count();
                prop_assert_eq!((replies.open(peer), replies.len()), (owed, open.len()));
            }
        }
    }
}
