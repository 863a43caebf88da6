//! The part of libfabric's interface that is the same from 1.9 to 2.x (ABI 1.3), declared from its
//! manual pages, and the library itself, loaded at run time.
//!
//! Neither libfabric nor its headers nor a C compiler are needed to build. One binary runs with
//! whatever `libfabric.so.1` a host has, or says that there is none:
//!
//! ```
//! match libfabric_sys::library() {
//!     Ok(library) => println!("libfabric {:?}", library.version()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! Names and layouts are those of the C interface (`fabric(7)` and the pages it names); a test
//! compares them with the installed headers. Structures that newer versions made longer are declared
//! as they were: the library makes them, programs change them in place, so the rest stays as it came.
//! What C has as inline functions over tables of operations stands in [`call`], which looks at a
//! table's `size` before it uses an entry.
//!
//! This crate knows nothing of ours.

#![allow(non_camel_case_types)]

pub mod call;
mod consts;
mod domain;
mod endpoint;
mod errno;
mod info;
mod library;
mod object;
mod queue;

pub use consts::*;
pub use domain::*;
pub use endpoint::*;
pub use errno::*;
pub use info::*;
pub use library::{Library, LoadError, library};
pub use object::*;
pub use queue::*;
