//! Memory that a fabric may read and write: pools of equal slots, and single large slots.
//!
//! A [`Slot`] is the only handle to its bytes and is not `Clone`, so whoever holds it is alone with
//! the memory. Posting a slot to a fabric moves it there; the completion moves it back. When the
//! bytes are final, [`Slot::freeze`] turns the slot into [`bytes::Bytes`]: many handles, no writing,
//! and the slot goes home to its pool when the last handle is dropped.
//!
//! A posted slot cannot be touched, because it was moved away:
//!
//! ```compile_fail
//! let pool = fabric_mem::Pool::new(4096, 1).unwrap();
//! let slot = pool.take().unwrap();
//! let posted = Some(slot);
//! slot.filled(); // the slot is no longer here
//! # drop(posted);
//! ```
//!
//! This crate knows no fabric and no protocol; it is the only one below the providers with
//! `unsafe` code.

mod block;
mod pool;
mod slot;

pub use pool::{Pool, PoolError};
pub use slot::{OutOfMemory, Slot};
