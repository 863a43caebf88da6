//! Posted receive slots, shared by all endpoints of a domain.

use std::collections::VecDeque;

use fabric_core::{OpId, Slot};

/// A posted slot.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) op: OpId,
    pub(crate) slot: Slot,
}

/// Slots in the order they were posted. One that a connection has begun to fill still counts.
#[derive(Debug)]
pub(crate) struct Recvs {
    free: VecDeque<Posted>,
    taken: usize,
    depth_max: usize,
}

impl Recvs {
    pub(crate) fn new(depth_max: usize) -> Self {
        Self { free: VecDeque::new(), taken: 0, depth_max }
    }

    /// Whether one more must be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.free.len() + self.taken >= self.depth_max
    }

    pub(crate) fn post(&mut self, posted: Posted) {
        self.free.push_back(posted);
    }

    /// Whether no connection can begin a message.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Takes the slot whose turn it is; it comes back by `put_back` or leaves by `delivered`.
    pub(crate) fn take(&mut self) -> Option<Posted> {
        let posted = self.free.pop_front()?;
        self.taken += 1;
        Some(posted)
    }

    /// Gives back a slot in which no message was completed.
    pub(crate) fn put_back(&mut self, posted: Posted) {
        self.taken -= 1;
        self.free.push_front(posted);
    }

    /// A slot that was taken left in an event.
    pub(crate) fn delivered(&mut self) {
        self.taken -= 1;
    }

    /// Memory of the slot whose turn it is, to read ahead into.
    pub(crate) fn next_buffer(&mut self) -> Option<&mut [u8]> {
        self.free.front_mut().map(|posted| posted.slot.buffer_mut())
    }
}
