//! The rules of `docs/patterns.md` as tests, each over every fabric here.

#[macro_use]
mod support;

mod hwm;
mod pipe;
