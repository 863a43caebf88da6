//! What devices, connection manager and host report, as errors of the contract. Total: unknown
//! codes are kept. What a host lacks begins with the number of the finding by which `fabric doctor`
//! explains it (docs/doctor.md), and has a command to try.

use std::fmt;
use std::io;

use fabric_core::{Addr, Error, ErrorKind};
use fabric_link::{Reason, trespassed};
pub(crate) use fabric_link::{denied, flushed, vanished, violation};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys::Completion;

/// A request that failed, as the device tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("work completion status {status}, vendor code {vendor:#x}")]
struct Failed {
    status: u32,
    vendor: u32,
}

/// The status of requests that came back because their queue pair had failed before.
const FLUSHED: u32 = 5;

/// What a completion says: nothing wrong, flushed because of something else, or why.
pub(crate) enum Verdict {
    Good,
    Flushed,
    Bad(Error),
}

/// What became of a request on the way to `peer`.
pub(crate) fn verdict(completion: &Completion, peer: &Addr) -> Verdict {
    let (kind, text) = match completion.status {
        0 => return Verdict::Good,
        FLUSHED => return Verdict::Flushed,
        9 => (ErrorKind::Protocol, format!("{peer} could not make sense of a request")),
        10 => (ErrorKind::Access, format!("{peer} has not exposed this memory for this")),
        11 => (ErrorKind::Reset, format!("{peer} failed while it served a request")),
        12 => (ErrorKind::TimedOut, format!("{peer} does not answer: it or the way to it is down")),
        13 => (ErrorKind::NoReceive, format!("{peer} had no receive for a message for too long")),
        16 => (ErrorKind::Reset, format!("{peer} gave up the connection")),
        20 => (ErrorKind::TimedOut, format!("{peer} did not answer in time")),
        1 => (ErrorKind::Protocol, format!("{peer} sent more than this side takes at once")),
        // Local failures: 2 to 4, 6 to 8, 14, 15, 17 to 19, 21 and what comes with newer devices.
        other => (ErrorKind::Provider, format!("the device failed on the way to {peer}: {other}")),
    };
    let source = Failed { status: completion.status, vendor: completion.vendor };
    Verdict::Bad(Error::new(kind, text).with_source(source))
}

/// The reasons of a rejected connection, as InfiniBand numbers them.
const NOBODY_LISTENS: i32 = 8;
const STALE: i32 = 10;
const BY_PEERS_CHOICE: i32 = 28;

/// Whether the connection manager may say otherwise the next time.
pub(crate) fn is_stale(status: i32) -> bool {
    status == STALE
}

/// The peer rejected the connection; `told` is what its provider said.
pub(crate) fn rejection(status: i32, told: &[u8], peer: &dyn fmt::Display) -> Error {
    match status {
        NOBODY_LISTENS => nobody(peer),
        BY_PEERS_CHOICE if told.first() == Some(&REJECT_FOREIGN) => {
            let text = format!("{peer} speaks another version: bring both sides to the same one");
            Error::new(ErrorKind::Protocol, text)
        }
        BY_PEERS_CHOICE if told.first() == Some(&REJECT_MTU) => {
            let text = format!(
                "D26: {peer} takes smaller packets than this side sends: `ip link` shows the MTU, \
                 set the same one on both interfaces"
            );
            Error::new(ErrorKind::Unreachable, text)
        }
        BY_PEERS_CHOICE => {
            Error::new(ErrorKind::Refused, format!("{peer} takes no more connections for now"))
        }
        // iWARP tells an error number.
        negative if negative < 0 => cm_error(negative, peer),
        other => {
            let text = format!("{peer} rejected the connection, reason {other}: try again");
            Error::new(ErrorKind::Reset, text)
        }
    }
}

/// First byte of a rejection by this provider: the request made no sense.
pub(crate) const REJECT_FOREIGN: u8 = 1;
/// First byte of a rejection by this provider: a limit is reached.
pub(crate) const REJECT_FULL: u8 = 2;
/// First byte of a rejection by this provider: packets of that size do not fit here.
pub(crate) const REJECT_MTU: u8 = 3;

fn nobody(peer: &dyn fmt::Display) -> Error {
    let text = format!("nobody listens at {peer}: start the peer or check the port");
    Error::new(ErrorKind::Refused, text)
}

/// The connection manager failed on the way to `peer`, with a negative error number.
pub(crate) fn cm_error(status: i32, peer: &dyn fmt::Display) -> Error {
    // Some transports tell a positive reason here.
    connect_error(io::Error::from_raw_os_error(status.saturating_abs()), peer)
}

/// Connecting to `peer` failed.
pub(crate) fn connect_error(error: io::Error, peer: &dyn fmt::Display) -> Error {
    match Errno::from_io_error(&error) {
        Some(Errno::CONNREFUSED) => nobody(peer).with_source(error),
        Some(Errno::NODEV | Errno::ADDRNOTAVAIL) => {
            let text = format!(
                "D17: {peer}: no RDMA device of this host leads there, see `fabric doctor --to`"
            );
            Error::new(ErrorKind::Unreachable, text).with_source(error)
        }
        Some(Errno::INVAL) => {
            Error::new(ErrorKind::Address, format!("{peer} cannot be connected to"))
                .with_source(error)
        }
        _ => common(error, &format!("connecting to {peer}")),
    }
}

/// Listening at `addr` failed.
pub(crate) fn listen_error(error: io::Error, addr: &dyn fmt::Display) -> Error {
    let (kind, text) = match Errno::from_io_error(&error) {
        Some(Errno::ADDRINUSE) => (
            ErrorKind::AddrInUse,
            format!("{addr} is in use: stop who listens there or take another port"),
        ),
        Some(Errno::ADDRNOTAVAIL | Errno::INVAL | Errno::NODEV) => {
            (ErrorKind::Address, format!("{addr} is no address of an RDMA device of this host"))
        }
        _ => return common(error, &format!("listening at {addr}")),
    };
    Error::new(kind, text).with_source(error)
}

/// There is no RDMA here, or no access to it.
pub(crate) fn open_error(error: io::Error) -> Error {
    let text = match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            "D15: RDMA devices cannot be opened: not permitted, see `ls -l /dev/infiniband`"
                .to_owned()
        }
        Some(Errno::NOMEM) => memory_text("opening a verbs domain"),
        _ => no_device(),
    };
    Error::new(ErrorKind::Host, text).with_source(error)
}

/// There are devices, but no way to reach them by address.
pub(crate) fn channel_error(error: io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV) => {
            let text = "D07: there is no RDMA connection manager: try `modprobe rdma_ucm`, in a \
                        container pass /dev/infiniband/rdma_cm, or use tcp://";
            Error::new(ErrorKind::Host, text).with_source(error)
        }
        _ => open_error(error),
    }
}

/// What to do without a device.
pub(crate) fn no_device() -> String {
    "D08: this host has no RDMA device that is up: check `rdma link`, or use tcp://".into()
}

/// `bytes` bytes could not be registered.
pub(crate) fn register_error(error: io::Error, bytes: usize) -> Error {
    let text = match Errno::from_io_error(&error) {
        Some(Errno::NOMEM | Errno::AGAIN | Errno::PERM) => {
            memory_text(&format!("registering {bytes} bytes"))
        }
        _ => format!("{bytes} bytes of memory could not be registered"),
    };
    Error::new(ErrorKind::Host, text).with_source(error)
}

/// The host or device could not do something that involves no peer.
pub(crate) fn host_error(error: io::Error, what: &str) -> Error {
    common(error, what)
}

/// Why the peer said goodbye.
pub(crate) fn goodbye(reason: Reason, peer: &Addr) -> Error {
    // Who asks for what is not exposed ends the connection, so it was the peer.
    fabric_link::goodbye(reason, peer, trespassed)
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
        Some(Errno::MFILE | Errno::NFILE) => {
            (ErrorKind::Host, format!("D16: {what}: no descriptor is left: `ulimit -n 65536`"))
        }
        Some(Errno::NOBUFS | Errno::NOMEM) => (ErrorKind::Host, memory_text(what)),
        Some(Errno::ACCESS | Errno::PERM) => {
            let text = format!("D15: {what}: not permitted, see `ls -l /dev/infiniband`");
            (ErrorKind::Host, text)
        }
        Some(Errno::NODEV | Errno::NOSYS) => (ErrorKind::Host, no_device()),
        _ => (ErrorKind::Provider, format!("{what} failed in a way verbs have no name for")),
    };
    Error::new(kind, text).with_source(error)
}

fn memory_text(what: &str) -> String {
    match getrlimit(Resource::Memlock).current {
        Some(limit) => {
            format!(
                "D12: {what}: the limit of locked memory is {} KiB (RLIMIT_MEMLOCK) and used up, or \
                 memory is: try `ulimit -l unlimited`",
                limit / 1024
            )
        }
        None => format!("{what}: the host or the device has no memory for it, see `free`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr() -> Addr {
        Addr::new("verbs", "h", Some(1))
    }

    fn kind_of(status: u32) -> Option<ErrorKind> {
        let completion = Completion { id: 0, qp: 0, status, vendor: 0, bytes: 0 };
        match verdict(&completion, &addr()) {
            Verdict::Bad(error) => {
                assert!(
                    std::error::Error::source(&error).is_some()
                        && !error.to_string().contains('\n')
                );
                Some(error.kind())
            }
            Verdict::Good | Verdict::Flushed => None,
        }
    }

    #[test]
    fn every_completion_status_has_a_kind() {
        let found = [0, 5, 10, 12, 13, 11, 4, 4000].map(kind_of);
        let expected = [
            None,
            None,
            Some(ErrorKind::Access),
            Some(ErrorKind::TimedOut),
            Some(ErrorKind::NoReceive),
            Some(ErrorKind::Reset),
            Some(ErrorKind::Provider),
            Some(ErrorKind::Provider),
        ];
        assert_eq!(found, expected);
        assert!((0..300).filter(|status| ![0, 5].contains(status)).all(|s| kind_of(s).is_some()));
    }

    #[test]
    fn every_rejection_has_a_kind() {
        let peer = addr();
        assert_eq!(rejection(8, &[], &peer).kind(), ErrorKind::Refused);
        assert_eq!(rejection(28, &[REJECT_FOREIGN], &peer).kind(), ErrorKind::Protocol);
        assert_eq!(rejection(28, &[REJECT_FULL], &peer).kind(), ErrorKind::Refused);
        assert_eq!(rejection(28, &[REJECT_MTU], &peer).kind(), ErrorKind::Unreachable);
        assert_eq!(rejection(-111, &[], &peer).kind(), ErrorKind::Refused);
        for status in -200..200 {
            assert!(!rejection(status, &[], &peer).to_string().contains('\n'));
        }
    }

    #[test]
    fn what_a_host_lacks_has_its_number_and_a_command() {
        let io = |errno: Errno| io::Error::from(errno);
        let cases = [
            (open_error(io(Errno::ACCESS)), "D15: "),
            (open_error(io(Errno::NOSYS)), "D08: "),
            (channel_error(io(Errno::NOENT)), "D07: "),
            (channel_error(io(Errno::NODEV)), "D07: "),
            (channel_error(io(Errno::PERM)), "D15: "),
            (host_error(io(Errno::MFILE), "x"), "D16: "),
            (host_error(io(Errno::NOSYS), "x"), "D08: "),
            (connect_error(io(Errno::NODEV), &addr()), "D17: "),
        ];
        for (error, number) in cases {
            assert!(error.message().starts_with(number), "{error}");
            assert_eq!(error.message().matches('`').count(), 2, "{error}");
        }
        let memory = register_error(io(Errno::NOMEM), 1).message().to_owned();
        let limited = getrlimit(Resource::Memlock).current.is_some();
        assert_eq!(memory.starts_with("D12: "), limited, "{memory}");
    }

    #[test]
    fn any_code_is_put_in_words_with_its_number_in_the_source_alone() {
        for code in 0..200 {
            let io = || io::Error::from_raw_os_error(code);
            for error in [
                connect_error(io(), &addr()),
                listen_error(io(), &addr()),
                open_error(io()),
                register_error(io(), 1),
                host_error(io(), "polling"),
                cm_error(-code, &addr()),
            ] {
                assert!(std::error::Error::source(&error).is_some(), "{error}");
                let text = error.message();
                let bare = ['\n'.into(), "os error".into(), format!("error {code}")];
                assert!(!bare.iter().any(|part: &String| text.contains(part)), "{text}");
            }
        }
    }
}
