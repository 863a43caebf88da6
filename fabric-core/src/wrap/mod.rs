//! Domains around domains: they speak the same trait and change what passes through.
//!
//! They stack: `Trace<Fault<D>>` shows what the faults did.

mod dice;
mod fault;
mod lacking;
mod trace;

pub use fault::{Fault, FaultPlan};
pub use trace::Trace;
