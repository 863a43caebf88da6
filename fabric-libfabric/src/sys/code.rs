//! Error numbers of libfabric.

use std::fmt;

use libfabric_sys as ffi;

/// A positive error number: the host's, or from 256 on libfabric's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

impl Code {
    /// Try again later.
    pub(crate) const AGAIN: Self = Self(ffi::FI_EAGAIN);
    /// An error is to be read from a queue.
    pub(crate) const AVAILABLE: Self = Self(ffi::FI_EAVAIL);
    /// No provider fits.
    pub(crate) const NO_DATA: Self = Self(ffi::FI_ENODATA);
    /// The address is in use (the host's number).
    pub(crate) const IN_USE: Self = Self(98);
    /// The peer is gone (the host's "connection reset").
    pub(crate) const GONE: Self = Self(104);
    /// There is no such operation.
    pub(crate) const NO_OPERATION: Self = Self(ffi::FI_ENOSYS);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ffi::library() {
            Ok(library) => write!(f, "{}, error {}", library.strerror(self.0), self.0),
            Err(_) => write!(f, "error {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Code {}
