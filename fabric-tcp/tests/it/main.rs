//! What is special to TCP. What holds for every fabric is in `tests/conformance.rs`.

mod messages;
mod support;
