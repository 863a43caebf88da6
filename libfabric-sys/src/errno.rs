//! Error numbers of libfabric's own (`fi_errno(3)`). All others are the host's. Calls return them
//! negative.

#![allow(missing_docs)]

use std::ffi::c_int;

pub const FI_EOTHER: c_int = 256;
pub const FI_ETOOSMALL: c_int = 257;
pub const FI_EOPBADSTATE: c_int = 258;
/// An error is to be read with `readerr`.
pub const FI_EAVAIL: c_int = 259;
pub const FI_EBADFLAGS: c_int = 260;
pub const FI_ENOEQ: c_int = 261;
pub const FI_EDOMAIN: c_int = 262;
pub const FI_ENOCQ: c_int = 263;
pub const FI_ECRC: c_int = 264;
pub const FI_ETRUNC: c_int = 265;
pub const FI_ENOKEY: c_int = 266;
pub const FI_ENOAV: c_int = 267;
pub const FI_EOVERRUN: c_int = 268;
pub const FI_ENORX: c_int = 269;

/// The host's "try again".
pub const FI_EAGAIN: c_int = 11;
/// The host's "nothing there": no provider fits.
pub const FI_ENODATA: c_int = 61;
/// The host's "not implemented": also what [`crate::call`] returns for an operation that is missing.
pub const FI_ENOSYS: c_int = 38;
