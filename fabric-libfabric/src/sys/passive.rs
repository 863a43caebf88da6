//! Listening with passive endpoints.

use std::net::SocketAddr;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libfabric_sys as ffi;

use super::opened::Opened;
use super::{Code, Info, check, close, sockaddr};

/// Bytes that the longest address of IP takes.
const ADDR_BYTES: usize = 128;

/// Where a domain listens.
pub(crate) struct Passive {
    raw: NonNull<ffi::fid_pep>,
    _opened: Arc<Opened>,
}

// SAFETY: one thread at a time drives the domain.
unsafe impl Send for Passive {}

impl Passive {
    /// Listens at the source address of `info`.
    ///
    /// # Errors
    /// What the provider says, such as that the address is in use.
    pub(crate) fn new(opened: &Arc<Opened>, info: &Info) -> Result<Self, Code> {
        let Some(eq) = opened.eq() else { return Err(Code::NO_OPERATION) };
        let mut raw = ptr::null_mut();
        // SAFETY: the fabric is open as `opened` is held, and the info whole.
        check(unsafe {
            ffi::call::fi_passive_ep(opened.fabric(), info.raw(), &mut raw, ptr::null_mut())
        })?;
        let raw = NonNull::new(raw).ok_or(Code::NO_OPERATION)?;
        let passive = Self { raw, _opened: opened.clone() };
        // SAFETY: both objects are open.
        check(unsafe { ffi::call::fi_bind(raw.as_ptr().cast(), eq.cast(), 0) })?;
        // SAFETY: the endpoint is open and bound.
        check(unsafe { ffi::call::fi_listen(raw.as_ptr()) })?;
        Ok(passive)
    }

    /// Names it in events.
    pub(crate) fn object(&self) -> u64 {
        self.raw.as_ptr() as u64
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> Option<SocketAddr> {
        let (mut bytes, mut len) = ([0u8; ADDR_BYTES], ADDR_BYTES);
        // SAFETY: the endpoint is open and there is that much room.
        check(unsafe {
            ffi::call::fi_getname_passive(self.raw.as_ptr(), bytes.as_mut_ptr().cast(), &mut len)
        })
        .ok()?;
        sockaddr::parse(&bytes[..len.min(ADDR_BYTES)])
    }

    /// Turns a peer away that wanted to connect.
    pub(crate) fn reject(&self, request: &Info, reason: &[u8]) {
        let handle = request.get().handle;
        // SAFETY: the endpoint is open, and the request was not answered before.
        let done = unsafe {
            ffi::call::fi_reject(self.raw.as_ptr(), handle, reason.as_ptr().cast(), reason.len())
        };
        if let Err(error) = check(done) {
            tracing::debug!(%error, "a peer was not told that it is turned away");
        }
    }
}

impl Drop for Passive {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { close(self.raw.as_ptr().cast(), "a passive endpoint") };
    }
}
