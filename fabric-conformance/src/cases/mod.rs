//! The cases, a module for each group.

pub(crate) mod atomics;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod messages;
pub(crate) mod misuse;
pub(crate) mod multicast;
pub(crate) mod ownership;
pub(crate) mod rma;
pub(crate) mod waiting;
