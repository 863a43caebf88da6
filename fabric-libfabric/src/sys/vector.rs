//! The address vector of one endpoint: it has one peer.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use libfabric_sys as ffi;

use super::opened::Opened;
use super::{Code, check, close};

/// An address vector for one address.
pub(super) struct Vector {
    raw: NonNull<ffi::fid_av>,
    _opened: Arc<Opened>,
}

impl Vector {
    /// # Errors
    /// What the provider says.
    pub(super) fn new(opened: &Arc<Opened>) -> Result<Self, Code> {
        let mut attr = ffi::fi_av_attr {
            r#type: ffi::FI_AV_UNSPEC,
            rx_ctx_bits: 0,
            count: 1,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the domain is open as `opened` is held; the attributes live during the call.
        check(unsafe { ffi::call::fi_av_open(opened.domain(), &mut attr, &mut raw) })?;
        let raw = NonNull::new(raw).ok_or(Code::NO_OPERATION)?;
        Ok(Self { raw, _opened: opened.clone() })
    }

    pub(super) fn object(&self) -> *mut ffi::fid {
        self.raw.as_ptr().cast()
    }

    /// Takes an address in, and gives its number.
    ///
    /// # Errors
    /// What the provider says.
    pub(super) fn insert(&self, name: &[u8]) -> Result<u64, Code> {
        let mut number = ffi::FI_ADDR_UNSPEC;
        // A text ends in zero; others are as long as the provider made them.
        let mut name = name.to_vec();
        name.resize(name.len().max(MIN_BYTES), 0);
        // SAFETY: the vector is open. A provider reads as much as its addresses have, which is what it
        // gave the peer, and at most what the name was filled up to.
        let done = unsafe {
            ffi::call::fi_av_insert(self.raw.as_ptr(), name.as_ptr().cast(), &mut number)
        };
        check(done)?;
        if done == 1 { Ok(number) } else { Err(Code::NO_DATA) }
    }

    /// Takes the address out again.
    pub(super) fn remove(&self, mut number: u64) {
        // SAFETY: the vector is open.
        let done = unsafe { ffi::call::fi_av_remove(self.raw.as_ptr(), &mut number) };
        if let Err(error) = check(done) {
            tracing::debug!(%error, "an address stays in its vector");
        }
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; the endpoint bound to it is closed before.
        unsafe { close(self.object(), "an address vector") };
    }
}

/// More than any provider's addresses have, so that one of them that is shorter than its format, sent
/// by a peer, is not read beyond its end.
const MIN_BYTES: usize = 512;
