//! The simulated network itself, the wrappers around its domains, and random traffic.

mod common;
mod network;
mod random;
mod wrappers;
