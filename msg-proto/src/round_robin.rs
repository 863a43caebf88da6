//! Which peer gets the next message of a PUSH or the next request of a REQ.

use crate::Peer;
use crate::ring::Ring;

/// Rotation over the peers that have room.
#[derive(Debug, Clone)]
pub struct RoundRobin<P> {
    ring: Ring<P>,
}

impl<P: Peer> RoundRobin<P> {
    /// A rotation without peers.
    pub fn new() -> Self {
        Self { ring: Ring::new() }
    }

    /// A peer joins the rotation (PIPE-13). Twice is once. True if it is new.
    pub fn add(&mut self, peer: P) -> bool {
        self.ring.insert(peer)
    }

    /// A peer leaves; the turn of the others does not change. True if it was there.
    pub fn remove(&mut self, peer: P) -> bool {
        self.ring.remove(peer)
    }

    /// The next peer that `has_room` (PIPE-02, PIPE-03, REQ-03), or `None` when nobody has
    /// (PIPE-04). The rotation goes on behind the one chosen. Asks each peer at most once, and only
    /// one when all have room.
    pub fn next(&mut self, has_room: impl FnMut(P) -> bool) -> Option<P> {
        self.ring.next(has_room)
    }

    /// The peer whose turn it is, with room or not; it keeps its turn.
    #[inline]
    pub fn peek(&self) -> Option<P> {
        self.ring.peek()
    }

    /// The peer that `peek` names has had its turn.
    #[inline]
    pub fn advance(&mut self) {
        self.ring.advance();
    }

    /// Whether `is` holds for any peer; no turn is taken.
    pub fn any(&self, is: impl FnMut(P) -> bool) -> bool {
        self.ring.any(is)
    }

    /// How many peers are in the rotation.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether there is no peer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Peer> Default for RoundRobin<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn rotation(peers: &[u32]) -> RoundRobin<u32> {
        let mut rotation = RoundRobin::new();
        peers.iter().for_each(|peer| assert!(rotation.add(*peer)));
        rotation
    }

    fn take(rotation: &mut RoundRobin<u32>, count: usize) -> Vec<u32> {
        (0..count).filter_map(|_| rotation.next(|_| true)).collect()
    }

    #[test]
    fn pipe_02_each_of_five_peers_gets_one_of_five() {
        assert_eq!(take(&mut rotation(&[3, 1, 4, 5, 2]), 5), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn pipe_03_full_peers_are_skipped_and_the_rotation_goes_on_behind_the_chosen_one() {
        let mut rotation = rotation(&[1, 2, 3, 4]);
        assert_eq!(rotation.next(|peer| peer == 3), Some(3));
        assert_eq!(take(&mut rotation, 3), [4, 1, 2]);
    }

    #[test]
    fn pipe_04_without_peer_or_room_there_is_nobody_and_no_turn_is_lost() {
        assert_eq!(rotation(&[]).next(|_| true), None);
        let mut rotation = rotation(&[1, 2, 3]);
        take(&mut rotation, 1);
        let mut asked = Vec::new();
        assert_eq!(rotation.next(|peer| (asked.push(peer), false).1), None);
        assert_eq!(asked, [2, 3, 1]);
        assert!(rotation.any(|peer| peer == 3) && !rotation.any(|peer| peer == 4));
        assert_eq!(rotation.next(|_| true), Some(2));
    }

    #[test]
    fn pipe_13_a_new_peer_joins_the_rotation() {
        let mut rotation = rotation(&[1, 2]);
        take(&mut rotation, 1);
        rotation.add(3);
        assert_eq!(take(&mut rotation, 6), [2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn leaving_takes_no_turn_from_the_others() {
        for gone in 1..=4 {
            let mut rotation = rotation(&[1, 2, 3, 4]);
            take(&mut rotation, 2);
            assert!(rotation.remove(gone) && !rotation.remove(gone));
            let rest: Vec<u32> = [3, 4, 1, 2].into_iter().filter(|peer| *peer != gone).collect();
            assert_eq!((take(&mut rotation, 3), rotation.len()), (rest, 3));
        }
    }

    #[test]
    fn with_room_everywhere_one_peer_is_asked() {
        let mut rotation: RoundRobin<u32> = rotation(&(0..1_000).collect::<Vec<_>>());
        let mut asked = 0;
        for _ in 0..3_000 {
            rotation.next(|_| {
                asked += 1;
                true
            });
        }
        assert_eq!(asked, 3_000);
    }
}
