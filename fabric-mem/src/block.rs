//! One owned, zeroed, page-aligned allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Page size assumed for alignment, in bytes. Devices register whole pages, and page alignment
/// also satisfies every atomic.
const ALIGN_BYTES: usize = 4096;

pub(crate) struct Block {
    /// What the allocator gave, with room to align in.
    raw: NonNull<u8>,
    layout: Layout,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block owns its allocation exclusively and has no interior state tied to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells its address and length; access to bytes goes through slots,
// which are unique.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory of `bytes` bytes (at least one), or `None` if the allocator refuses.
    ///
    /// Large blocks come as untouched pages of the kernel and cost nothing until written: that is
    /// why the allocator is asked for no alignment, which would have it clear them by hand.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.max(1);
        let layout = Layout::from_size_align(bytes.checked_add(ALIGN_BYTES)?, 1).ok()?;
        // SAFETY: the layout has a non-zero size.
        let raw = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = raw.as_ptr().align_offset(ALIGN_BYTES);
        // SAFETY: aligning skips less than ALIGN_BYTES, which the layout has beyond `bytes`.
        let start = unsafe { raw.add(offset) };
        Some(Self { raw, layout, start, bytes })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `alloc_zeroed` with this layout and is freed once, here.
        unsafe { dealloc(self.raw.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_aligned_and_zeroed() {
        for bytes in [1, 4095, 4096, 1 << 20] {
            let block = Block::new(bytes).unwrap();
            assert_eq!(block.start().as_ptr() as usize % ALIGN_BYTES, 0);
            // SAFETY: the block has `bytes` initialised bytes and nobody writes them.
            let found =
                unsafe { std::slice::from_raw_parts(block.start().as_ptr(), block.bytes()) };
            assert!(found.iter().all(|&byte| byte == 0));
        }
    }
}
