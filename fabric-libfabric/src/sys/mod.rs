//! All calls to libfabric, and all `unsafe` of this crate.
//!
//! Nothing outside knows the bindings: the types here are our own. What a provider may touch is named
//! by [`Endpoint::recv`] and [`Endpoint::send`] only. Whoever calls them keeps the memory alive and
//! unmoved until the completion came or the endpoint is gone; the modules above do that by moving
//! packets into a table.
//!
//! Objects own what they are made from (`Arc` from child to parent), so that they are closed in the
//! one order that libfabric allows. What a provider refuses to close is leaked and told in the log:
//! memory that it may still write is never freed.

mod code;
mod contexts;
mod endpoint;
mod events;
mod info;
mod kin;
mod memory;
mod opened;
mod passive;
mod region_lock;
mod sockaddr;
mod vector;

pub(crate) use code::Code;
pub(crate) use contexts::Contexts;
pub(crate) use endpoint::Endpoint;
pub(crate) use events::CmEvent;
pub(crate) use info::{Ask, Info, Kind, Place};
pub(crate) use kin::keep;
pub(crate) use memory::{Desc, Region};
pub(crate) use opened::{Completion, Opened, open_library};
pub(crate) use passive::Passive;
pub(crate) use region_lock::RegionLock;

/// What a call that returns 0 or a negative error number says.
fn check(code: std::ffi::c_int) -> Result<(), Code> {
    if code < 0 { Err(Code(-code)) } else { Ok(()) }
}

/// The same of calls that return a count.
fn count(code: isize) -> Result<usize, Code> {
    usize::try_from(code).map_err(|_| Code(i32::try_from(-code).unwrap_or(i32::MAX)))
}

/// Closes an object, or leaks it on purpose if the provider does not let go of it.
///
/// # Safety
/// The object must be open, and nobody may use it afterwards.
unsafe fn close(object: *mut libfabric_sys::fid, what: &str) -> bool {
    // SAFETY: as the caller says.
    match check(unsafe { libfabric_sys::call::fi_close(object) }) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(what, %error, "leaked on purpose: the provider does not let go of it");
            false
        }
    }
}
