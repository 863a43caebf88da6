//! A fixed number of equal slots in one block, so that a device registers them once.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::block::{ALIGN_BYTES, Block};
use crate::slot::Slot;

/// Why a pool could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A pool needs at least one slot of at least one byte, and at most `u32::MAX` slots.
    #[error(
        "a pool of {slots} slots of {slot_bytes} bytes makes no sense: both must be at least 1"
    )]
    Shape {
        /// Bytes a slot.
        slot_bytes: usize,
        /// Number of slots.
        slots: usize,
    },
    /// The allocator had no memory for it.
    #[error("no memory for a pool of {slots} slots of {slot_bytes} bytes: make it smaller")]
    OutOfMemory {
        /// Bytes a slot.
        slot_bytes: usize,
        /// Number of slots.
        slots: usize,
    },
}

/// Slots start at multiples of this many bytes, so that two of them never share a cache line.
const STRIDE_BYTES: usize = 64;

/// Slots of so many bytes start on pages of their own, so that the host can have them back.
const PAGED_BYTES_MIN: usize = 16 * ALIGN_BYTES;

pub(crate) struct Arena {
    block: Block,
    slot_bytes: usize,
    stride: usize,
    free: Mutex<Free>,
    slots: usize,
    /// Somebody asked where the memory is: a device may use it.
    known: AtomicBool,
}

/// Slots that nobody has.
struct Free {
    /// Those that came back; the last one is used first.
    returned: Vec<u32>,
    /// From here on nobody ever had any.
    fresh: u32,
}

impl Arena {
    pub(crate) fn place(&self, index: u32) -> (NonNull<u8>, usize) {
        let offset = index as usize * self.stride;
        // SAFETY: `index < slots`, so the offset stays inside the block.
        (unsafe { self.block.start().add(offset) }, self.slot_bytes)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn take_fresh(&self) -> Option<u32> {
        let mut free = self.free();
        let index = free.fresh;
        free.fresh += u32::from((index as usize) < self.slots);
        (index < free.fresh).then_some(index)
    }

    /// Gives the memory of a slot back to the host until it is used again, unless a device may know
    /// it or it shares pages with others.
    ///
    /// # Safety
    /// The caller has the only slot with this index.
    pub(crate) unsafe fn forget(&self, index: u32) {
        let paged = self.stride.is_multiple_of(ALIGN_BYTES);
        if paged && !self.known.load(Ordering::Acquire) {
            // SAFETY: the slot's pages are its own, as the stride says, and the slot the caller's.
            unsafe { self.block.forget(index as usize * self.stride, self.stride) }
        }
    }

    pub(crate) fn give_back(&self, index: u32) {
        self.free().returned.push(index);
    }
}

/// A cheap handle to a pool; clones share it. Slots may be taken and dropped on any thread.
#[derive(Clone)]
pub struct Pool(Arc<Arena>);

impl Pool {
    /// A pool of `slots` slots with `slot_bytes` bytes each, zeroed. Untouched slots cost no memory.
    ///
    /// # Errors
    /// [`PoolError`] when the shape makes no sense or the allocator refuses.
    pub fn new(slot_bytes: usize, slots: usize) -> Result<Self, PoolError> {
        let shape = PoolError::Shape { slot_bytes, slots };
        if slot_bytes == 0 || slots == 0 || u32::try_from(slots).is_err() {
            return Err(shape);
        }
        let unit = if slot_bytes < PAGED_BYTES_MIN { STRIDE_BYTES } else { ALIGN_BYTES };
        let stride = slot_bytes.checked_next_multiple_of(unit).ok_or(shape)?;
        let block = stride
            .checked_mul(slots)
            .and_then(Block::untouched)
            .ok_or(PoolError::OutOfMemory { slot_bytes, slots })?;
        // Mostly few of them are under way at a time.
        let returned = Vec::with_capacity(slots.min(8));
        let (free, known) = (Mutex::new(Free { returned, fresh: 0 }), AtomicBool::new(false));
        Ok(Self(Arc::new(Arena { block, slot_bytes, stride, free, slots, known })))
    }

    /// An empty slot, or `None` when all are in use.
    pub fn take(&self) -> Option<Slot> {
        let returned = self.0.free().returned.pop();
        let index = returned.or_else(|| self.0.take_fresh())?;
        Some(Slot::of_pool(self.0.clone(), index))
    }

    /// Bytes in each slot.
    pub fn slot_bytes(&self) -> usize {
        self.0.slot_bytes
    }

    /// Number of slots, in use or free.
    pub fn slots(&self) -> usize {
        self.0.slots
    }

    /// Number of slots free now.
    pub fn free(&self) -> usize {
        let free = self.0.free();
        free.returned.len() + self.0.slots - free.fresh as usize
    }

    /// Start of the memory that holds all slots, for registration with a device.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.known.store(true, Ordering::Release);
        self.0.block.start().as_ptr()
    }

    /// Length of that memory in bytes.
    pub fn bytes(&self) -> usize {
        self.0.block.bytes()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("slot_bytes", &self.slot_bytes())
            .field("slots", &self.slots())
            .field("free", &self.free())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pool_hands_out_each_slot_once() {
        let pool = Pool::new(100, 3).unwrap();
        let mut slots: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(slots.len(), 3);
        for (i, slot) in slots.iter_mut().enumerate() {
            slot.buffer_mut().fill(i as u8);
            slot.set_len(100);
        }
        for (i, slot) in slots.iter().enumerate() {
            assert!(slot.filled().iter().all(|&b| b == i as u8));
        }
        drop(slots);
        assert_eq!(pool.free(), 3);
    }

    #[test]
    fn a_slot_goes_home_when_its_last_frozen_handle_is_dropped() {
        let pool = Pool::new(8, 1).unwrap();
        let bytes = pool.take().unwrap().freeze();
        let other = bytes.clone();
        drop(bytes);
        assert_eq!(pool.free(), 0);
        drop(other);
        assert_eq!(pool.free(), 1);
    }

    #[test]
    fn a_slot_may_outlive_the_pool_handle() {
        let mut slot = Pool::new(8, 1).unwrap().take().unwrap();
        assert!(slot.append(b"12345678"));
    }

    #[test]
    fn what_a_slot_held_is_forgotten_unless_a_device_may_know_it() {
        for (known, expected) in [(false, 0), (true, 1)] {
            let pool = Pool::new(PAGED_BYTES_MIN + 1, 3).unwrap();
            if known {
                pool.as_ptr();
            }
            let mut slots: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
            for slot in &mut slots {
                slot.buffer_mut().fill(1);
                slot.set_len(7);
            }
            slots[1].forget();
            assert_eq!(slots[1].len(), 0);
            let all = |slot: &mut Slot, byte| slot.buffer_mut().iter().all(|&b| b == byte);
            assert!(all(&mut slots[1], expected));
            assert!(all(&mut slots[0], 1) && all(&mut slots[2], 1), "others keep what they have");
        }
    }

    #[test]
    fn small_slots_share_pages_and_keep_them() {
        let pool = Pool::new(64, 2).unwrap();
        let mut slot = pool.take().unwrap();
        assert!(slot.append(b"x"));
        slot.forget();
        assert_eq!((slot.len(), slot.buffer_mut()[0]), (0, b'x'));
    }

    #[test]
    fn shapes_without_sense_are_refused() {
        for (slot_bytes, slots) in [(0, 1), (1, 0), (usize::MAX, 2), (1, usize::MAX)] {
            assert!(Pool::new(slot_bytes, slots).is_err());
        }
    }

    proptest! {
        #[test]
        fn taking_and_dropping_in_any_order_keeps_count(ops in prop::collection::vec(any::<u8>(), 0..200)) {
            let pool = Pool::new(16, 8).unwrap();
            let mut held = Vec::new();
            for op in ops {
                if op % 2 == 0 {
                    held.extend(pool.take());
                } else if !held.is_empty() {
                    held.swap_remove(op as usize % held.len());
                }
                prop_assert_eq!(pool.free() + held.len(), 8);
            }
        }
    }
}
