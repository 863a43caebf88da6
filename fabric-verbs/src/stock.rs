//! Packets for what arrives, and those that never come back.
//!
//! The device takes receives of the shared queue in the order in which they were posted. A queue
//! pair that breaks in the middle of a message keeps the one it had taken, and nobody is told which.
//! So each has a number, and one that later ones have long overtaken is taken back: whoever had it
//! has finished or is gone. A late completion of it finds nothing under its number.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric_core::{Error, ErrorKind};
use slab::Slab;
use smallvec::SmallVec;

use crate::buffers::{Own, Packet};
use crate::limits::{CHUNK_PACKETS, PACKET_BYTES, STOCK_MAX};
use crate::sys::{Queues, RecvWr, Rights};

/// Marks receives of the shared queue in completions.
pub(crate) const SHARED_RECV: u64 = 1 << 63;

/// Bits of a completion's number that say where the receive stands; the others count.
const INDEX_BITS: u32 = 20;

/// How often the count is noted.
const NOTE_EVERY: Duration = Duration::from_secs(10);
/// How long an overtaken receive may be somebody's: longer than any device repeats a message.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Packets that stand in the shared queue, hold what was not read yet, or are free.
pub(crate) struct Stock {
    posted: Slab<(u64, Packet)>,
    free: Vec<Packet>,
    total: usize,
    total_max: usize,
    next_number: u64,
    /// The newest that came back.
    newest: u64,
    notes: VecDeque<Note>,
    /// Connections that broke, each of which may have kept a packet.
    suspects: usize,
    fresh_suspects: usize,
    chunks: Vec<Own>,
}

/// What was so at a time.
#[derive(Debug, Clone, Copy)]
struct Note {
    at: Instant,
    newest: u64,
    suspects: usize,
}

impl Stock {
    /// No packets yet, at most `total_max`.
    pub(crate) fn new(total_max: usize) -> Self {
        Self {
            posted: Slab::new(),
            free: Vec::new(),
            total: 0,
            total_max: total_max.min(STOCK_MAX),
            next_number: 1,
            newest: 0,
            notes: VecDeque::new(),
            suspects: 0,
            fresh_suspects: 0,
            chunks: Vec::new(),
        }
    }

    /// Makes sure that there are `needed` packets besides those that may be lost.
    ///
    /// # Errors
    /// `Full` when that is over the limit, `Host` when memory cannot be had or locked.
    pub(crate) fn grow_to(&mut self, needed: usize, queues: &Arc<Queues>) -> Result<(), Error> {
        let needed = needed + self.suspects;
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

    /// Whether fewer than `needed` packets stand in the queue, besides those that may be lost.
    pub(crate) fn is_short_of(&self, needed: usize) -> bool {
        self.posted.len() < needed + self.suspects
    }

    /// A packet was read and may be posted again.
    pub(crate) fn give_back(&mut self, packet: Packet) {
        self.free.push(packet);
    }

    /// A connection broke.
    pub(crate) fn on_broken(&mut self) {
        self.suspects += 1;
        self.fresh_suspects += 1;
    }

    /// A receive ended.
    pub(crate) fn take(&mut self, id: u64, bytes: usize) -> Option<Packet> {
        let (index, number) = split(id);
        self.posted.get(index).filter(|(known, _)| *known == number)?;
        let (_, mut packet) = self.posted.try_remove(index)?;
        self.newest = self.newest.max(number);
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
        let mut free = std::mem::take(&mut self.free);
        let wrs: SmallVec<[RecvWr; 4]> = free.drain(..).map(|packet| self.put(packet)).collect();
        // It keeps its room.
        self.free = free;
        let (count, result) = queues.post_recvs(&wrs);
        for wr in &wrs[count..] {
            let (index, _) = split(wr.id);
            self.free.extend(self.posted.try_remove(index).map(|(_, packet)| packet));
        }
        result
    }

    /// Takes back what was lost long ago.
    pub(crate) fn age(&mut self, now: Instant) {
        let is_time = |note: &Note| now.saturating_duration_since(note.at) >= NOTE_EVERY;
        if self.notes.back().is_none_or(is_time) {
            let suspects = std::mem::take(&mut self.fresh_suspects);
            self.notes.push_back(Note { at: now, newest: self.newest, suspects });
        }
        while let Some(&note) = self.notes.front() {
            if now.saturating_duration_since(note.at) < LOST_AFTER {
                return;
            }
            self.notes.pop_front();
            self.suspects = self.suspects.saturating_sub(note.suspects);
            self.take_back(note.newest);
        }
    }

    fn take_back(&mut self, before: u64) {
        let old =
            |(index, (number, _)): (usize, &(u64, Packet))| (*number < before).then_some(index);
        let lost: Vec<usize> = self.posted.iter().filter_map(old).collect();
        if !lost.is_empty() {
            tracing::debug!(count = lost.len(), "receives of broken connections are taken back");
        }
        for index in lost {
            self.free.extend(self.posted.try_remove(index).map(|(_, packet)| packet));
        }
    }

    fn put(&mut self, mut packet: Packet) -> RecvWr {
        let number = self.next_number;
        self.next_number += 1;
        let id = SHARED_RECV | number << INDEX_BITS | self.posted.vacant_key() as u64;
        let to = packet.room_sge(PACKET_BYTES);
        self.posted.insert((number, packet));
        RecvWr { id, to }
    }
}

fn split(id: u64) -> (usize, u64) {
    let id = id & !SHARED_RECV;
    ((id & ((1 << INDEX_BITS) - 1)) as usize, id >> INDEX_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that no device knows.
    fn posted(count: usize) -> (Stock, Vec<u64>) {
        let mut stock = Stock::new(count);
        let pool = fabric_core::Pool::new(64, count).unwrap();
        let packets = std::iter::from_fn(|| pool.take()).map(Packet::unregistered);
        let ids =
            packets.collect::<Vec<_>>().into_iter().map(|packet| stock.put(packet).id).collect();
        (stock, ids)
    }

    #[test]
    fn a_receive_comes_back_once() {
        let (mut stock, ids) = posted(2);
        assert_eq!(stock.take(ids[0], 5).unwrap().slot.len(), 5);
        assert!(stock.take(ids[0], 5).is_none());
    }

    #[test]
    fn a_receive_that_was_overtaken_long_ago_is_taken_back() {
        let (mut stock, ids) = posted(4);
        let start = Instant::now();
        stock.on_broken();
        stock.take(ids[2], 1).unwrap();
        stock.age(start);
        stock.age(start + LOST_AFTER / 2);
        assert_eq!((stock.free.len(), stock.suspects), (0, 1));
        stock.age(start + LOST_AFTER);
        // The first two were overtaken by the third; the fourth may still be the next one.
        assert_eq!((stock.free.len(), stock.suspects), (2, 0));
        assert!(stock.take(ids[0], 1).is_none(), "a late completion finds nothing");
        assert!(stock.take(ids[3], 1).is_some());
    }
}
