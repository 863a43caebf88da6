//! Memory that a device may reach.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as ffi;

use super::queues::Queues;
use super::{check, note_leak};

/// What a device may do with a region on behalf of the peer, besides reading it for this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rights {
    /// Write it for this side: receives and results of reads.
    pub(crate) local_write: bool,
    /// Peers read it.
    pub(crate) remote_read: bool,
    /// Peers write it.
    pub(crate) remote_write: bool,
    /// Peers use atomics on it.
    pub(crate) remote_atomic: bool,
    /// Windows open parts of it to peers.
    pub(crate) windows: bool,
}

impl Rights {
    /// What this side sends from.
    pub(crate) const SEND: Self = Self {
        local_write: false,
        remote_read: false,
        remote_write: false,
        remote_atomic: false,
        windows: false,
    };
    /// What this side also receives into.
    pub(crate) const LOCAL: Self = Self { local_write: true, ..Self::SEND };

    /// Those of a region that peers reach through a window only.
    pub(super) fn beneath_window(self) -> Self {
        Self { local_write: self.changes(), windows: true, ..Self::SEND }
    }

    fn changes(self) -> bool {
        self.local_write || self.remote_write || self.remote_atomic
    }

    fn flags(self) -> u32 {
        let local = [
            // Verbs want the local right where a peer may change the memory.
            (self.changes(), ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE),
            (self.windows, ffi::ibv_access_flags::IBV_ACCESS_MW_BIND),
        ];
        self.remote_flags() | sum(local)
    }

    /// Those of the peer.
    pub(super) fn remote_flags(self) -> u32 {
        sum([
            (self.remote_read, ffi::ibv_access_flags::IBV_ACCESS_REMOTE_READ),
            (self.remote_write, ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE),
            (self.remote_atomic, ffi::ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC),
        ])
    }
}

fn sum<const N: usize>(flags: [(bool, ffi::ibv_access_flags); N]) -> u32 {
    flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag.0)
}

/// A registration. The memory must outlive it.
pub(crate) struct Region {
    raw: NonNull<ffi::ibv_mr>,
    _queues: Arc<Queues>,
}

// SAFETY: verbs calls on a region may come from any thread; its fields do not change.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Registers `len` bytes from `start`, which must stay allocated as long as the region lives.
    ///
    /// # Errors
    /// What the host says: locked memory is limited, and read-only files cannot be locked everywhere.
    pub(crate) fn new(
        queues: &Arc<Queues>,
        start: *const u8,
        len: usize,
        rights: Rights,
    ) -> io::Result<Self> {
        let flags = rights.flags();
        // SAFETY: the domain is alive as `queues` is held; registering only locks the pages. That
        // nobody frees the memory meanwhile is this function's documented condition.
        let raw =
            unsafe { ffi::ibv_reg_mr(queues.pd(), start.cast_mut().cast(), len, flags as i32) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { raw, _queues: queues.clone() })
    }

    pub(super) fn raw(&self) -> *mut ffi::ibv_mr {
        self.raw.as_ptr()
    }

    /// The key for this side's requests.
    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: the region is registered while `self` lives.
        unsafe { self.raw.as_ref() }.lkey
    }

    /// The key for the peer's requests.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: the region is registered while `self` lives.
        unsafe { self.raw.as_ref() }.rkey
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: registered once, deregistered once.
        if let Err(error) = check(unsafe { ffi::ibv_dereg_mr(self.raw.as_ptr()) }) {
            note_leak("a memory region", &error);
        }
    }
}

/// Memory that peers may read and write at any time, so nobody holds a slice of it.
pub(crate) struct Mapped {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: only an address; access to it goes through copies that expect changes.
unsafe impl Send for Mapped {}

impl Mapped {
    /// `len` bytes from `start`, which must stay allocated as long as this is used.
    pub(crate) fn new(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len }
    }

    /// Copies bytes out. `None` if the range is beyond the memory.
    pub(crate) fn load(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let from = self.place(offset, to.len())?;
        for (i, byte) in to.iter_mut().enumerate() {
            // SAFETY: `place` checked the range. Peers may write meanwhile: volatile, byte by byte.
            *byte = unsafe { from.add(i).read_volatile() };
        }
        Some(())
    }

    /// Copies bytes in. `None` if the range is beyond the memory.
    pub(crate) fn store(&self, offset: u64, from: &[u8]) -> Option<()> {
        let to = self.place(offset, from.len())?;
        for (i, byte) in from.iter().enumerate() {
            // SAFETY: as in `load`; the memory is a slot's, which may be written.
            unsafe { to.add(i).write_volatile(*byte) };
        }
        Some(())
    }

    fn place(&self, offset: u64, len: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| self.start.as_ptr().wrapping_add(offset))
    }
}
