//! The pointers that operations are posted with and that come back in their completions.
//!
//! Some providers keep notes of their own where such a pointer leads (the modes `FI_CONTEXT` and
//! `FI_CONTEXT2` of `fi_getinfo(3)`), so each leads to a place of that size, which stays where it is.

use std::ffi::c_void;

/// What `struct fi_context2` holds.
const WORDS: usize = 8;

/// Places made at once.
const CHUNK: usize = 256;

#[repr(C)]
struct Place {
    /// The provider's, while an operation is in flight.
    notes: [usize; WORDS],
    index: usize,
}

/// Places for any number of operations. They live as long as this does.
#[derive(Default)]
pub(crate) struct Contexts {
    chunks: Vec<Box<[Place]>>,
}

impl Contexts {
    /// The pointer for operation number `index`.
    pub(super) fn pointer(&mut self, index: usize) -> *mut c_void {
        while self.chunks.len() * CHUNK <= index {
            let first = self.chunks.len() * CHUNK;
            let place = |i| Place { notes: [0; WORDS], index: first + i };
            self.chunks.push((0..CHUNK).map(place).collect());
        }
        let chunk = &mut self.chunks[index / CHUNK];
        std::ptr::from_mut(&mut chunk[index % CHUNK]).cast()
    }

    /// The number of the operation whose pointer this is; `None` if it is none of these.
    pub(super) fn index_of(&self, pointer: *mut c_void) -> Option<usize> {
        let at = pointer as usize;
        let chunk = self.chunks.iter().find(|chunk| {
            let range = chunk.as_ptr_range();
            (range.start as usize..range.end as usize).contains(&at)
        })?;
        let offset = at - chunk.as_ptr() as usize;
        let is_place = offset.is_multiple_of(size_of::<Place>());
        is_place.then(|| chunk[offset / size_of::<Place>()].index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_back_to_its_number_and_others_lead_nowhere() {
        let mut contexts = Contexts::default();
        for index in [0, 1, CHUNK - 1, CHUNK, 5 * CHUNK + 7] {
            let pointer = contexts.pointer(index);
            assert_eq!(contexts.index_of(pointer), Some(index));
            assert_eq!(contexts.index_of(pointer.wrapping_byte_add(8)), None);
        }
        assert_eq!(contexts.index_of(std::ptr::null_mut()), None);
    }
}
