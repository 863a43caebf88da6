//! Whose message a receiver takes next.

use crate::Peer;
use crate::ring::Ring;

/// Turns among the peers that have something to read. While a peer waits for its turn every other
/// one gets at most one (PIPE-09, SUB-08, REP-02), also if it runs dry and fills again meanwhile.
#[derive(Debug, Clone)]
pub struct FairQueue<P> {
    ring: Ring<P>,
}

impl<P: Peer> FairQueue<P> {
    /// Nobody is ready.
    pub fn new() -> Self {
        Self { ring: Ring::new() }
    }

    /// A peer has something to read, until [`idle`](Self::idle). Twice is once.
    pub fn ready(&mut self, peer: P) {
        self.ring.insert(peer);
    }

    /// A peer has nothing left to read.
    pub fn idle(&mut self, peer: P) {
        self.ring.remove(peer);
    }

    /// A peer is gone, and what it sent with it (PIPE-10). The same as [`idle`](Self::idle).
    pub fn remove(&mut self, peer: P) {
        self.ring.remove(peer);
    }

    /// The ready peer whose turn it is. It stays ready.
    #[expect(
        clippy::should_implement_trait,
        reason = "a queue to poll, not a sequence to go through"
    )]
    pub fn next(&mut self) -> Option<P> {
        self.ring.next(|_| true)
    }

    /// The ready peer whose turn it is, which it keeps.
    #[inline]
    pub fn peek(&self) -> Option<P> {
        self.ring.peek()
    }

    /// The peer that `peek` names has had its turn.
    #[inline]
    pub fn advance(&mut self) {
        self.ring.advance();
    }

    /// A peer that need not stand in line has had its turn.
    pub fn served(&mut self, peer: P) {
        self.ring.chose(peer);
    }

    /// Whether a peer is ready.
    pub fn is_ready(&self, peer: P) -> bool {
        self.ring.contains(peer)
    }

    /// How many peers are ready.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nobody is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Peer> Default for FairQueue<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pipe_09_five_ready_peers_are_served_evenly() {
        let mut queue = FairQueue::new();
        (0..5).for_each(|peer| queue.ready(peer));
        let served: Vec<u32> = (0..15).filter_map(|_| queue.next()).collect();
        assert_eq!(served, [0, 1, 2, 3, 4].repeat(3));
    }

    #[test]
    fn an_idle_or_removed_peer_gets_no_turn() {
        let mut queue = FairQueue::new();
        [1, 2, 3].into_iter().for_each(|peer| queue.ready(peer));
        queue.idle(1);
        queue.remove(3);
        assert_eq!((queue.next(), queue.next(), queue.len()), (Some(2), Some(2), 1));
        queue.idle(2);
        assert_eq!((queue.next(), queue.is_empty()), (None, true));
    }

    #[test]
    fn a_peer_that_keeps_filling_up_does_not_jump_the_queue() {
        let mut queue = FairQueue::new();
        [1, 2].into_iter().for_each(|peer| queue.ready(peer));
        assert_eq!(queue.next(), Some(1));
        queue.idle(1);
        queue.ready(1);
        assert_eq!((queue.next(), queue.next()), (Some(2), Some(1)));
    }

    #[test]
    fn rep_02_who_was_served_out_of_line_waits_for_the_others() {
        let mut queue = FairQueue::new();
        queue.served(2);
        (0..4).for_each(|peer| queue.ready(peer));
        let served: Vec<u32> = (0..4).filter_map(|_| queue.next()).collect();
        assert_eq!(served, [3, 0, 1, 2]);
        queue.served(1);
        assert_eq!(queue.next(), Some(2));
    }

    proptest! {
        /// Peers with queues of their own, filled at random and read in turn: whoever has something
        /// is served within as many turns as there are peers.
        #[test]
        fn sub_08_nobody_starves(fills in prop::collection::vec((0u8..6, 0u32..4), 0..200)) {
            let (mut queue, mut unread) = (FairQueue::new(), BTreeMap::<u8, u32>::new());
            let mut waited = BTreeMap::<u8, usize>::new();
            for (peer, count) in fills {
                *unread.entry(peer).or_default() += count;
                if count > 0 {
                    queue.ready(peer);
                }
                let Some(chosen) = queue.next() else { continue };
                let left = unread.get_mut(&chosen).unwrap();
                *left -= 1;
                if *left == 0 {
                    queue.idle(chosen);
                }
                waited.remove(&chosen);
                for (peer, _) in unread.iter().filter(|(peer, n)| **n > 0 && **peer != chosen) {
                    let turns = waited.entry(*peer).or_default();
                    *turns += 1;
                    prop_assert!(*turns < 6, "{} waited {} turns", peer, turns);
                }
            }
        }
    }
}
