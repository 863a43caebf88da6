//! One owned, zeroed, aligned allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use memmap2::{MmapMut, UncheckedAdvice};

/// Page size assumed for alignment, in bytes. Devices register whole pages, and page alignment
/// also satisfies every atomic.
pub(crate) const ALIGN_BYTES: usize = 4096;

/// Blocks up to here would be mostly alignment: they start at a cache line, which satisfies every
/// atomic too.
const SMALL_BYTES_MAX: usize = 1024;
const LINE_BYTES: usize = 64;

/// From here on a block that may stay untouched is mapped by itself: the allocator would clear
/// memory that was used before, and keep its own notes on the first page of what was not.
const MAPPED_BYTES_MIN: usize = 64 << 10;

pub(crate) struct Block {
    home: Home,
    start: NonNull<u8>,
    bytes: usize,
}

/// Where the memory is from.
enum Home {
    /// The allocator, with room to align in.
    Heap { raw: NonNull<u8>, layout: Layout },
    /// Pages of its own, which are nothing until written.
    Mapped(MmapMut),
}

// SAFETY: a block owns its allocation exclusively and has no interior state tied to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells its address and length; access to bytes goes through slots,
// which are unique.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory of `bytes` bytes (at least one) that costs nothing until written, or `None` if
    /// the host refuses.
    pub(crate) fn untouched(bytes: usize) -> Option<Self> {
        if bytes < MAPPED_BYTES_MIN {
            return Self::new(bytes);
        }
        let mut map = MmapMut::map_anon(bytes).ok()?;
        let start = NonNull::new(map.as_mut_ptr())?;
        Some(Self { home: Home::Mapped(map), start, bytes })
    }

    /// Zeroed memory of `bytes` bytes (at least one) that is used at once, or `None` if the
    /// allocator refuses. It is asked for no alignment, which would have it clear by hand what the
    /// kernel has cleared.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.max(1);
        let align = if bytes <= SMALL_BYTES_MAX { LINE_BYTES } else { ALIGN_BYTES };
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 1).ok()?;
        // SAFETY: the layout has a non-zero size.
        let raw = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = raw.as_ptr().align_offset(align);
        // SAFETY: aligning skips less than `align`, which the layout has beyond `bytes`.
        let start = unsafe { raw.add(offset) };
        Some(Self { home: Home::Heap { raw, layout }, start, bytes })
    }

    /// Gives whole pages back to the host, if they were mapped: they are zero from now on, and
    /// nothing until written (madvise(2), `MADV_DONTNEED`).
    ///
    /// # Safety
    /// Nobody else uses these bytes, no device knows them, and both `from` and `bytes` are multiples
    /// of `ALIGN_BYTES` within the block.
    pub(crate) unsafe fn forget(&self, from: usize, bytes: usize) {
        if let Home::Mapped(map) = &self.home {
            // SAFETY: as the caller says; zero bytes are as good as any others. A host that refuses
            // leaves everything as it is.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, bytes) };
        }
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
        if let Home::Heap { raw, layout } = self.home {
            // SAFETY: `raw` came from `alloc_zeroed` with this layout and is freed once, here.
            unsafe { dealloc(raw.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_aligned_and_zeroed() {
        let sizes = [1, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, 4096, 1 << 20];
        for block in sizes.map(Block::new).into_iter().chain(sizes.map(Block::untouched)) {
            let block = block.unwrap();
            let small = block.bytes() <= SMALL_BYTES_MAX;
            let align = if small { LINE_BYTES } else { ALIGN_BYTES };
            assert_eq!(block.start().as_ptr() as usize % align, 0);
            // SAFETY: the block has `bytes` initialised bytes and nobody writes them.
            let found =
                unsafe { std::slice::from_raw_parts(block.start().as_ptr(), block.bytes()) };
            assert!(found.iter().all(|&byte| byte == 0));
        }
    }
}
