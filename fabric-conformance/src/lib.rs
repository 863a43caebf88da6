//! One suite of behaviours that every fabric provider must show.
//!
//! Each case is a sentence of the contract's documentation in `fabric-core`, checked on real
//! domains. A provider describes itself with a [`Harness`] and gets a test per case:
//!
//! ```ignore
//! struct Mine;
//! impl fabric_conformance::Harness for Mine { /* … */ }
//! fabric_conformance::conformance_tests!(Mine);
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
