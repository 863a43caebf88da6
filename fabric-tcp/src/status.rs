//! What the host reports, as errors of the contract. Total: an unknown code keeps its source.

use std::fmt;
use std::io;

use fabric_core::{Addr, Error, ErrorKind};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::endpoint::End;
use crate::frame::Reason;
use crate::reader::refusal;

/// An attempt to connect to `peer` failed.
pub(crate) fn connect_error(error: io::Error, peer: &dyn fmt::Display) -> Error {
    let (kind, text) = match Errno::from_io_error(&error) {
        Some(Errno::CONNREFUSED) => (
            ErrorKind::Refused,
            format!("nobody listens at {peer}: start the peer or check the port"),
        ),
        Some(Errno::CONNRESET | Errno::CONNABORTED | Errno::PIPE) => (
            ErrorKind::Reset,
            format!("{peer} dropped the connection while it was made: try again"),
        ),
        Some(Errno::ADDRNOTAVAIL) => {
            (ErrorKind::Host, format!("this host has no free local port to reach {peer} from"))
        }
        Some(Errno::INVAL) => (
            ErrorKind::Address,
            format!("{peer} cannot be connected to: a link-local address needs its %interface"),
        ),
        _ => return common(error, &format!("connecting to {peer}")),
    };
    Error::new(kind, text).with_source(error)
}

/// Listening at `addr` failed.
pub(crate) fn listen_error(error: io::Error, addr: &dyn fmt::Display) -> Error {
    let (kind, text) = match Errno::from_io_error(&error) {
        Some(Errno::ADDRINUSE) => (
            ErrorKind::AddrInUse,
            format!("{addr} is in use: stop who listens there or take another port"),
        ),
        Some(Errno::ADDRNOTAVAIL | Errno::INVAL) => {
            (ErrorKind::Address, format!("{addr} is no address of this host"))
        }
        _ => return common(error, &format!("listening at {addr}")),
    };
    Error::new(kind, text).with_source(error)
}

/// Taking a connection from a listener at `addr` failed.
pub(crate) fn accept_error(error: io::Error, addr: &Addr) -> Error {
    common(error, &format!("accepting at {addr}"))
}

/// Whether a failure to accept is about the host and lasts, not about one connection.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// An established connection broke.
pub(crate) fn stream_error(error: io::Error, peer: &Addr) -> Error {
    let (kind, text) = match Errno::from_io_error(&error) {
        Some(Errno::CONNRESET | Errno::CONNABORTED | Errno::PIPE) => {
            (ErrorKind::Reset, format!("{peer} dropped the connection: it died or was stopped"))
        }
        _ => return common(error, &format!("the connection to {peer}")),
    };
    Error::new(kind, text).with_source(error)
}

/// The peer broke the protocol.
pub(crate) fn violation(peer: &Addr, how: &dyn fmt::Display) -> End {
    let text =
        format!("{peer} broke the protocol ({how}): check that both sides are the same version");
    refusal(Error::new(ErrorKind::Protocol, text), Reason::Protocol)
}

/// The host could not do something that involves no peer.
pub(crate) fn host_error(error: io::Error, what: &str) -> Error {
    common(error, what)
}

fn common(error: io::Error, what: &str) -> Error {
    let (kind, text) = match Errno::from_io_error(&error) {
        Some(Errno::TIMEDOUT) => {
            (ErrorKind::TimedOut, format!("{what}: no answer in time, the peer or the way is down"))
        }
        Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN) => {
            (ErrorKind::Unreachable, format!("{what}: no route, check address and network"))
        }
        Some(Errno::CONNRESET | Errno::CONNABORTED | Errno::PIPE) => {
            (ErrorKind::Reset, format!("{what}: the peer dropped it"))
        }
        Some(Errno::MFILE) => (ErrorKind::Host, format!("{what}: {}", descriptor_limit())),
        Some(Errno::NFILE) => {
            (ErrorKind::Host, format!("{what}: the host has no descriptor left, raise fs.file-max"))
        }
        Some(Errno::NOBUFS | Errno::NOMEM) => {
            (ErrorKind::Host, format!("{what}: the host has no memory for it"))
        }
        Some(Errno::ACCESS | Errno::PERM) => (
            ErrorKind::Host,
            format!("{what}: not permitted, take a port from 1024 up or check the firewall"),
        ),
        Some(Errno::AFNOSUPPORT) => (
            ErrorKind::Host,
            format!("{what}: this host has no such address family, perhaps IPv6 is off"),
        ),
        _ => (ErrorKind::Provider, format!("{what} failed in a way TCP has no name for")),
    };
    Error::new(kind, text).with_source(error)
}

fn descriptor_limit() -> String {
    match getrlimit(Resource::Nofile).current {
        Some(limit) => {
            format!("all {limit} descriptors of this process are in use, raise ulimit -n")
        }
        None => "all descriptors of this process are in use".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(code: Errno, map: impl Fn(io::Error) -> Error) -> ErrorKind {
        map(code.into()).kind()
    }

    #[test]
    fn every_kind_of_failure_is_told_apart() {
        let connect = |error| connect_error(error, &"tcp://h:1");
        let found = [
            Errno::CONNREFUSED,
            Errno::CONNRESET,
            Errno::TIMEDOUT,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::MFILE,
            Errno::ACCESS,
        ]
        .map(|code| kind_of(code, connect));
        assert_eq!(
            found,
            [
                ErrorKind::Refused,
                ErrorKind::Reset,
                ErrorKind::TimedOut,
                ErrorKind::Unreachable,
                ErrorKind::Unreachable,
                ErrorKind::Host,
                ErrorKind::Host,
            ]
        );
        let listen = |error| listen_error(error, &"tcp://h:1");
        assert_eq!(kind_of(Errno::ADDRINUSE, listen), ErrorKind::AddrInUse);
        assert_eq!(kind_of(Errno::ADDRNOTAVAIL, listen), ErrorKind::Address);
    }

    #[test]
    fn any_code_is_put_in_words_with_its_number_in_the_source_alone() {
        let addr = Addr::new("tcp", "h", Some(1));
        for code in 0..200 {
            let io = || io::Error::from_raw_os_error(code);
            for error in [
                connect_error(io(), &addr),
                listen_error(io(), &addr),
                accept_error(io(), &addr),
                stream_error(io(), &addr),
                host_error(io(), "polling"),
            ] {
                assert!(std::error::Error::source(&error).is_some(), "{error}");
                let text = error.message();
                let bare = ['\n'.into(), "os error".into(), format!("error {code}")];
                assert!(!bare.iter().any(|part: &String| text.contains(part)), "{text}");
            }
        }
    }

    #[test]
    fn the_descriptor_limit_is_named() {
        let error = host_error(Errno::MFILE.into(), "accepting");
        let limit = getrlimit(Resource::Nofile).current.unwrap_or_default().to_string();
        assert!(error.message().contains(&limit), "{error}");
    }
}
