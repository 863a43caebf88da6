//! The errors of this provider, each in one place.

use fabric_core::{EpId, Error, ErrorKind};

pub(crate) fn unknown_ep(ep: EpId) -> Error {
    Error::misuse(format!("no endpoint {} is open here: post after Connected or Accepted", ep.0))
}

pub(crate) fn not_connected(ep: EpId) -> Error {
    Error::misuse(format!("endpoint {} is not connected yet: wait for Connected", ep.0))
}

pub(crate) fn full(what: &str, depth: usize) -> Error {
    Error::new(ErrorKind::Full, format!("{depth} {what} already: poll for one to come back"))
}

pub(crate) fn flushed() -> Error {
    Error::new(ErrorKind::Flushed, "its endpoint closed before this was done")
}

pub(crate) fn closed_here() -> Error {
    Error::new(ErrorKind::Flushed, "closed on this side")
}

pub(crate) fn over_limit(what: &str, found: usize, max: usize) -> Error {
    Error::misuse(format!("{found} {what} are over the limit of {max}: split it"))
}

pub(crate) fn access(why: &str) -> Error {
    Error::new(ErrorKind::Access, format!("the peer refused: {why}"))
}

pub(crate) fn unknown_key() -> Error {
    Error::misuse("nothing is exposed under this key: it was revoked or belongs to another domain")
}
