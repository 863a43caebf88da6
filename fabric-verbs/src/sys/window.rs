//! Memory windows of type 2B: keys that the device binds to one queue pair.

use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rdma_sys as ffi;

use super::memory::{Region, Rights};
use super::{Queues, check, note_leak};

/// A window over a region of its own, which it keeps. It opens once a request binds it to a queue
/// pair, and closes for good when it is dropped, which must be before that queue pair goes.
pub(crate) struct Window {
    raw: NonNull<ffi::ibv_mw>,
    key: u32,
    addr: u64,
    len: usize,
    rights: Rights,
    is_bound: AtomicBool,
    region: Region,
}

// SAFETY: verbs calls on a window may come from any thread; its plain fields do not change.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// A window over `len` bytes from `start`, which must stay allocated as long as it lives. The
    /// registration beneath it lets no peer do anything.
    ///
    /// # Errors
    /// What the host or the device says, for instance that it has no more windows.
    pub(crate) fn new(
        queues: &Arc<Queues>,
        start: *const u8,
        len: usize,
        rights: Rights,
    ) -> io::Result<Self> {
        let region = Region::new(queues, start, len, rights.beneath_window())?;
        // SAFETY: the domain is alive as `queues` is held.
        let raw = unsafe { ffi::ibv_alloc_mw(queues.pd(), ffi::ibv_mw_type::IBV_MW_TYPE_2) };
        let raw = raw.ok_or(io::ErrorKind::Unsupported)?;
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: it was made right now.
        let key = next_key(unsafe { raw.as_ref() }.rkey);
        let is_bound = AtomicBool::new(false);
        Ok(Self { raw, key, addr: start as u64, len, rights, is_bound, region })
    }

    /// The key for the peer's requests, once it is bound.
    pub(crate) fn remote_key(&self) -> u32 {
        self.key
    }

    /// Whether the request that binds it went well.
    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Relaxed)
    }

    /// The request that binds it went well.
    pub(crate) fn set_bound(&self) {
        self.is_bound.store(true, Ordering::Relaxed);
    }

    /// What a request that binds it says.
    pub(super) fn bind(&self) -> ffi::bind_mw_t {
        ffi::bind_mw_t {
            mw: self.raw.as_ptr(),
            rkey: self.key,
            bind_info: ffi::ibv_mw_bind_info {
                mr: self.region.raw(),
                addr: self.addr,
                length: self.len as u64,
                mw_access_flags: self.rights.remote_flags(),
            },
        }
    }
}

impl fmt::Debug for Window {
    /// Keys are secrets of a kind: only the length is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: made once, given up once; the region beneath goes afterwards, which waits for
        // what is under way.
        if let Err(error) = check(unsafe { ffi::ibv_dealloc_mw(self.raw.as_ptr()) }) {
            note_leak("a memory window", &error);
        }
    }
}

/// The owner of a key chooses its last byte, and must choose another one for each binding.
fn next_key(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_bindings_differ_in_their_last_byte_only() {
        assert_eq!(next_key(0x0102_0304), 0x0102_0305);
        assert_eq!(next_key(0x0102_03ff), 0x0102_0300);
    }

    #[test]
    fn requests_that_bind_are_laid_out_as_the_library_reads_them() {
        // `struct ibv_send_wr` of infiniband/verbs.h on 64-bit hosts.
        assert_eq!(size_of::<ffi::ibv_send_wr>(), 128);
        assert_eq!(std::mem::offset_of!(ffi::ibv_send_wr, bind_mw_tso_union), 80);
        assert_eq!(std::mem::offset_of!(ffi::bind_mw_t, bind_info), 16);
        assert_eq!(std::mem::offset_of!(ffi::ibv_mw_bind_info, mw_access_flags), 24);
    }
}
