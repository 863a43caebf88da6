//! The only handle to a piece of fabric memory.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use bytes::Bytes;

use crate::block::Block;
use crate::pool::Arena;

/// The allocator had no memory for a slot of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a buffer of {bytes} bytes: lower the message size limit or free memory")]
pub struct OutOfMemory {
    /// What was asked for, in bytes.
    pub bytes: usize,
}

/// Where the memory goes when the slot is dropped.
enum Home {
    Pool { arena: Arc<Arena>, index: u32 },
    Own { _block: Block },
}

/// Exclusive access to `capacity()` bytes, of which the first `len()` are filled.
///
/// Not `Clone`: who holds the slot is alone with its memory.
pub struct Slot {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
    home: Home,
}

// SAFETY: a slot is the only handle to its bytes, and both homes are `Send`.
unsafe impl Send for Slot {}
// SAFETY: a shared slot only reads its bytes, and nothing can write them meanwhile.
unsafe impl Sync for Slot {}

impl Slot {
    /// A slot of its own, outside any pool, with `bytes` zeroed bytes of capacity: for messages too
    /// large for a pool.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the allocator refuses; never aborts.
    pub fn alloc(bytes: usize) -> Result<Self, OutOfMemory> {
        let block = Block::new(bytes).ok_or(OutOfMemory { bytes })?;
        Ok(Self {
            start: block.start(),
            capacity: bytes,
            len: 0,
            home: Home::Own { _block: block },
        })
    }

    pub(crate) fn of_pool(arena: Arc<Arena>, index: u32) -> Self {
        let (start, capacity) = arena.place(index);
        Self { start, capacity, len: 0, home: Home::Pool { arena, index } }
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many bytes are filled.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is filled.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes can still be appended.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// The filled bytes.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: `start` is valid for `capacity` initialised bytes, `len <= capacity`, and
        // `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The whole capacity, filled or not. Bytes past `len()` hold what an earlier use left there.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` is valid for `capacity` initialised bytes, and `&mut self` is the only
        // handle to them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }

    /// Empties it and lets the host have its memory until it is used again, where that is possible
    /// without harm. Costs a system call: for slots that will be idle.
    pub fn forget(&mut self) {
        self.len = 0;
        if let Home::Pool { arena, index } = &self.home {
            // SAFETY: this slot is the only one with its index, and it is not lent.
            unsafe { arena.forget(*index) }
        }
    }

    /// Says how many bytes are filled.
    ///
    /// # Panics
    /// If `len` is over the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity, "{len} bytes do not fit a slot of {}", self.capacity);
        self.len = len;
    }

    /// Appends `bytes` if they fit, and says whether they did.
    #[inline]
    #[must_use]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let (from, to) = (self.len, self.len + bytes.len());
        if to > self.capacity {
            return false;
        }
        self.buffer_mut()[from..to].copy_from_slice(bytes);
        self.len = to;
        true
    }

    /// Gives up writing: the filled bytes become shareable, and the memory goes home when the last
    /// handle is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Home::Pool { arena, index } = &self.home {
            arena.give_back(*index);
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pooled = matches!(self.home, Home::Pool { .. });
        f.debug_struct("Slot")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .field("pooled", &pooled)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_that_does_not_fit_changes_nothing() {
        let mut slot = Slot::alloc(4).unwrap();
        assert!(slot.append(b"abc"));
        assert!(!slot.append(b"de"));
        assert_eq!(slot.filled(), b"abc");
        assert_eq!(slot.room(), 1);
    }

    #[test]
    fn an_absurd_size_is_refused_without_an_abort() {
        assert_eq!(Slot::alloc(usize::MAX - 8192).unwrap_err().bytes, usize::MAX - 8192);
    }

    #[test]
    fn frozen_bytes_outlive_the_handle_that_froze_them() {
        let mut slot = Slot::alloc(8).unwrap();
        assert!(slot.append(b"frozen"));
        let bytes = slot.freeze();
        let tail = bytes.slice(3..);
        drop(bytes);
        assert_eq!(&tail[..], b"zen");
    }

    #[test]
    #[should_panic(expected = "do not fit")]
    fn a_length_over_the_capacity_is_misuse() {
        Slot::alloc(4).unwrap().set_len(5);
    }
}
