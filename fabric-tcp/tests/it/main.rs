//! What is special to TCP. What holds for every fabric is in `tests/conformance.rs`.

mod addresses;
mod foreign;
mod handshakes;
mod messages;
mod raw;
mod revoking;
mod support;
mod waiting;
