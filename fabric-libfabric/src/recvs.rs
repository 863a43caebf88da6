//! The slots that the user offered, oldest first.

use std::collections::VecDeque;

use fabric_core::{OpId, Slot};

/// A posted receive.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) op: OpId,
    pub(crate) slot: Slot,
}

/// A bounded queue of them.
#[derive(Debug)]
pub(crate) struct Recvs {
    queue: VecDeque<Posted>,
    depth_max: usize,
}

impl Recvs {
    pub(crate) fn new(depth_max: usize) -> Self {
        Self { queue: VecDeque::new(), depth_max }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.depth_max
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn post(&mut self, posted: Posted) {
        self.queue.push_back(posted);
    }

    pub(crate) fn take(&mut self) -> Option<Posted> {
        self.queue.pop_front()
    }

    /// Bytes that the next one has room for.
    pub(crate) fn room(&self) -> Option<usize> {
        self.queue.front().map(|posted| posted.slot.capacity())
    }

    /// Gives back one that was taken for a message that never became whole.
    pub(crate) fn untake(&mut self, posted: Posted) {
        self.queue.push_front(posted);
    }
}
