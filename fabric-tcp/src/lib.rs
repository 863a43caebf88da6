//! The TCP emulation of the whole fabric contract: the provider that is always there.
//!
//! A [`TcpFabric`] opens [`TcpDomain`]s. A domain polls all of its connections with one epoll
//! instance, reads straight into posted slots, writes with one vectored call per connection and
//! flush, and has no thread of its own. Remote memory and atomics are requests that the peer's
//! provider checks before one byte moves.
//!
//! ```
//! use fabric_core::{Domain, Fabric};
//!
//! let mut domain = fabric_tcp::TcpFabric::default().open()?;
//! let listener = domain.listen(&"tcp://127.0.0.1:0".parse().unwrap())?;
//! assert_ne!(listener.addr.port(), Some(0));
//! # Ok::<(), fabric_core::Error>(())
//! ```
//!
//! This crate knows no messaging pattern. Multicast is not offered: TCP has none.

#![forbid(unsafe_code)]

mod accept;
mod dial;
mod domain;
mod driver;
mod endpoint;
mod events;
mod fabric;
mod foreign;
mod frame;
mod greeting;
mod limits;
mod linger;
mod options;
mod read_once;
mod reader;
mod recvs;
mod region;
mod remote;
mod requests;
mod resolve;
mod rma;
mod status;
mod sys;
mod table;
mod waker;
mod writer;

pub use domain::TcpDomain;
pub use fabric::TcpFabric;
pub use options::TcpOptions;
