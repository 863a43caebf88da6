//! Soft-RoCE: an RDMA device made of software on any Ethernet interface.
//!
//! The kernel module `rdma_rxe` turns an interface into a device that `libibverbs` drives like
//! hardware. This crate lists, makes and removes such links by asking the kernel over netlink; it
//! starts no program and links no RDMA library.
//!
//! ```no_run
//! # fn main() -> Result<(), fabric_core::Error> {
//! for link in fabric_softroce::links()? {
//!     println!("{} on {}", link.name, link.interface);
//! }
//! let link = fabric_softroce::TemporaryLink::on("eth0")?;
//! println!("made {}", link.name);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `verbs`, `SoftRoceFabric` serves `softroce://` addresses: the verbs provider on
//! the link of an interface, made if need be.
//!
//! Everybody may list; making and removing takes `CAP_NET_ADMIN`.
//!
//! # Features
//!
//! - `verbs`: the provider behind `softroce://` addresses; needs the RDMA libraries to build.

#![forbid(unsafe_code)]

mod channel;
mod ensure;
#[cfg(feature = "verbs")]
mod fabric;
mod interface;
mod link;
mod message;
mod route;
mod status;
mod temporary;

pub use ensure::link_for;
#[cfg(feature = "verbs")]
pub use fabric::SoftRoceFabric;
pub use link::{Link, add, link_on, links, remove};
pub use temporary::TemporaryLink;
