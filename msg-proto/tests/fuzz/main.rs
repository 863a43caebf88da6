//! Fuzz targets: whatever a peer sends, nothing panics, nothing piles up, no rule is bent.
//!
//! Under `cargo test` each target replays its corpus in `__fuzz__` and then runs on random input for
//! a second, or for `BOLERO_RANDOM_TEST_TIME_MS`. A failure prints its seed for
//! `BOLERO_RANDOM_SEED`.

mod corpus;
mod link;
mod script;
mod topics;
mod wire;
