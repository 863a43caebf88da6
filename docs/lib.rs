//! The pages of the guide: their Rust code is compiled and, where it ends by itself, run.
//!
//! ```sh
//! cargo test -p guide --features all
//! ```
//!
//! A test holds every page with Rust code to stand here; `docs/README.md` lists the pages for readers.
//!
//! # Features
//!
//! - `all`: also the pages about what stands behind features of `msg-patterns`.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("choosing-a-fabric.md")]
struct ChoosingAFabric;

#[cfg(doctest)]
#[doc = include_str!("configuration.md")]
struct Configuration;

#[cfg(doctest)]
#[doc = include_str!("embedding.md")]
struct Embedding;

#[cfg(doctest)]
#[doc = include_str!("from-zeromq.md")]
struct FromZeroMq;

#[cfg(all(doctest, feature = "all"))]
#[doc = include_str!("metrics.md")]
struct Metrics;

#[cfg(doctest)]
#[doc = include_str!("quick-start.md")]
struct QuickStart;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("tuning.md")]
struct Tuning;

#[cfg(all(doctest, feature = "all"))]
#[doc = include_str!("typed.md")]
struct TypedPage;
