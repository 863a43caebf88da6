//! The lock in the shared memory of an endpoint.
//!
//! The provider shm begins a region with its version (one byte), the number of its process (at byte 4)
//! and a lock (`pthread_spin_lock(3)`, at byte 24): so in version 4, that of libfabric 1.17. Later ones
//! share no lock.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

const VERSION: u8 = 4;
const PID_AT: usize = 4;
const LOCK_AT: usize = 24;
/// What is mapped of a region: less than a page.
const HEAD_BYTES: usize = 64;

unsafe extern "C" {
    fn pthread_spin_trylock(lock: *mut c_int) -> c_int;
    fn pthread_spin_unlock(lock: *mut c_int) -> c_int;
}

/// The lock of one region.
pub(crate) struct RegionLock(MmapRaw);

impl RegionLock {
    /// That of the region at `path`, if it is the one of process `pid` and has a lock that is known.
    pub(crate) fn of(path: &Path, pid: i32) -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        if file.metadata().ok()?.len() < HEAD_BYTES as u64 {
            return None;
        }
        let lock = Self(MmapOptions::new().len(HEAD_BYTES).map_raw(&file).ok()?);
        (lock.version() == VERSION && lock.pid() == pid).then_some(lock)
    }

    fn version(&self) -> u8 {
        // SAFETY: the mapping is longer than this.
        unsafe { self.0.as_ptr().read_volatile() }
    }

    fn pid(&self) -> i32 {
        // SAFETY: the mapping is longer than this and begins at a page.
        unsafe { self.0.as_ptr().add(PID_AT).cast::<i32>().read_volatile() }
    }

    /// Gives the lock back, whoever took it; says whether it was taken.
    pub(crate) fn release(&self) -> bool {
        let lock = self.0.as_mut_ptr().wrapping_add(LOCK_AT).cast::<c_int>();
        // SAFETY: the mapping is longer than this and begins at a page; the word is such a lock in this
        // version of a region.
        unsafe {
            let was_taken = pthread_spin_trylock(lock) != 0;
            pthread_spin_unlock(lock);
            was_taken
        }
    }
}
