//! The link that an address uses, made if there is none.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::thread;
use std::time::Duration;

use fabric_core::{Addr, Error, ErrorKind};

use crate::link::{self, Link};
use crate::{route, status};

/// The kernel fills in the addresses of a new link in its own time, which is short.
const LOOKS_MAX: u32 = 300;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The link for `addr`: the one it names, or that of the interface that it names or that leads
/// there, made if there is none (then called `rxe_` and the interface's name). For `*`, any link
/// that is up. A link made here stays, since others may use it by then: [`remove`](crate::remove)
/// ends it.
///
/// Blocks while the kernel sets up a new link, some milliseconds as a rule.
///
/// # Errors
/// As [`add`](crate::add); `Address` for a name that is neither an interface nor a host;
/// `Unreachable` when no route leads there; `Host` for `*` when there is no link.
pub fn link_for(addr: &Addr) -> Result<Link, Error> {
    if let Some(link) = named(addr.host())? {
        return Ok(link);
    }
    match route::interface_of(addr)? {
        Some(interface) => on(&interface),
        None => any(),
    }
}

fn named(name: &str) -> Result<Option<Link>, Error> {
    Ok(link::links()?.into_iter().find(|link| link.name == name))
}

fn on(interface: &str) -> Result<Link, Error> {
    if let Some(link) = link::link_on(interface)? {
        return with_addresses(link);
    }
    match link::add(&format!("rxe_{interface}"), interface) {
        Ok(link) => with_addresses(link),
        Err(error) if status::is_taken(&error) => with_addresses(somebody_elses(interface, error)?),
        Err(error) => Err(error),
    }
}

/// Somebody else is making a link there: it shows when the kernel is done with it.
fn somebody_elses(interface: &str, error: Error) -> Result<Link, Error> {
    for _ in 0..LOOKS_MAX {
        if let Some(link) = link::link_on(interface)? {
            return Ok(link);
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    Err(error)
}

fn any() -> Result<Link, Error> {
    let mut links = link::links()?;
    links.sort_by_key(|link| !link.active);
    links.into_iter().next().ok_or_else(|| {
        let text = "there is no soft-RoCE link: name an interface, like softroce://eth0:7000";
        Error::new(ErrorKind::Host, text)
    })
}

/// Waits until a link that is up has an address of its interface, if that has any; not for ever,
/// since whoever uses it says better what it lacks.
fn with_addresses(link: Link) -> Result<Link, Error> {
    let expected = route::addresses_of(&link.interface)?;
    let dir = Path::new("/sys/class/infiniband").join(&link.name).join("ports/1/gids");
    for _ in 0..LOOKS_MAX {
        if expected.is_empty() || known(&dir).iter().any(|ip| expected.contains(ip)) {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok(link)
}

/// The addresses in a link's table.
fn known(table: &Path) -> Vec<IpAddr> {
    let entries = fs::read_dir(table).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let addresses = texts.filter_map(|text| text.trim().parse::<Ipv6Addr>().ok());
    addresses.map(|address| IpAddr::V6(address).to_canonical()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_addresses_is_read_as_the_kernel_writes_it() {
        let table = tempfile::tempdir().unwrap();
        fs::write(table.path().join("0"), "fe80:0000:0000:0000:54ce:5dff:fed8:4a81\n").unwrap();
        fs::write(table.path().join("1"), "0000:0000:0000:0000:0000:ffff:0a09:0001\n").unwrap();
        let known = known(table.path());
        assert_eq!(known.len(), 2);
        assert!(known.contains(&"10.9.0.1".parse().unwrap()));
    }
}
