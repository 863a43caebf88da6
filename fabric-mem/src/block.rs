//! One owned, zeroed, page-aligned allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Page size assumed for alignment, in bytes. Devices register whole pages, and page alignment
/// also satisfies every atomic.
const ALIGN_BYTES: usize = 4096;

pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block owns its allocation exclusively and has no interior state tied to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells its address and length; access to bytes goes through slots,
// which are unique.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory of `bytes` bytes (at least one), or `None` if the allocator refuses.
    ///
    /// Large blocks come as untouched pages of the kernel and cost nothing until written.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN_BYTES).ok()?;
        // SAFETY: the layout has a non-zero size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout and is freed once, here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
