//! The fabric contract over RDMA verbs: InfiniBand, RoCE (soft-RoCE too) and iWARP.
//!
//! A [`VerbsFabric`] opens [`VerbsDomain`]s. A domain has one protection domain, one completion
//! queue and one shared receive queue on one device, and a reliable queue pair for each endpoint,
//! connected by the RDMA connection manager. It has no thread of its own, and polls without a system
//! call.
//!
//! Messages travel in packets of 8 KiB within credit that the receiver granted, so that a peer
//! which posts no receive makes the sender wait and the hardware's own answer to that, which breaks
//! connections after a while, never comes into play. Small messages are copied and leave inline
//! where the device can; larger ones leave from where they lie in registered pools. Received
//! packets are copied into posted slots: what the shared queue holds cannot be taken back from it,
//! and belongs to whoever sends next, so slots of the user in it could be used up by peers that
//! are not their turn. Remote memory, atomics and multicast are the hardware's, and so is holding a
//! key to its connection, where the device has memory windows.
//!
//! The device follows from the address that a domain is opened for: by name, by address of this
//! host, or by the route that leads to a peer.
//!
//! On a host without an RDMA device, opening says so:
//!
//! ```
//! use fabric_core::{ErrorKind, Fabric};
//!
//! match fabric_verbs::VerbsFabric::default().open() {
//!     Ok(_) => println!("there is a device"),
//!     Err(error) => assert_eq!(error.kind(), ErrorKind::Host),
//! }
//! ```
//!
//! This crate knows no messaging pattern.

#![deny(unsafe_code)]

mod accept;
#[cfg(test)]
mod both;
mod buffers;
mod choice;
mod dial;
mod domain;
mod driver;
mod ending;
mod endpoint;
mod fabric;
mod inbound;
mod kernel;
mod limits;
mod multicast;
mod options;
mod outbound;
mod packet;
mod patience;
mod region;
mod remote;
mod resolve;
mod stall;
mod status;
mod stock;
#[allow(unsafe_code)]
mod sys;
mod table;
mod waiting;
mod window;
mod works;

pub use domain::VerbsDomain;
pub use fabric::VerbsFabric;
pub use options::VerbsOptions;
