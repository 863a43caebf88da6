//! The fabric contract over libfabric: its providers tcp, shm, verbs and what else `fi_getinfo` lists.
//!
//! A [`LibfabricFabric`] opens [`LibfabricDomain`]s, each with one provider, which the address names
//! (`ofi+tcp://host:port`, `ofi+shm://name`) or libfabric chooses (`ofi://host:port`). The library is
//! loaded at run time; without it, opening says what to install.
//!
//! Where a provider has connections (`FI_EP_MSG`), they are its own; the others (`FI_EP_RDM`) get a
//! socket beside each endpoint for what connections do: refusing, hello, the end. Messages travel in
//! packets of 16 KiB (4 KiB over shm) within credit that the receiver granted, so that a peer which
//! posts no receive makes the sender wait. Packets are copied in and out: a provider cannot be asked to
//! give a posted receive back in time, and what it still holds of a dead peer must not be the user's.
//!
//! Remote memory and atomics are served in messages by the owner's side when it is polled. libfabric's
//! own cannot keep what the contract promises: `tcp` answers a revoked key by dropping the connection
//! without a reason, and with `shm` what is under way cannot be withdrawn from.
//!
//! ```
//! use fabric_core::{ErrorKind, Fabric};
//!
//! match fabric_libfabric::LibfabricFabric::default().open() {
//!     Ok(_) => println!("there is a provider"),
//!     Err(error) => assert_eq!(error.kind(), ErrorKind::Host),
//! }
//! ```
//!
//! This crate knows no messaging pattern.

#![deny(unsafe_code)]

mod accept;
mod bequest;
mod choose;
mod dial;
mod domain;
mod driver;
mod ending;
mod endpoint;
mod fabric;
mod inbound;
mod limits;
mod link;
mod litter;
mod options;
mod outbound;
mod pace;
mod packet;
mod region;
mod remote;
mod resolve;
mod scheme;
mod serve;
mod side;
mod sleep;
mod sleeper;
mod status;
mod stock;
#[allow(unsafe_code)]
mod sys;
mod table;
mod works;

pub use domain::LibfabricDomain;
pub use fabric::LibfabricFabric;
pub use options::LibfabricOptions;
