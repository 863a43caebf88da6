//! What libfabric and the host report, as errors of the contract. Total: unknown codes are kept.
//! What a host lacks begins with the number of the finding by which `fabric doctor` explains it
//! (docs/doctor.md), and has a command to try.

use std::fmt;
use std::io;

use fabric_core::{Addr, Error, ErrorKind};
use fabric_link::Reason;
pub(crate) use fabric_link::{denied, flushed, trespassed, violation};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys::Code;

/// Numbers of libfabric's own (`fi_errno(3)`).
const TRUNCATED: i32 = 265;
const NO_RECEIVE: i32 = 269;
const NO_KEY: i32 = 266;

impl From<io::Error> for Code {
    /// The host's number, or its "I/O error" where there is none.
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
    }
}

/// The host's number; one that it does not have stands for those of libfabric.
fn errno(code: Code) -> Errno {
    match code.0 {
        1..256 => Errno::from_raw_os_error(code.0),
        _ => Errno::NOTRECOVERABLE,
    }
}

/// What a number means where nothing more is known.
fn kind_of(code: Code) -> ErrorKind {
    match code.0 {
        NO_RECEIVE | TRUNCATED => return ErrorKind::NoReceive,
        NO_KEY => return ErrorKind::Access,
        _ => {}
    }
    match errno(code) {
        Errno::CONNREFUSED => ErrorKind::Refused,
        Errno::ADDRINUSE => ErrorKind::AddrInUse,
        Errno::ADDRNOTAVAIL => ErrorKind::Address,
        Errno::TIMEDOUT => ErrorKind::TimedOut,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => {
            ErrorKind::Unreachable
        }
        Errno::CONNRESET
        | Errno::CONNABORTED
        | Errno::PIPE
        | Errno::NOTCONN
        | Errno::SHUTDOWN
        | Errno::REMOTEIO => ErrorKind::Reset,
        Errno::CANCELED => ErrorKind::Flushed,
        Errno::KEYREJECTED => ErrorKind::Access,
        Errno::AGAIN => ErrorKind::Full,
        Errno::NOSYS | Errno::OPNOTSUPP => ErrorKind::Unsupported,
        Errno::NOMEM
        | Errno::NOBUFS
        | Errno::MFILE
        | Errno::NFILE
        | Errno::NOSPC
        | Errno::PERM
        | Errno::ACCESS
        | Errno::NODEV => ErrorKind::Host,
        _ => ErrorKind::Provider,
    }
}

/// What to do about an error of this kind.
fn advice(kind: ErrorKind, code: Code) -> &'static str {
    match (kind, errno(code)) {
        (ErrorKind::Refused, _) => "nobody listens there: start the peer or check the address",
        (ErrorKind::AddrInUse, _) => "it is in use: stop who listens there or take another one",
        (ErrorKind::Address, _) => "it is no address of this host",
        (ErrorKind::TimedOut, _) => "no answer in time, the peer or the way is down",
        (ErrorKind::Unreachable, _) => "no route, check address and network",
        (ErrorKind::Reset, _) => "the peer dropped it: it died or was stopped",
        (ErrorKind::Unsupported, _) => "the provider does not offer it",
        (ErrorKind::Host, Errno::MFILE | Errno::NFILE) => {
            "no descriptor is left: `ulimit -n 65536`"
        }
        (ErrorKind::Host, Errno::PERM | Errno::ACCESS) => {
            "not permitted: see `ls -l /dev/infiniband /dev/shm`"
        }
        (ErrorKind::Host, Errno::NODEV) => "there is no such device: `fi_info` lists what there is",
        (ErrorKind::Host, _) => {
            "memory, locked memory or room in /dev/shm is used up: see `ulimit -l` and `df /dev/shm`"
        }
        _ => "it failed in a way this library has no name for",
    }
}

/// The finding that explains it, in front of the text.
fn finding(kind: ErrorKind, code: Code) -> &'static str {
    match (kind, errno(code)) {
        (ErrorKind::Host, Errno::MFILE | Errno::NFILE) => "D16: ",
        (ErrorKind::Host, Errno::NOMEM | Errno::NOBUFS) if is_locking_limited() => "D12: ",
        _ => "",
    }
}

fn is_locking_limited() -> bool {
    getrlimit(Resource::Memlock).current.is_some()
}

/// `what` failed.
pub(crate) fn error(code: Code, what: impl fmt::Display) -> Error {
    let kind = kind_of(code);
    let text = format!("{}{what}: {}", finding(kind, code), advice(kind, code));
    Error::new(kind, text).with_source(code)
}

/// Asking the library for offers failed otherwise than for want of any.
pub(crate) fn discovery_error(code: Code, provider: Option<&str>) -> Error {
    let whose = provider.unwrap_or("some provider of it");
    let text = format!(
        "D45: asking libfabric what it has failed, {whose} does not work here: `fi_info` shows which; \
         set FI_PROVIDER to leave it out"
    );
    Error::new(ErrorKind::Host, text).with_source(code)
}

/// Connecting to `peer` failed.
pub(crate) fn connect_error(code: Code, peer: &dyn fmt::Display) -> Error {
    match errno(code) {
        Errno::INVAL | Errno::ADDRNOTAVAIL => {
            let text = format!("{peer} cannot be connected to");
            Error::new(ErrorKind::Address, text).with_source(code)
        }
        // A Unix listener whose queue is full.
        Errno::AGAIN => {
            let text = format!("{peer} takes no more connections for now: try again");
            Error::new(ErrorKind::Refused, text).with_source(code)
        }
        _ => error(code, format_args!("connecting to {peer}")),
    }
}

/// Listening at `addr` failed.
pub(crate) fn listen_error(code: Code, addr: &Addr) -> Error {
    match errno(code) {
        Errno::INVAL | Errno::NODEV => {
            let text = format!("{addr} is no address that this provider can listen at");
            Error::new(ErrorKind::Address, text).with_source(code)
        }
        _ => error(code, format_args!("listening at {addr}")),
    }
}

/// Something that involves no peer failed on this host.
pub(crate) fn host_error(code: Code, what: &str) -> Error {
    match kind_of(code) {
        ErrorKind::Host | ErrorKind::Provider | ErrorKind::Unsupported => error(code, what),
        _ => Error::new(ErrorKind::Provider, format!("{what} failed")).with_source(code),
    }
}

/// `bytes` bytes could not be registered.
pub(crate) fn register_error(code: Code, bytes: usize) -> Error {
    let id = if is_locking_limited() { "D12: " } else { "" };
    let text = format!(
        "{id}{bytes} bytes of memory could not be registered: raise the limit, `ulimit -l unlimited`"
    );
    Error::new(ErrorKind::Host, text).with_source(code)
}

/// Why the peer said goodbye.
pub(crate) fn goodbye(reason: Reason, peer: &Addr) -> Error {
    // The owner of memory refuses, so it was this side that asked.
    fabric_link::goodbye(reason, peer, denied)
}

/// The connection ended without a goodbye.
pub(crate) fn vanished(peer: &Addr, code: Option<Code>) -> Error {
    let error = fabric_link::vanished(peer);
    match code {
        Some(code) => error.with_source(code),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr() -> Addr {
        Addr::new("ofi+tcp", "h", Some(1))
    }

    #[test]
    fn any_code_is_put_in_words_with_its_number_in_the_source_alone() {
        for code in (0..300).map(Code) {
            for error in [
                error(code, "polling"),
                connect_error(code, &addr()),
                listen_error(code, &addr()),
                host_error(code, "polling"),
                register_error(code, 1),
                vanished(&addr(), Some(code)),
            ] {
                assert!(std::error::Error::source(&error).is_some(), "{error}");
                let text = error.message();
                let bare = ['\n'.into(), "os error".into(), format!("error {}", code.0)];
                assert!(!bare.iter().any(|part: &String| text.contains(part)), "{text}");
            }
        }
    }

    #[test]
    fn what_a_host_lacks_has_its_finding_and_a_command() {
        let code = |errno: Errno| Code(errno.raw_os_error());
        let limited = if is_locking_limited() { "D12: " } else { "" };
        for (error, id) in [
            (host_error(code(Errno::MFILE), "x"), "D16: "),
            (host_error(code(Errno::NOMEM), "x"), limited),
            (register_error(code(Errno::NOMEM), 1), limited),
            (discovery_error(code(Errno::IO), None), "D45: "),
            (discovery_error(code(Errno::IO), Some("efa")), "D45: "),
        ] {
            let text = error.message();
            assert!(text.starts_with(id) && text.contains('`'), "{text}");
        }
    }

    #[test]
    fn codes_have_the_kinds_that_users_branch_on() {
        let kind = |errno: Errno| connect_error(Code(errno.raw_os_error()), &addr()).kind();
        assert_eq!(kind(Errno::CONNREFUSED), ErrorKind::Refused);
        assert_eq!(kind(Errno::TIMEDOUT), ErrorKind::TimedOut);
        assert_eq!(kind(Errno::HOSTUNREACH), ErrorKind::Unreachable);
        let in_use = Code(Errno::ADDRINUSE.raw_os_error());
        assert_eq!(listen_error(in_use, &addr()).kind(), ErrorKind::AddrInUse);
        assert_eq!(error(Code(NO_RECEIVE), "x").kind(), ErrorKind::NoReceive);
        assert_eq!(error(Code(299), "x").kind(), ErrorKind::Provider);
    }
}
