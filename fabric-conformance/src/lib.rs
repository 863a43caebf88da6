//! One suite of behaviours that every fabric provider must show.
//!
//! Each case is a sentence of the contract's documentation in `fabric-core`, checked on real
//! domains. A provider describes itself with a [`Harness`] and runs all cases with [`run_all`], or
//! gets a test for each from [`conformance_tests!`]:
//!
//! ```
//! use fabric_conformance::{Harness, run_all};
//! use fabric_core::{Addr, Domain, DynFabric};
//!
//! struct Mine(Box<dyn DynFabric>);
//!
//! impl Harness for Mine {
//!     type Domain = Box<dyn Domain>;
//!
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//!     fn domain(&self) -> Self::Domain {
//!         self.0.open_boxed().expect("a device to test on")
//!     }
//!     fn listen_addr(&self) -> Addr {
//!         Addr::new("mine", "127.0.0.1", Some(0))
//!     }
//!     fn unreachable_addr(&self) -> Addr {
//!         Addr::new("mine", "127.0.0.1", Some(1))
//!     }
//! }
//!
//! fn check(fabric: Box<dyn DynFabric>) {
//!     run_all(&Mine(fabric));
//! }
//! ```
//!
//! A case is skipped only when the domain's `Caps` do not offer what it needs or the harness names
//! it as an exception, and the reason is recorded: with `FABRIC_CONFORMANCE_LEDGER` set to a file,
//! every run of a case appends one line of JSON there, see [`ledger`].
//!
//! Patience is counted in polls, never in time, so a slow machine is no failure.
//!
//! This crate knows no provider.

#![forbid(unsafe_code)]

mod case;
mod cases;
mod club;
mod harness;
pub mod ledger;
mod list;
mod node;
mod pair;
mod run;
mod wake;

pub use case::{Case, Needs, Outcome};
pub use harness::{Exception, Harness};
pub use list::{Listed, cases};
pub use run::{judge, run_all, run_case};
