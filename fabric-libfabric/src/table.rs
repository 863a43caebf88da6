//! All connections of a domain.

use crate::accept::Accepting;
use crate::dial::Dial;
use crate::endpoint::Endpoint;
use crate::link::Link;

pub(crate) type Table = fabric_link::Table<Phase>;

/// What a connection is doing.
pub(crate) enum Phase {
    /// It is being made.
    Dialing(Box<Dial>),
    /// It came in, and the peer has not finished.
    Accepting(Box<Accepting>),
    /// It is an endpoint.
    Open(Box<Endpoint>),
    /// It ended here, and the way stays open until the peer has heard it.
    Parting(Box<Link>),
    /// Its way was taken out, and it is about to be removed.
    Gone,
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

impl Phase {
    /// The way to the peer, if there is one yet.
    pub(crate) fn link(&self) -> Option<&Link> {
        match self {
            Self::Dialing(dial) => dial.link(),
            Self::Accepting(accepting) => accepting.link(),
            Self::Open(endpoint) => Some(&endpoint.link),
            Self::Parting(link) => Some(link),
            Self::Gone => None,
        }
    }

    /// Takes the way to the peer out of a connection that ends.
    pub(crate) fn take_link(&mut self) -> Option<Link> {
        match std::mem::replace(self, Self::Gone) {
            Self::Dialing(dial) => dial.into_link(),
            Self::Accepting(accepting) => accepting.into_link(),
            Self::Open(endpoint) => Some(endpoint.link),
            Self::Parting(link) => Some(*link),
            Self::Gone => None,
        }
    }
}
