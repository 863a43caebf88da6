//! Why endpoints end, as errors of the contract.

use std::fmt::Display;

use fabric_core::{Addr, Error, ErrorKind};

use crate::packet::Reason;

/// Why the peer said goodbye. Which side reached for memory that was not exposed, where that is the
/// reason, is the provider's to know: [`denied`] or [`trespassed`].
pub fn goodbye(reason: Reason, peer: &Addr, on_access: fn(&Addr) -> Error) -> Error {
    let (kind, text) = match reason {
        Reason::Closed => (ErrorKind::Closed, format!("{peer} closed the connection")),
        Reason::Access => return on_access(peer),
        Reason::NoReceive => {
            (ErrorKind::NoReceive, format!("a message was too long for a receive of {peer}"))
        }
        Reason::Protocol => {
            (ErrorKind::Protocol, format!("{peer} found this side's packets broken"))
        }
    };
    Error::new(kind, text)
}

/// The peer's memory is not exposed for a remote operation of this side.
pub fn denied(peer: &Addr) -> Error {
    Error::new(ErrorKind::Access, format!("{peer} has not exposed this memory for this"))
}

/// The peer asked for a remote operation on memory that is not exposed for it.
pub fn trespassed(peer: &Addr) -> Error {
    let text = format!("{peer} reached for memory that is not exposed for this");
    Error::new(ErrorKind::Access, text)
}

/// The connection ended without a goodbye.
pub fn vanished(peer: &Addr) -> Error {
    let text = format!("{peer} dropped the connection: it died or was stopped");
    Error::new(ErrorKind::Reset, text)
}

/// The peer broke the protocol.
#[cold]
pub fn violation(peer: &dyn Display, how: &dyn Display) -> Error {
    let text =
        format!("{peer} broke the protocol ({how}): check that both sides are the same version");
    Error::new(ErrorKind::Protocol, text)
}

/// What operations end with that their endpoint did not wait for.
pub fn flushed(why: Option<&Error>) -> Error {
    let why = why.map_or("it failed", Error::message);
    Error::new(ErrorKind::Flushed, format!("the endpoint closed first: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_the_kind_that_users_branch_on() {
        let peer = Addr::new("verbs", "h", Some(1));
        let kind = |reason| goodbye(reason, &peer, denied).kind();
        assert_eq!(kind(Reason::Closed), ErrorKind::Closed);
        assert_eq!(kind(Reason::Access), ErrorKind::Access);
        assert_eq!(kind(Reason::NoReceive), ErrorKind::NoReceive);
        assert_eq!(kind(Reason::Protocol), ErrorKind::Protocol);
        assert!(goodbye(Reason::Access, &peer, trespassed).message().contains("reached"));
    }

    #[test]
    fn what_is_flushed_says_why() {
        let why = vanished(&Addr::new("verbs", "h", Some(1)));
        assert!(flushed(Some(&why)).message().contains("dropped the connection"));
        assert_eq!(flushed(None).kind(), ErrorKind::Flushed);
    }
}
