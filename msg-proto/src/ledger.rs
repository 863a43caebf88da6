//! Which pushed messages a worker has not acknowledged yet.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use crate::Peer;

/// How the engine names a message. The bytes are its own business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MsgId(pub u64);

/// An acknowledgement that cannot be true: the peer breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckError {
    /// It takes back what was acknowledged before.
    Backwards {
        /// What it says now, in messages since the link came up.
        acked: u64,
        /// What it said before.
        before: u64,
    },
    /// It acknowledges what was not sent.
    Unsent {
        /// What it says, in messages since the link came up.
        acked: u64,
        /// What was sent.
        sent: u64,
    },
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backwards { acked, before } => {
                write!(f, "{acked} messages acknowledged after {before} already were")
            }
            Self::Unsent { acked, sent } => {
                write!(f, "{acked} messages acknowledged but only {sent} sent")
            }
        }
    }
}

impl core::error::Error for AckError {}

/// The messages sent and not yet acknowledged, per peer, in the order they were sent.
#[derive(Debug, Clone)]
pub struct Ledger<P> {
    peers: BTreeMap<P, Account>,
    total: usize,
}

#[derive(Debug, Clone, Default)]
struct Account {
    acked: u64,
    unacked: VecDeque<MsgId>,
}

impl<P: Peer> Ledger<P> {
    /// Nothing was sent.
    pub fn new() -> Self {
        Self { peers: BTreeMap::new(), total: 0 }
    }

    /// A message went to `peer`.
    pub fn on_sent(&mut self, peer: P, msg: MsgId) {
        self.peers.entry(peer).or_default().unacked.push_back(msg);
        self.total += 1;
    }

    /// `peer` says how many messages it processed since its link came up. Appends those that are
    /// acknowledged by that for the first time to `out` and returns their number; an
    /// acknowledgement repeated is harmless.
    ///
    /// # Errors
    /// [`AckError`] when the number cannot be; nothing changes then.
    pub fn on_ack(
        &mut self,
        peer: P,
        cumulative: u64,
        out: &mut Vec<MsgId>,
    ) -> Result<usize, AckError> {
        let Some(account) = self.peers.get_mut(&peer) else { return none_sent(cumulative) };
        let count = account.newly_acked(cumulative)?;
        out.extend(account.unacked.drain(..count));
        account.acked = cumulative;
        self.total -= count;
        Ok(count)
    }

    /// The link of `peer` is gone. Appends what it did not acknowledge to `out`, oldest first, to
    /// be sent to another. A new link counts from zero.
    pub fn on_gone(&mut self, peer: P, out: &mut Vec<MsgId>) {
        let Some(account) = self.peers.remove(&peer) else { return };
        self.total -= account.unacked.len();
        out.extend(account.unacked);
    }

    /// How many messages `peer` has not acknowledged.
    pub fn unacked(&self, peer: P) -> usize {
        self.peers.get(&peer).map_or(0, |account| account.unacked.len())
    }

    /// How many messages nobody has acknowledged.
    pub fn total(&self) -> usize {
        self.total
    }
}

impl<P: Peer> Default for Ledger<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl Account {
    fn newly_acked(&self, cumulative: u64) -> Result<usize, AckError> {
        let new = cumulative
            .checked_sub(self.acked)
            .ok_or(AckError::Backwards { acked: cumulative, before: self.acked })?;
        let count = usize::try_from(new).unwrap_or(usize::MAX);
        if count > self.unacked.len() {
            let sent = self.acked + self.unacked.len() as u64;
            return Err(AckError::Unsent { acked: cumulative, sent });
        }
        Ok(count)
    }
}

fn none_sent(cumulative: u64) -> Result<usize, AckError> {
    match cumulative {
        0 => Ok(0),
        acked => Err(AckError::Unsent { acked, sent: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn sent(peer: u32, msgs: core::ops::Range<u64>) -> Ledger<u32> {
        let mut ledger = Ledger::new();
        msgs.for_each(|msg| ledger.on_sent(peer, MsgId(msg)));
        ledger
    }

    #[test]
    fn an_acknowledgement_releases_the_oldest_in_order() {
        let (mut ledger, mut out) = (sent(1, 10..15), vec![]);
        assert_eq!(ledger.on_ack(1, 2, &mut out), Ok(2));
        assert_eq!(ledger.on_ack(1, 2, &mut out), Ok(0));
        assert_eq!(ledger.on_ack(1, 3, &mut out), Ok(1));
        assert_eq!(out, [MsgId(10), MsgId(11), MsgId(12)]);
        assert_eq!((ledger.unacked(1), ledger.total()), (2, 2));
    }

    #[test]
    fn what_a_dead_worker_left_comes_back_in_order_and_once() {
        let (mut ledger, mut out) = (sent(1, 0..4), vec![]);
        ledger.on_sent(2, MsgId(9));
        ledger.on_ack(1, 1, &mut out).unwrap();
        out.clear();
        ledger.on_gone(1, &mut out);
        ledger.on_gone(1, &mut out);
        assert_eq!(out, [MsgId(1), MsgId(2), MsgId(3)]);
        assert_eq!((ledger.unacked(1), ledger.total()), (0, 1));
    }

    #[test]
    fn a_new_link_counts_from_zero() {
        let (mut ledger, mut out) = (sent(1, 0..4), vec![]);
        ledger.on_ack(1, 4, &mut out).unwrap();
        ledger.on_gone(1, &mut out);
        ledger.on_sent(1, MsgId(9));
        assert_eq!(ledger.on_ack(1, 1, &mut out), Ok(1));
    }

    #[test]
    fn an_impossible_acknowledgement_changes_nothing() {
        let (mut ledger, mut out) = (sent(1, 0..4), vec![]);
        ledger.on_ack(1, 2, &mut out).unwrap();
        out.clear();
        let backwards = AckError::Backwards { acked: 1, before: 2 };
        assert_eq!(ledger.on_ack(1, 1, &mut out), Err(backwards));
        for acked in [5, u64::MAX] {
            let unsent = AckError::Unsent { acked, sent: 4 };
            assert_eq!(ledger.on_ack(1, acked, &mut out), Err(unsent));
        }
        assert_eq!(ledger.on_ack(2, 1, &mut out), Err(AckError::Unsent { acked: 1, sent: 0 }));
        assert_eq!((out.len(), ledger.total()), (0, 2));
    }

    #[test]
    fn refusals_say_both_numbers() {
        let backwards = AckError::Backwards { acked: 1, before: 2 };
        assert_eq!(backwards.to_string(), "1 messages acknowledged after 2 already were");
        let unsent = AckError::Unsent { acked: 5, sent: 4 };
        assert_eq!(unsent.to_string(), "5 messages acknowledged but only 4 sent");
    }

    proptest! {
        /// Every message comes out exactly once, by acknowledgement or by the peer's end.
        #[test]
        fn no_message_is_lost_or_doubled(
            ops in prop::collection::vec((0u8..6, 0u32..3, 0u64..30), 0..200),
        ) {
            let (mut ledger, mut out, mut next) = (Ledger::new(), vec![], 0);
            let mut model = BTreeMap::<u32, (u64, Vec<MsgId>)>::new();
            for (op, peer, number) in ops {
                let (acked, queue) = model.entry(peer).or_default();
                out.clear();
                match op {
                    0..3 => {
                        ledger.on_sent(peer, MsgId(next));
                        queue.push(MsgId(next));
                        next += 1;
                    }
                    3 => {
                        ledger.on_gone(peer, &mut out);
                        prop_assert_eq!(&out, &*queue);
                        (*acked, *queue) = (0, vec![]);
                    }
                    _ => {
                        let result = ledger.on_ack(peer, number, &mut out);
                        let legal = *acked <= number && number <= *acked + queue.len() as u64;
                        prop_assert_eq!(result.is_ok(), legal);
                        let count = if legal { (number - *acked) as usize } else { 0 };
                        prop_assert!(out.iter().eq(queue.drain(..count).as_ref()));
                        *acked += count as u64;
                    }
                }
                prop_assert_eq!(ledger.unacked(peer), model[&peer].1.len());
                prop_assert_eq!(ledger.total(), model.values().map(|(_, q)| q.len()).sum::<usize>());
            }
        }
    }
}
