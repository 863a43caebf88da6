//! The kernel's refusals as errors that say what to do. What a host lacks begins with the number of
//! the finding by which `fabric doctor` explains it (docs/doctor.md).

use std::io;

use fabric_core::{Error, ErrorKind};
use rustix::io::Errno;

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing<'a> {
    /// The devices and their ports.
    List,
    /// A link by this name on this interface.
    Add(&'a str, &'a str),
    /// The end of the link by this name.
    Remove(&'a str),
}

/// The error for a refusal. Total: what has no meaning here is kept as it is.
pub(crate) fn error(doing: Doing<'_>, refusal: io::Error) -> Error {
    let (kind, text) = match (Errno::from_io_error(&refusal), doing) {
        (Some(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT), _) => (ErrorKind::Host, no_rdma()),
        (Some(Errno::PERM | Errno::ACCESS), _) => (ErrorKind::Host, not_permitted(doing)),
        (Some(Errno::NODEV), Doing::Add(_, interface)) => {
            (ErrorKind::Address, format!("there is no network interface `{interface}`"))
        }
        (Some(Errno::NODEV), Doing::Remove(name)) => (ErrorKind::Misuse, no_such_link(name)),
        (Some(Errno::EXIST | Errno::NFILE), Doing::Add(name, interface)) => {
            (ErrorKind::Host, exists(name, interface))
        }
        (Some(Errno::INVAL | Errno::OPNOTSUPP), Doing::Add(..)) => (ErrorKind::Host, no_module()),
        (Some(Errno::NOENT), Doing::Add(..)) => (ErrorKind::Host, no_checksum()),
        (Some(Errno::AGAIN), _) => {
            (ErrorKind::TimedOut, "the kernel does not answer questions about RDMA".to_owned())
        }
        _ => (ErrorKind::Provider, format!("the kernel refused to {}", what(doing))),
    };
    Error::new(kind, text).with_source(refusal)
}

/// Whether an interface has a link, or a name a device, already.
pub(crate) fn is_taken(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    let errno = source.and_then(Errno::from_io_error);
    matches!(errno, Some(Errno::EXIST | Errno::NFILE))
}

/// There is no soft-RoCE link of that name.
pub(crate) fn no_such_link(name: &str) -> String {
    format!("there is no soft-RoCE link `{name}`: `fabric softroce list` or `rdma link` lists all")
}

fn what(doing: Doing<'_>) -> String {
    match doing {
        Doing::List => "list RDMA devices".to_owned(),
        Doing::Add(name, interface) => format!("make soft-RoCE link `{name}` on `{interface}`"),
        Doing::Remove(name) => format!("remove soft-RoCE link `{name}`"),
    }
}

fn no_rdma() -> String {
    "D08: this kernel has no RDMA: load the module ib_core (`modprobe ib_core`), or use a kernel \
     with CONFIG_INFINIBAND"
        .to_owned()
}

fn no_module() -> String {
    "D09: this kernel makes no soft-RoCE links: load the module rdma_rxe (`modprobe rdma_rxe`; \
     kernel 5.3 or newer; some distributions have it in a package of extra modules)"
        .to_owned()
}

fn no_checksum() -> String {
    "D09: soft-RoCE lacks its checksum: load the module crc32_generic (`modprobe crc32_generic`)"
        .to_owned()
}

fn not_permitted(doing: Doing<'_>) -> String {
    format!("may not {}: it takes CAP_NET_ADMIN, so run as root", what(doing))
}

fn exists(name: &str, interface: &str) -> String {
    format!("`{interface}` has a soft-RoCE link already, or `{name}` is the name of another device")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: Doing<'_> = Doing::Add("rxe0", "eth0");

    fn kind(doing: Doing<'_>, errno: Errno) -> ErrorKind {
        error(doing, errno.into()).kind()
    }

    #[test]
    fn each_refusal_says_who_can_act() {
        assert_eq!(kind(Doing::List, Errno::PROTONOSUPPORT), ErrorKind::Host);
        assert_eq!(kind(ADD, Errno::PERM), ErrorKind::Host);
        assert_eq!(kind(ADD, Errno::NODEV), ErrorKind::Address);
        assert_eq!(kind(ADD, Errno::EXIST), ErrorKind::Host);
        assert_eq!(kind(ADD, Errno::INVAL), ErrorKind::Host);
        assert_eq!(kind(Doing::Remove("rxe0"), Errno::NODEV), ErrorKind::Misuse);
    }

    #[test]
    fn what_is_taken_is_told_from_what_is_forbidden() {
        assert!(is_taken(&error(ADD, Errno::EXIST.into())));
        assert!(is_taken(&error(ADD, Errno::NFILE.into())));
        assert!(!is_taken(&error(ADD, Errno::PERM.into())));
        assert!(!is_taken(&Error::misuse("no source")));
    }

    #[test]
    fn what_a_kernel_lacks_has_its_number_and_a_command() {
        let cases = [
            (Doing::List, Errno::PROTONOSUPPORT, "D08: "),
            (ADD, Errno::OPNOTSUPP, "D09: "),
            (ADD, Errno::NOENT, "D09: "),
        ];
        for (doing, errno, number) in cases {
            let error = error(doing, errno.into());
            assert!(error.message().starts_with(number), "{error}");
            assert!(error.message().contains("`modprobe "), "{error}");
        }
    }

    #[test]
    fn every_number_gives_one_line_and_keeps_the_source() {
        for number in 1..4096 {
            for doing in [Doing::List, ADD, Doing::Remove("rxe0")] {
                let error = error(doing, io::Error::from_raw_os_error(number));
                assert!(!error.to_string().contains('\n'));
                assert!(std::error::Error::source(&error).is_some());
            }
        }
    }
}
