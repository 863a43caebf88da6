//! The contract between messaging patterns and fabrics.
//!
//! A [`Fabric`] opens a [`Domain`]: one device context, driven by one thread at a time, with
//! endpoints, shared receives and a queue of completions. [`Rma`], [`Atomics`] and [`Multicast`]
//! are opt-in abilities. Buffers are moved into a post and come back in exactly one [`Event`].
//!
//! Every provider passes the cases of `fabric-conformance`; the documentation of each method here
//! is what those cases check. This crate knows no provider and no messaging pattern.

#![forbid(unsafe_code)]

mod addr;
mod caps;
mod deadlines;
mod domain;
mod error;
mod event;
mod inflight;
mod remote;
mod send_buf;
mod waker;
pub mod wrap;

pub use addr::{Addr, AddrError};
pub use caps::{Caps, RmaCaps};
pub use deadlines::Deadlines;
pub use domain::{Armed, Atomics, Device, Domain, DynFabric, Fabric, Listener, Multicast, Rma};
pub use error::{Blame, Error, ErrorKind, Rejected};
pub use event::{EpId, Event, GroupId, ListenerId, OpId, Returned};
pub use fabric_mem::{OutOfMemory, Pool, PoolError, Slot};
pub use inflight::Inflight;
pub use remote::{Access, Exposure, RemoteKey};
pub use send_buf::{Segment, SendBuf};
pub use waker::{Wake, Waker};
