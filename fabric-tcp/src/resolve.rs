//! From addresses as users write them to socket addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use fabric_core::{Addr, Error, ErrorKind};

/// The scheme this provider serves.
pub(crate) const SCHEME: &str = "tcp";

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// On all interfaces, of both families if the host has both.
    All { port: u16 },
    /// At one of these, the first that works.
    At(Vec<SocketAddr>),
}

/// Where `addr` says to listen. Names are asked for, which may block; literal addresses are not.
///
/// # Errors
/// `Unsupported` for another scheme; `Address` for no port, a path, or a name that is neither an
/// interface nor a host.
pub(crate) fn listen_place(addr: &Addr) -> Result<Place, Error> {
    let port = check(addr)?;
    if addr.host() == "*" {
        return Ok(Place::All { port });
    }
    if let Some(ip) = literal(addr.host()) {
        return Ok(Place::At(vec![SocketAddr::new(ip, port)]));
    }
    match interface(addr.host()) {
        Some(found) if !found.is_empty() => {
            Ok(Place::At(found.into_iter().map(|at| with_port(at, port)).collect()))
        }
        Some(_) => Err(Error::new(
            ErrorKind::Address,
            format!("{addr}: the interface {} has no IP address", addr.host()),
        )),
        None => lookup(addr, port, "is neither an interface of this host nor").map(Place::At),
    }
}

/// The peers that `addr` may mean, in the order to try them.
///
/// # Errors
/// `Unsupported` for another scheme; `Address` for no port, port 0, `*`, a path, or a name that does
/// not resolve.
pub(crate) fn peers(addr: &Addr) -> Result<Vec<SocketAddr>, Error> {
    let port = check(addr)?;
    if addr.host() == "*" {
        return Err(Error::new(
            ErrorKind::Address,
            format!("{addr} names all interfaces, which is for listening: connect to one host"),
        ));
    }
    if port == 0 {
        return Err(Error::new(
            ErrorKind::Address,
            format!("{addr}: nobody can listen at port 0, use the port that listening picked"),
        ));
    }
    match literal(addr.host()) {
        Some(ip) => Ok(vec![SocketAddr::new(ip, port)]),
        None => lookup(addr, port, "is not").map(dedup),
    }
}

/// A socket address in this provider's scheme.
pub(crate) fn addr_of(at: SocketAddr) -> Addr {
    let host = match at {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => at.ip().to_canonical().to_string(),
    };
    Addr::new(SCHEME, &host, Some(at.port()))
}

/// All addresses of both families, and what is left where IPv6 is off.
pub(crate) fn all(port: u16) -> [SocketAddr; 2] {
    [
        SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
        SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
    ]
}

/// The port, if the rest makes sense too.
fn check(addr: &Addr) -> Result<u16, Error> {
    if addr.scheme() != SCHEME {
        let text = format!("{addr} is no TCP address: it begins with {SCHEME}://");
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if !matches!(addr.path(), "" | "/") {
        let text = format!("{addr}: TCP addresses have no path, end it at the port");
        return Err(Error::new(ErrorKind::Address, text));
    }
    addr.port().ok_or_else(|| {
        let text = format!("{addr} has no port: add one, like {SCHEME}://{}:5555", addr.host());
        Error::new(ErrorKind::Address, text)
    })
}

fn literal(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

/// The addresses of an interface, IPv4 first, link-local ones last; `None` if there is no such.
fn interface(name: &str) -> Option<Vec<SocketAddr>> {
    // A host that cannot list its interfaces may still resolve the name.
    let mut found = if_addrs::get_if_addrs().unwrap_or_default();
    found.retain(|interface| interface.name == name);
    found.sort_by_key(|interface| (interface.is_link_local(), interface.ip().is_ipv6()));
    let addrs = found.iter().map(scoped).collect::<Vec<_>>();
    (!addrs.is_empty()).then_some(addrs)
}

fn scoped(interface: &if_addrs::Interface) -> SocketAddr {
    match interface.ip() {
        IpAddr::V6(ip) if interface.is_link_local() => {
            std::net::SocketAddrV6::new(ip, 0, 0, interface.index.unwrap_or(0)).into()
        }
        ip => SocketAddr::new(ip, 0),
    }
}

fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

fn lookup(addr: &Addr, port: u16, is_not: &str) -> Result<Vec<SocketAddr>, Error> {
    let host = addr.host();
    let unknown = |source: io::Error| {
        let text = format!("{addr}: {host} {is_not} a host name that resolves: check the spelling");
        Error::new(ErrorKind::Address, text).with_source(source)
    };
    let found: Vec<_> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    if found.is_empty() {
        return Err(unknown(io::Error::other("the name has no address")));
    }
    Ok(found)
}

fn dedup(mut addrs: Vec<SocketAddr>) -> Vec<SocketAddr> {
    addrs.dedup();
    addrs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> Addr {
        text.parse().unwrap()
    }

    fn kind<T>(result: Result<T, Error>) -> ErrorKind {
        result.err().unwrap().kind()
    }

    #[test]
    fn literal_addresses_need_no_lookup() {
        let v4 = "127.0.0.1:5".parse().unwrap();
        assert_eq!(listen_place(&addr("tcp://127.0.0.1:5")).unwrap(), Place::At(vec![v4]));
        assert_eq!(peers(&addr("tcp://[::1]:5")).unwrap(), ["[::1]:5".parse().unwrap()]);
        assert_eq!(listen_place(&addr("tcp://*:7")).unwrap(), Place::All { port: 7 });
    }

    #[test]
    fn names_of_hosts_and_interfaces_are_found() {
        let found = peers(&addr("tcp://localhost:5")).unwrap();
        assert!(found.iter().all(|at| at.ip().is_loopback()) && !found.is_empty());
        let Place::At(found) = listen_place(&addr("tcp://lo:5")).unwrap() else { panic!() };
        assert!(found[0].ip().is_loopback());
    }

    #[test]
    fn each_mistake_says_what_to_do() {
        let port = peers(&addr("tcp://127.0.0.1")).unwrap_err();
        assert!(port.message().contains("has no port"), "{port}");
        assert_eq!(kind(peers(&addr("tcp://*:5"))), ErrorKind::Address);
        assert_eq!(kind(peers(&addr("tcp://127.0.0.1:0"))), ErrorKind::Address);
        assert_eq!(kind(peers(&addr("tcp://127.0.0.1:5/x"))), ErrorKind::Address);
        assert_eq!(kind(peers(&addr("udp://127.0.0.1:5"))), ErrorKind::Unsupported);
        assert_eq!(kind(listen_place(&addr("tcp://no such host:5"))), ErrorKind::Address);
    }

    #[test]
    fn a_v4_peer_of_a_dual_socket_is_shown_as_v4() {
        let mapped = "[::ffff:127.0.0.1]:5".parse().unwrap();
        assert_eq!(addr_of(mapped).to_string(), "tcp://127.0.0.1:5");
    }
}
