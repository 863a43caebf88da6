//! Peers in a circle, and where in it the next turn is.

use alloc::vec::Vec;

use crate::Peer;

/// A set of peers that are chosen in turn, in the order of their names. What is remembered is the
/// name of the last one chosen, not its place: a peer that leaves and comes back cannot jump the
/// queue.
#[derive(Debug, Clone)]
pub(crate) struct Ring<P> {
    peers: Vec<P>,
    last: Option<P>,
    /// How many of `peers` are not above `last`: the index of the next turn.
    turn: usize,
}

impl<P: Peer> Ring<P> {
    pub(crate) fn new() -> Self {
        Self { peers: Vec::new(), last: None, turn: 0 }
    }

    /// Says whether the peer is new here.
    pub(crate) fn insert(&mut self, peer: P) -> bool {
        let Err(at) = self.peers.binary_search(&peer) else { return false };
        self.peers.insert(at, peer);
        self.turn += usize::from(Some(peer) <= self.last);
        true
    }

    /// Says whether the peer was here.
    pub(crate) fn remove(&mut self, peer: P) -> bool {
        let Ok(at) = self.peers.binary_search(&peer) else { return false };
        self.peers.remove(at);
        self.turn -= usize::from(Some(peer) <= self.last);
        true
    }

    pub(crate) fn contains(&self, peer: P) -> bool {
        self.peers.binary_search(&peer).is_ok()
    }

    pub(crate) fn any(&self, is: impl FnMut(P) -> bool) -> bool {
        self.peers.iter().copied().any(is)
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The first peer after the last one chosen that `may` be, and makes it the last one.
    pub(crate) fn next(&mut self, mut may: impl FnMut(P) -> bool) -> Option<P> {
        // Mostly the first one asked will do.
        if may(self.peek()?) {
            return self.advance();
        }
        self.next_other(self.at(), may)
    }

    /// Whose turn it is.
    #[inline]
    pub(crate) fn peek(&self) -> Option<P> {
        self.peers.get(self.at()).copied()
    }

    /// Gives the turn to whose it is.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<P> {
        let at = self.at();
        let peer = *self.peers.get(at)?;
        (self.last, self.turn) = (Some(peer), at + 1);
        Some(peer)
    }

    /// A peer, in the circle or not, was the last one chosen.
    pub(crate) fn chose(&mut self, peer: P) {
        self.last = Some(peer);
        self.turn = self.peers.partition_point(|other| *other <= peer);
    }

    fn at(&self) -> usize {
        if self.turn < self.peers.len() { self.turn } else { 0 }
    }

    /// As `next`, when the one at `turn` was asked in vain.
    fn next_other(&mut self, turn: usize, mut may: impl FnMut(P) -> bool) -> Option<P> {
        let (sooner, later) = self.peers.split_at_checked(turn)?;
        let after = later.iter().chain(sooner).copied().enumerate().skip(1);
        let (steps, peer) = after.into_iter().find(|(_, peer)| may(*peer))?;
        self.last = Some(peer);
        self.turn = (turn + steps) % self.peers.len() + 1;
        Some(peer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// The first in name order after `last` that `may` be, found by looking at all.
    fn after(peers: &BTreeSet<u8>, last: Option<u8>, may: impl Fn(u8) -> bool) -> Option<u8> {
        let able = || peers.iter().copied().filter(|peer| may(*peer));
        able().find(|peer| Some(*peer) > last).or_else(|| able().next())
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_search_from_the_last_one(
            ops in prop::collection::vec((0u8..5, 0u8..12, any::<u16>()), 0..200),
        ) {
            let (mut ring, mut model, mut last) = (Ring::new(), BTreeSet::new(), None);
            for (op, peer, mask) in ops {
                let may = |peer: u8| mask >> peer & 1 == 1;
                match op {
                    0 => prop_assert_eq!(ring.insert(peer), model.insert(peer)),
                    1 => prop_assert_eq!(ring.remove(peer), model.remove(&peer)),
                    2 => {
                        let expected = after(&model, last, |_| true);
                        prop_assert_eq!((ring.peek(), ring.advance()), (expected, expected));
                        last = expected.or(last);
                    }
                    _ => {
                        let expected = after(&model, last, may);
                        prop_assert_eq!(ring.next(may), expected);
                        last = expected.or(last);
                    }
                }
                prop_assert_eq!((ring.len(), ring.contains(peer)), (model.len(), model.contains(&peer)));
            }
        }

        /// While a peer waits for its turn, any other gets at most one, however they come and go.
        #[test]
        fn nobody_overtakes_a_waiting_peer_twice(
            ops in prop::collection::vec((0u8..4, 0u8..12), 0..300),
        ) {
            let (mut ring, waiting) = (Ring::new(), 5);
            ring.insert(waiting);
            let mut turns = BTreeMap::new();
            for (op, peer) in ops {
                match op {
                    0 => { ring.insert(peer); }
                    1 if peer != waiting => { ring.remove(peer); }
                    _ => {
                        let chosen = ring.next(|_| true).unwrap();
                        *turns.entry(chosen).or_insert(0) += 1;
                        if chosen == waiting {
                            turns.clear();
                        }
                    }
                }
                prop_assert!(turns.values().all(|count| *count == 1), "{:?}", turns);
            }
        }
    }
}
