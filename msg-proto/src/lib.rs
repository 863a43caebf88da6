//! The decisions of the messaging patterns, without any I/O.
//!
//! Every type here is a small state machine. Inputs from a peer or a timer are named `on_*` and
//! never fail: they return what to do about it. Commands of the local user may refuse with a reason.
//! Time is passed in as a [`Duration`](core::time::Duration) since an arbitrary start that stays the
//! same for the life of a machine.
//!
//! | for                  | machines                                                         |
//! |----------------------|------------------------------------------------------------------|
//! | every link           | [`wire`], [`link`], [`credit`], [`types`], [`backoff`]           |
//! | a publisher          | [`topics`]                                                       |
//! | a subscriber         | [`subscriber`], [`fair_queue`]                                   |
//! | a pusher, a puller   | [`round_robin`], [`ledger`]; [`fair_queue`]                      |
//! | asking, answering    | [`round_robin`], [`requests`]; [`fair_queue`], [`replies`]       |
//!
//! What this crate does not know: sockets, threads, clocks, buffers, fabrics. Messages are named by
//! ids and peers by a small copyable name, so everything here tests in microseconds.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod backoff;
pub mod credit;
pub mod fair_queue;
pub mod fault;
mod id_queue;
pub mod ledger;
pub mod link;
pub mod lone;
mod prefixes;
pub mod replies;
pub mod requests;
mod ring;
pub mod round_robin;
pub mod subscriber;
mod timers;
pub mod topics;
pub mod types;
pub mod wire;

/// How a machine names a peer: a small number that the engine gives to each link and never to
/// another one while a machine still knows it.
pub trait Peer: Copy + Ord + core::fmt::Debug {}

impl<P: Copy + Ord + core::fmt::Debug> Peer for P {}
