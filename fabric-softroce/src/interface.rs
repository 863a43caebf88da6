//! What the host's network interfaces allow.

use std::fs;
use std::path::{Path, PathBuf};

use fabric_core::{Error, ErrorKind};

const ETHERNET: &str = "1";
const LOOPBACK: &str = "772";

const INTERFACES: &str = "/sys/class/net";

/// Whether there is an interface of that name.
pub(crate) fn exists(interface: &str) -> bool {
    dir(Path::new(INTERFACES), interface).is_ok_and(|dir| dir.is_dir())
}

/// Whether a link of use can be made on an interface.
///
/// # Errors
/// `Address` when there is no such interface, `Unsupported` when it is the loopback, a VLAN or no
/// Ethernet.
pub(crate) fn check(interface: &str) -> Result<(), Error> {
    check_in(Path::new(INTERFACES), interface)
}

/// The kernel makes links on the loopback, but its connection manager then finds no device for
/// 127.0.0.1; on a VLAN it answers as if the caller lacked the right.
fn check_in(interfaces: &Path, interface: &str) -> Result<(), Error> {
    let dir = dir(interfaces, interface)?;
    let kind = fs::read_to_string(dir.join("type"));
    match kind.as_deref().map(str::trim) {
        Ok(ETHERNET) if is_vlan(&dir) => {
            Err(unsupported(interface, "a VLAN; soft-RoCE is made on the interface below it"))
        }
        Ok(ETHERNET) => Ok(()),
        Ok(LOOPBACK) => Err(unsupported(interface, "the loopback, where no RDMA connection works")),
        Ok(_) => Err(unsupported(interface, "no Ethernet, which soft-RoCE needs")),
        Err(_) => Err(missing(interface)),
    }
}

fn is_vlan(dir: &Path) -> bool {
    let facts = fs::read_to_string(dir.join("uevent")).unwrap_or_default();
    facts.lines().any(|fact| fact == "DEVTYPE=vlan")
}

/// Names come from users: none may lead to another directory.
fn dir(interfaces: &Path, interface: &str) -> Result<PathBuf, Error> {
    let plain = !interface.is_empty() && !interface.contains('/') && !interface.starts_with('.');
    if plain { Ok(interfaces.join(interface)) } else { Err(missing(interface)) }
}

fn missing(interface: &str) -> Error {
    let text = format!("there is no network interface `{interface}`: `ip link` lists them");
    Error::new(ErrorKind::Address, text)
}

fn unsupported(interface: &str, what: &str) -> Error {
    let text =
        format!("`{interface}` is {what}: choose an Ethernet interface or one end of a veth pair");
    Error::new(ErrorKind::Unsupported, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory as the kernel shows an interface.
    fn shown(kind: &str, facts: &str) -> tempfile::TempDir {
        let interfaces = tempfile::tempdir().unwrap();
        let dir = interfaces.path().join("net0");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("type"), format!("{kind}\n")).unwrap();
        fs::write(dir.join("uevent"), facts).unwrap();
        interfaces
    }

    fn kind_of(interface: &str) -> ErrorKind {
        check(interface).unwrap_err().kind()
    }

    #[test]
    fn the_loopback_is_refused_by_name() {
        assert_eq!(kind_of("lo"), ErrorKind::Unsupported);
        assert!(check("lo").unwrap_err().message().contains("loopback"));
    }

    #[test]
    fn names_that_are_no_interface_are_refused() {
        for name in ["nosuch0", "", ".", "..", "../net/lo", "lo/.", "a b"] {
            assert_eq!(kind_of(name), ErrorKind::Address, "{name}");
        }
    }

    #[test]
    fn ethernet_is_taken_and_what_only_looks_like_it_is_not() {
        let check = |kind, facts| check_in(shown(kind, facts).path(), "net0");
        assert!(check(ETHERNET, "INTERFACE=net0\nIFINDEX=2\n").is_ok());
        for (kind, facts) in [(ETHERNET, "DEVTYPE=vlan\nINTERFACE=net0\n"), ("65534", "")] {
            assert_eq!(check(kind, facts).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
