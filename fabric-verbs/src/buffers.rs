//! Registered memory of the provider's own and of the user's pools.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric_core::{Error, ErrorKind, Pool, Slot};

use crate::limits::{HEAD_SLOT_BYTES, OUT_HEADS, OUT_PACKETS, PACKET_BYTES};
use crate::status;
use crate::sys::{Queues, Region, Rights, Sge};

/// A registered slot of the provider's own.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) slot: Slot,
    key: u32,
}

impl Packet {
    #[cfg(test)]
    pub(crate) fn unregistered(slot: Slot) -> Self {
        Self { slot, key: 0 }
    }

    /// The filled bytes, for a request.
    pub(crate) fn sge(&self) -> Sge {
        Sge::of(self.slot.filled(), self.key)
    }

    /// The first `len` bytes, filled or not, for a receive.
    pub(crate) fn room_sge(&mut self, len: usize) -> Sge {
        let len = len.min(self.slot.capacity());
        Sge::of(&self.slot.buffer_mut()[..len], self.key)
    }
}

/// A pool of the provider's own with its registration. The region is dropped first.
pub(crate) struct Own {
    region: Region,
    pool: Pool,
}

impl Own {
    /// # Errors
    /// `Host` when there is no memory or it cannot be locked.
    pub(crate) fn new(
        queues: &Arc<Queues>,
        slot_bytes: usize,
        slots: usize,
        rights: Rights,
    ) -> Result<Self, Error> {
        let pool = Pool::new(slot_bytes, slots)
            .map_err(|error| Error::new(ErrorKind::Host, "no memory").with_source(error))?;
        let region = Region::new(queues, pool.as_ptr(), pool.bytes(), rights)
            .map_err(|error| status::register_error(error, pool.bytes()))?;
        Ok(Self { region, pool })
    }

    pub(crate) fn take(&self) -> Option<Packet> {
        Some(Packet { slot: self.pool.take()?, key: self.region.local_key() })
    }
}

/// Packets on their way out: whole ones, and small ones for heads.
pub(crate) struct OutPackets {
    packets: Own,
    heads: Own,
}

impl OutPackets {
    /// # Errors
    /// As [`Own::new`].
    pub(crate) fn new(queues: &Arc<Queues>) -> Result<Self, Error> {
        // Results of atomics are written here.
        let packets = Own::new(queues, PACKET_BYTES, OUT_PACKETS, Rights::LOCAL)?;
        let heads = Own::new(queues, HEAD_SLOT_BYTES, OUT_HEADS, Rights::LOCAL)?;
        Ok(Self { packets, heads })
    }

    /// A packet for `len` bytes, if one is free.
    pub(crate) fn take(&self, len: usize) -> Option<Packet> {
        if len <= HEAD_SLOT_BYTES
            && let Some(packet) = self.heads.take()
        {
            return Some(packet);
        }
        self.packets.take()
    }
}

/// The user's pools with their registrations.
#[derive(Default)]
pub(crate) struct Registry {
    /// By the address where the pool starts.
    pools: BTreeMap<usize, Registered>,
}

struct Registered {
    region: Region,
    pool: Pool,
}

impl Registry {
    /// # Errors
    /// `Host` when the memory cannot be locked.
    pub(crate) fn insert(&mut self, pool: &Pool, queues: &Arc<Queues>) -> Result<(), Error> {
        let start = pool.as_ptr() as usize;
        if self.pools.contains_key(&start) {
            return Ok(());
        }
        let region = Region::new(queues, pool.as_ptr(), pool.bytes(), Rights::LOCAL)
            .map_err(|error| status::register_error(error, pool.bytes()))?;
        self.pools.insert(start, Registered { region, pool: pool.clone() });
        Ok(())
    }

    /// The key for `len` bytes from `start`, if they lie in a registered pool.
    pub(crate) fn key_of(&self, start: *const u8, len: usize) -> Option<u32> {
        let start = start as usize;
        let (from, found) = self.pools.range(..=start).next_back()?;
        let end = from + found.pool.bytes();
        (start + len <= end).then(|| found.region.local_key())
    }
}
