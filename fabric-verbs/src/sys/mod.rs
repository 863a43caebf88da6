//! All calls to libibverbs and librdmacm, and all `unsafe` of this crate.
//!
//! Nothing outside knows the bindings: the types here are our own. What the device may touch is
//! named by [`Sge`]s and [`Region`]s only. Whoever posts one keeps its memory alive and unmoved until
//! the completion came or the queue pair is gone, and does not look at memory that the device may
//! write meanwhile; the modules above do that by moving buffers into tables.
//!
//! Objects own what they are made from (`Arc` from child to parent), so that they are destroyed in
//! the one order that verbs allow. What the device refuses to destroy is leaked, and counted in
//! [`leaks`]: memory that it may still write is never freed.

mod cm;
mod device;
mod event;
mod memory;
mod queues;
mod window;
mod work;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use cm::{ConnParams, EventChannel, Id, QpPlan, Space};
pub(crate) use device::{Device, Limits};
pub(crate) use event::{CmEvent, CmKind};
pub(crate) use memory::{Mapped, Region, Rights};
pub(crate) use queues::{Completion, Queues, RecvWr};
pub(crate) use window::Window;
pub(crate) use work::{AddressHandle, Chain, Op, Sge, Sges, Wr};

static LEAKS: AtomicUsize = AtomicUsize::new(0);

/// Objects that a device refused to destroy, in this process so far.
pub(crate) fn leaks() -> usize {
    LEAKS.load(Ordering::Relaxed)
}

fn note_leak(what: &str, error: &io::Error) {
    LEAKS.fetch_add(1, Ordering::Relaxed);
    tracing::warn!(what, %error, "leaked on purpose: the device would not let go of it");
}

/// What calls that return an error number say.
fn check(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        // Some drivers return it negative.
        code => Err(io::Error::from_raw_os_error(code.abs())),
    }
}

/// What calls that return -1 and set `errno` say.
fn check_errno(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
