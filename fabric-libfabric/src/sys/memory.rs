//! Memory that a provider may reach for this side.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use libfabric_sys as ffi;

use super::opened::Opened;
use super::{Code, check, close};

/// How a provider knows registered memory. Nothing where it needs no registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Desc(pub(super) *mut std::ffi::c_void);

// SAFETY: only handed back to the provider.
unsafe impl Send for Desc {}

impl Desc {
    /// Of memory that is not registered.
    pub(crate) const NONE: Self = Self(ptr::null_mut());
}

/// A registration. The memory must outlive it.
pub(crate) struct Region {
    raw: NonNull<ffi::fid_mr>,
    _opened: Arc<Opened>,
}

// SAFETY: its field does not change, and closing may happen on any thread that drives the domain.
unsafe impl Send for Region {}

impl Region {
    /// Registers `len` bytes from `start` to send from and receive into. They must stay allocated as
    /// long as the region lives. `number` is the key where the provider wants one to be chosen.
    ///
    /// # Errors
    /// What the provider says: locked memory is limited.
    pub(crate) fn new(
        opened: &Arc<Opened>,
        start: *const u8,
        len: usize,
        number: u64,
    ) -> Result<Self, Code> {
        let mut raw = ptr::null_mut();
        let access = ffi::FI_SEND | ffi::FI_RECV;
        // SAFETY: the domain is open as `opened` is held. That nobody frees the memory meanwhile is
        // this function's documented condition.
        check(unsafe {
            ffi::call::fi_mr_reg(opened.domain(), start.cast(), len, access, number, &mut raw)
        })?;
        let raw = NonNull::new(raw).ok_or(Code::NO_OPERATION)?;
        Ok(Self { raw, _opened: opened.clone() })
    }

    pub(crate) fn desc(&self) -> Desc {
        // SAFETY: the region is registered while `self` lives.
        Desc(unsafe { self.raw.as_ref() }.mem_desc)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: registered once, closed once.
        unsafe { close(self.raw.as_ptr().cast(), "a memory region") };
    }
}
