//! All connections of a domain.

use crate::accept::Accepting;
use crate::dial::Dial;
use crate::endpoint::Endpoint;

pub(crate) type Table = fabric_link::Table<Phase>;

/// What a connection is doing.
pub(crate) enum Phase {
    /// It is being made.
    Dialing(Box<Dial>),
    /// It came in, and the peer has not finished.
    Accepting(Accepting),
    /// It is an endpoint.
    Open(Box<Endpoint>),
}

impl fabric_link::Phase for Phase {
    type Endpoint = Endpoint;

    #[inline]
    fn endpoint(&mut self) -> Option<&mut Endpoint> {
        match self {
            Self::Open(endpoint) => Some(endpoint),
            _ => None,
        }
    }
}
