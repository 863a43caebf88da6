//! The slots that the user offered, oldest first.

use std::collections::VecDeque;

use fabric_core::{EpId, Event, OpId, Slot};

/// A posted receive.
#[derive(Debug)]
pub struct Posted {
    /// The post's number.
    pub op: OpId,
    /// The memory to receive into.
    pub slot: Slot,
}

impl Posted {
    /// What arrived in it, for the user.
    #[inline]
    pub fn received(self, ep: EpId, imm: Option<u32>) -> Event {
        Event::Received { ep, op: self.op, slot: self.slot, imm }
    }
}

/// A bounded queue of them.
#[derive(Debug)]
pub struct Recvs {
    queue: VecDeque<Posted>,
    depth_max: usize,
}

impl Recvs {
    /// Room for `depth_max` receives, none posted.
    pub fn new(depth_max: usize) -> Self {
        Self { queue: VecDeque::new(), depth_max }
    }

    /// Whether one more must be refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.depth_max
    }

    /// Whether none is posted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Puts one behind the others.
    #[inline]
    pub fn post(&mut self, posted: Posted) {
        self.queue.push_back(posted);
    }

    /// The oldest.
    #[inline]
    pub fn take(&mut self) -> Option<Posted> {
        self.queue.pop_front()
    }

    /// Bytes that the next one has room for.
    #[inline]
    pub fn room(&self) -> Option<usize> {
        self.queue.front().map(|posted| posted.slot.capacity())
    }

    /// Puts a message that came in one piece into the oldest, if it fits there.
    #[inline]
    pub fn receive(&mut self, ep: EpId, bytes: &[u8]) -> Option<Event> {
        let mut posted = self.take()?;
        posted.slot.set_len(0);
        if posted.slot.append(bytes) {
            return Some(posted.received(ep, None));
        }
        self.untake(posted);
        None
    }

    /// Gives back one that was taken for a message that never became whole; its turn comes first.
    pub fn untake(&mut self, posted: Posted) {
        self.queue.push_front(posted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(op: u64) -> Posted {
        Posted { op: OpId(op), slot: Slot::alloc(8).unwrap() }
    }

    #[test]
    fn a_message_in_one_piece_goes_to_the_oldest_if_it_fits() {
        let mut recvs = Recvs::new(2);
        recvs.post(posted(1));
        assert!(recvs.receive(EpId(3), b"nine bytes").is_none());
        match recvs.receive(EpId(3), b"eight by") {
            Some(Event::Received { ep: EpId(3), op: OpId(1), slot, imm: None }) => {
                assert_eq!(slot.filled(), b"eight by");
            }
            other => panic!("{other:?}"),
        }
        assert!(recvs.receive(EpId(3), b"").is_none());
    }

    #[test]
    fn what_is_given_back_has_its_turn_first() {
        let mut recvs = Recvs::new(2);
        recvs.post(posted(1));
        assert!(!recvs.is_full());
        recvs.post(posted(2));
        assert!(recvs.is_full());
        let first = recvs.take().unwrap();
        recvs.untake(first);
        assert_eq!(recvs.take().unwrap().op, OpId(1));
        assert_eq!(recvs.take().unwrap().op, OpId(2));
        assert!(recvs.is_empty() && recvs.room().is_none());
    }
}
