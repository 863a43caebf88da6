//! Measures messaging patterns and the fabrics below them, between two processes or two hosts.
//!
//! One process [`Server::bind`]s and serves; the other one makes a [`Plan`] and [`run`]s it. Plans
//! and figures travel over a REQ/REP socket of their own; the measured sockets or domains live in a
//! context of their own on each side. What comes out is a [`Report`]: one documented object for
//! programs, and [`table`] for people.
//!
//! Every run knows the number of its messages beforehand, on both sides, so that "all arrived" is a
//! comparison of counts. A time limit is turned into a count by a short run before.
//!
//! # Features
//!
//! - `libfabric`: libfabric's providers; runs that never sleep open their domains without descriptors to
//!   sleep on.
//! - `tokio`: round trips by tasks of tokio's runtime.

#![forbid(unsafe_code)]

mod bare;
mod context;
mod control;
mod cost;
mod counters;
mod error;
mod host;
mod memory;
mod plan;
mod progress;
mod report;
mod run;
mod serve;
mod session;
mod socket;
mod table;
mod times;

pub use cost::Cost;
pub use error::Error;
pub use host::Host;
pub use plan::{Amount, Level, Op, Plan, Settings, Test, WhenFull};
pub use progress::{Progress, Silent};
pub use report::{BothSides, BwRow, FanoutRow, IdleRow, LatRow, Report, Rows};
pub use run::run;
pub use serve::Server;
pub use table::table;
pub use times::{Bucket, RoundTrip};
