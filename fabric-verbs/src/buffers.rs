//! Registered memory of the provider's own and of the user's pools.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fabric_core::{Error, ErrorKind, Pool, Slot};
use slab::Slab;

use crate::limits::{
    CHUNK_PACKETS, HEAD_SLOT_BYTES, OUT_HEADS, OUT_PACKETS, PACKET_BYTES, STOCK_MAX,
};
use crate::status;
use crate::sys::{Queues, RecvWr, Region, Rights, Sge};

/// Marks receives of the shared queue in completions.
pub(crate) const SHARED_RECV: u64 = 1 << 63;

/// A registered slot of the provider's own.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) slot: Slot,
    key: u32,
}

impl Packet {
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

/// Packets for what arrives. They stand in the shared queue, hold what was not read yet, or are free.
pub(crate) struct Stock {
    posted: Slab<Packet>,
    free: Vec<Packet>,
    total: usize,
    total_max: usize,
    chunks: Vec<Own>,
}

impl Stock {
    /// No packets yet, at most `total_max`.
    pub(crate) fn new(total_max: usize) -> Self {
        let total_max = total_max.min(STOCK_MAX);
        Self { posted: Slab::new(), free: Vec::new(), total: 0, total_max, chunks: Vec::new() }
    }

    /// All packets there are.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Makes sure that there are `needed` packets.
    ///
    /// # Errors
    /// `Full` when that is over the limit, `Host` when memory cannot be had or locked.
    pub(crate) fn grow_to(&mut self, needed: usize, queues: &Arc<Queues>) -> Result<(), Error> {
        if needed > self.total_max {
            let text = format!("{} packets are all this device can have waiting", self.total_max);
            return Err(Error::new(ErrorKind::Full, text));
        }
        while self.total < needed {
            let count = CHUNK_PACKETS.min(self.total_max - self.total);
            let chunk = Own::new(queues, PACKET_BYTES, count, Rights::LOCAL)?;
            self.free.extend(std::iter::from_fn(|| chunk.take()));
            self.total += count;
            self.chunks.push(chunk);
        }
        Ok(())
    }

    /// A packet was read and may be posted again.
    pub(crate) fn give_back(&mut self, packet: Packet) {
        self.free.push(packet);
    }

    /// A receive ended.
    pub(crate) fn take(&mut self, id: u64, bytes: usize) -> Option<Packet> {
        let mut packet = self.posted.try_remove((id & !SHARED_RECV) as usize)?;
        packet.slot.set_len(bytes.min(packet.slot.capacity()));
        Some(packet)
    }

    /// Hands all free packets to the device.
    ///
    /// # Errors
    /// What the device says; what it did not take stays free.
    pub(crate) fn post(&mut self, queues: &Queues) -> io::Result<()> {
        if self.free.is_empty() {
            return Ok(());
        }
        let wrs: Vec<RecvWr> =
            self.free.drain(..).map(|packet| put(&mut self.posted, packet)).collect();
        let (count, result) = queues.post_recvs(&wrs);
        for wr in &wrs[count..] {
            self.free.extend(self.posted.try_remove((wr.id & !SHARED_RECV) as usize));
        }
        result
    }
}

fn put(posted: &mut Slab<Packet>, mut packet: Packet) -> RecvWr {
    let id = SHARED_RECV | posted.vacant_key() as u64;
    let to = packet.room_sge(PACKET_BYTES);
    posted.insert(packet);
    RecvWr { id, to }
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
