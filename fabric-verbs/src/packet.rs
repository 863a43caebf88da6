//! What stands at the head of each packet: no remote operations, as devices do these.

use std::convert::Infallible;

/// What a packet is.
pub(crate) type Kind = fabric_link::Kind<Infallible>;

/// A head.
pub(crate) type Head = fabric_link::Head<Infallible>;
