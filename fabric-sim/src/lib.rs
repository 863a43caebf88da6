//! A deterministic fabric inside one process: a network of queues with seeded delays, seeded faults
//! and planted bugs.
//!
//! All domains opened from one [`SimNet`] reach each other at `sim://name:port`. One thread may
//! step several domains, which makes a run repeatable from its seed, or each domain may have a
//! thread of its own, which then really sleeps in `wait`. With [`SimOptions::virtual_time`] the
//! clock stands until [`SimNet::advance`] moves it, and nothing ever sleeps.
//!
//! The whole contract is offered. Multicast groups are named by multicast addresses, such as
//! `sim://239.1.2.3`. Delays count in polls of the receiving domain
//! or, in virtual time, in time; order within an endpoint always holds, order between endpoints
//! never does.
//!
//! A [`Bug`] breaks one promise on purpose, in one place, so that a test suite can show that it
//! would notice.
//!
//! ```
//! use fabric_core::{Domain, Fabric};
//! use fabric_sim::{SimFabric, SimNet};
//!
//! let fabric = SimFabric::new(SimNet::new());
//! let (mut server, mut client) = (fabric.open().unwrap(), fabric.open().unwrap());
//! let listener = server.listen(&"sim://server".parse().unwrap()).unwrap();
//! client.connect(&listener.addr).unwrap();
//!
//! let mut events = Vec::new();
//! while events.len() < 2 {
//!     server.poll(&mut events, 8);
//!     client.poll(&mut events, 8);
//! }
//! ```

#![forbid(unsafe_code)]

mod bell;
mod bug;
mod close;
mod connect;
mod deliver;
mod dom;
mod domain;
mod endpoint;
mod fabric;
mod multicast;
mod net;
mod options;
mod packet;
mod pending;
mod region;
mod remote;
mod rma;
mod send;
mod status;

pub use bug::Bug;
pub use domain::SimDomain;
pub use fabric::SimFabric;
pub use net::SimNet;
pub use options::{Faults, Limits, SimOptions};
