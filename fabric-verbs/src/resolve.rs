//! From addresses as users write them to socket addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use fabric_core::{Addr, Error, ErrorKind};

use crate::choice;
use crate::sys::Device;

/// The scheme this provider serves.
pub(crate) const SCHEME: &str = "verbs";

/// Where `addr` says to listen, in the order to try them.
///
/// # Errors
/// `Unsupported` for another scheme than `scheme`; `Address` for no port, a path, or a name that is neither a
/// device, an interface nor a host.
pub(crate) fn places(
    addr: &Addr,
    scheme: &str,
    devices: &[Device],
) -> Result<Vec<SocketAddr>, Error> {
    let port = check(addr, scheme)?;
    if addr.host() == "*" {
        return Ok(vec![SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)]);
    }
    find(addr, port, devices)
}

/// The peers that `addr` may mean, in the order to try them.
///
/// # Errors
/// As [`places`], and `Address` for port 0 and `*`.
pub(crate) fn peers(
    addr: &Addr,
    scheme: &str,
    devices: &[Device],
) -> Result<Vec<SocketAddr>, Error> {
    let port = check(addr, scheme)?;
    if addr.host() == "*" {
        let text = format!("{addr} names all devices, which is for listening: connect to one host");
        return Err(Error::new(ErrorKind::Address, text));
    }
    if port == 0 {
        let text =
            format!("{addr}: nobody can listen at port 0, use the one that listening picked");
        return Err(Error::new(ErrorKind::Address, text));
    }
    find(addr, port, devices)
}

/// A socket address in the scheme that the user chose.
pub(crate) fn addr_in(scheme: &str, at: SocketAddr) -> Addr {
    let host = if at.ip().is_unspecified() { "*".into() } else { host_of(at) };
    Addr::new(scheme, &host, Some(at.port()))
}

fn host_of(at: SocketAddr) -> String {
    match at {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => at.ip().to_canonical().to_string(),
    }
}

/// Whether an address is for domains of this scheme.
///
/// # Errors
/// `Unsupported` if not.
pub(crate) fn check_scheme(addr: &Addr, scheme: &str) -> Result<(), Error> {
    if addr.scheme() == scheme {
        return Ok(());
    }
    let text = format!("{addr} is no {scheme} address: it begins with {scheme}://");
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// The port, if the rest makes sense too.
fn check(addr: &Addr, scheme: &str) -> Result<u16, Error> {
    check_scheme(addr, scheme)?;
    if !matches!(addr.path(), "" | "/") {
        let text = format!("{addr}: {scheme} addresses have no path, end it at the port");
        return Err(Error::new(ErrorKind::Address, text));
    }
    addr.port().ok_or_else(|| {
        let text = format!("{addr} has no port: add one, like {scheme}://{}:7000", addr.host());
        Error::new(ErrorKind::Address, text)
    })
}

/// The socket addresses that the host of `addr` has: an IP address, a device, an interface or a
/// name to look up.
///
/// # Errors
/// `Address` when it is none of these.
pub(crate) fn find(addr: &Addr, port: u16, devices: &[Device]) -> Result<Vec<SocketAddr>, Error> {
    let with_port =
        |ips: Vec<IpAddr>| ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    if let Ok(ip) = addr.host().parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    if let Some(device) = devices.iter().find(|device| device.name() == addr.host()) {
        return routable(choice::ips_of(device), addr, "device").map(with_port);
    }
    if let Some(ips) = interface(addr.host()) {
        return routable(ips, addr, "interface").map(with_port);
    }
    lookup(addr, port, devices)
}

/// Link-local addresses would need to say which interface they mean.
fn routable(ips: Vec<IpAddr>, addr: &Addr, what: &str) -> Result<Vec<IpAddr>, Error> {
    // Those of IPv4 need no interface to be named.
    let is_routable = |ip: &IpAddr| ip.is_ipv4() || !choice::is_link_local(*ip);
    let ips: Vec<IpAddr> = ips.into_iter().filter(is_routable).collect();
    if ips.is_empty() {
        let text = format!("{addr}: the {what} {} has no IP address: give it one", addr.host());
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(ips)
}

fn interface(name: &str) -> Option<Vec<IpAddr>> {
    // A host that cannot list its interfaces may still resolve the name.
    let mut found = if_addrs::get_if_addrs().unwrap_or_default();
    found.retain(|interface| interface.name == name);
    found.sort_by_key(|interface| interface.ip().is_ipv6());
    (!found.is_empty()).then(|| found.iter().map(if_addrs::Interface::ip).collect())
}

fn lookup(addr: &Addr, port: u16, devices: &[Device]) -> Result<Vec<SocketAddr>, Error> {
    let host = addr.host();
    let failed = |text: &str| {
        let text = format!(
            "{addr}: {host} is no interface, no host {text}, and no RDMA device, of which there {}",
            choice::listed(devices)
        );
        Error::new(ErrorKind::Address, text)
    };
    let found = (host, port).to_socket_addrs();
    let mut found: Vec<SocketAddr> =
        found.map_err(|error| failed("that resolves").with_source(error))?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.dedup();
    if found.is_empty() { Err(failed("with an address")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> ErrorKind {
        peers(&text.parse().unwrap(), SCHEME, &[]).unwrap_err().kind()
    }

    #[test]
    fn literal_addresses_stand_for_themselves() {
        let addr = "verbs://10.0.0.5:7000".parse().unwrap();
        assert_eq!(peers(&addr, SCHEME, &[]).unwrap(), ["10.0.0.5:7000".parse().unwrap()]);
        let all = places(&"verbs://*:0".parse().unwrap(), SCHEME, &[]).unwrap();
        assert_eq!(all, ["0.0.0.0:0".parse().unwrap()]);
        assert_eq!(addr_in(SCHEME, all[0]).to_string(), "verbs://*:0");
    }

    #[test]
    fn what_is_said_is_in_the_scheme_that_was_chosen() {
        let refused = |text: &str| {
            peers(&text.parse().unwrap(), "other", &[]).unwrap_err().message().to_owned()
        };
        for text in ["verbs://10.0.0.5:1", "other://10.0.0.5"] {
            assert!(refused(text).contains("other://"), "{}", refused(text));
        }
        assert!(refused("other://h:1/path").contains("other addresses"));
        let at = "10.0.0.5:1".parse().unwrap();
        assert_eq!(addr_in("other", at).to_string(), "other://10.0.0.5:1");
    }

    #[test]
    fn each_mistake_has_its_kind() {
        assert_eq!(kind("tcp://10.0.0.5:7000"), ErrorKind::Unsupported);
        for text in ["verbs://10.0.0.5", "verbs://10.0.0.5:0", "verbs://*:1", "verbs://h:1/path"] {
            assert_eq!(kind(text), ErrorKind::Address, "{text}");
        }
    }
}
