//! From addresses as users write them to what providers and side channels take.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use fabric_core::{Addr, Error, ErrorKind};

use crate::scheme::Scheme;
use crate::side::Meeting;

/// Where `addr` says to listen, in the order to try them. Port 0 stays 0.
///
/// # Errors
/// `Unsupported` for another scheme; `Address` for no port, a path, or a name that is neither an
/// interface nor a host.
pub(crate) fn places(addr: &Addr, scheme: Scheme) -> Result<Vec<SocketAddr>, Error> {
    let port = port_of(addr, scheme)?;
    if addr.host() == "*" {
        let all = [IpAddr::from(Ipv6Addr::UNSPECIFIED), Ipv4Addr::UNSPECIFIED.into()];
        return Ok(all.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    find(addr, port)
}

/// The peers that `addr` may mean, in the order to try them.
///
/// # Errors
/// As [`places`], and `Address` for port 0 and `*`.
pub(crate) fn peers(addr: &Addr, scheme: Scheme) -> Result<Vec<SocketAddr>, Error> {
    let port = port_of(addr, scheme)?;
    check_peer(addr, Some(port))?;
    find(addr, port)
}

/// The name on this host that `addr` means to providers that reach no other.
///
/// # Errors
/// `Unsupported` for another scheme; `Address` for a path or a name that is too long.
pub(crate) fn local(addr: &Addr, scheme: Scheme) -> Result<Meeting, Error> {
    check(addr, scheme)?;
    if addr.host().len() > LOCAL_NAME_MAX {
        let text = format!("{addr}: use a name of at most {LOCAL_NAME_MAX} bytes");
        return Err(Error::new(ErrorKind::Address, text));
    }
    let name = match addr.port() {
        Some(port) => format!("{}/{}:{port}", scheme.name, addr.host()),
        None => format!("{}/{}", scheme.name, addr.host()),
    };
    Ok(Meeting::Local(name))
}

/// The same of a peer.
///
/// # Errors
/// As [`local`], and `Address` for port 0 and `*`.
pub(crate) fn local_peer(addr: &Addr, scheme: Scheme) -> Result<Meeting, Error> {
    let meeting = local(addr, scheme)?;
    check_peer(addr, addr.port())?;
    Ok(meeting)
}

/// A socket address in this scheme.
pub(crate) fn addr_of(at: SocketAddr, scheme: Scheme) -> Addr {
    let host = if at.ip().is_unspecified() { "*".into() } else { host_of(at) };
    Addr::new(scheme.name, &host, Some(at.port()))
}

/// Names of Unix sockets have 108 bytes, of which prefix, scheme and port take their part.
const LOCAL_NAME_MAX: usize = 64;

fn host_of(at: SocketAddr) -> String {
    match at {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => at.ip().to_canonical().to_string(),
    }
}

fn check(addr: &Addr, scheme: Scheme) -> Result<(), Error> {
    if addr.scheme() != scheme.name {
        let name = scheme.name;
        let text = format!("{addr} is not for this provider, whose addresses begin with {name}://");
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if !matches!(addr.path(), "" | "/") {
        let text = format!("{addr}: these addresses have no path, end it at the port");
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(())
}

fn port_of(addr: &Addr, scheme: Scheme) -> Result<u16, Error> {
    check(addr, scheme)?;
    addr.port().ok_or_else(|| {
        let text =
            format!("{addr} has no port: add one, like {}://{}:7000", scheme.name, addr.host());
        Error::new(ErrorKind::Address, text)
    })
}

fn check_peer(addr: &Addr, port: Option<u16>) -> Result<(), Error> {
    let text = if addr.host() == "*" {
        format!("{addr} names all interfaces, which is for listening: connect to one host")
    } else if port == Some(0) {
        format!("{addr}: nobody can listen at port 0, use the one that listening picked")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Address, text))
}

fn find(addr: &Addr, port: u16) -> Result<Vec<SocketAddr>, Error> {
    if let Ok(ip) = addr.host().parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    if let Some(ips) = interface(addr.host()) {
        return routable(ips, addr, port);
    }
    lookup(addr, port)
}

/// Link-local addresses would need to say which interface they mean.
fn routable(ips: Vec<IpAddr>, addr: &Addr, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let is_routable = |ip: &IpAddr| match ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let found: Vec<SocketAddr> =
        ips.into_iter().filter(is_routable).map(|ip| SocketAddr::new(ip, port)).collect();
    if found.is_empty() {
        let text = format!("{addr}: the interface {} has no IP address: give it one", addr.host());
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(found)
}

fn interface(name: &str) -> Option<Vec<IpAddr>> {
    // A host that cannot list its interfaces may still resolve the name.
    let mut found = if_addrs::get_if_addrs().unwrap_or_default();
    found.retain(|interface| interface.name == name);
    found.sort_by_key(|interface| interface.ip().is_ipv6());
    (!found.is_empty()).then(|| found.iter().map(if_addrs::Interface::ip).collect())
}

fn lookup(addr: &Addr, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let host = addr.host();
    let failed = |text: &str| {
        let text = format!("{addr}: {host} is no interface and no host {text}");
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

    const TCP: Scheme = Scheme { name: "ofi+tcp", provider: Some("tcp") };
    const SHM: Scheme = Scheme { name: "ofi+shm", provider: Some("shm") };

    fn addr(text: &str) -> Addr {
        text.parse().unwrap()
    }

    #[test]
    fn literal_addresses_stand_for_themselves() {
        let found = peers(&addr("ofi+tcp://10.0.0.5:7000"), TCP).unwrap();
        assert_eq!(found, ["10.0.0.5:7000".parse().unwrap()]);
        assert_eq!(addr_of(found[0], TCP).to_string(), "ofi+tcp://10.0.0.5:7000");
        assert_eq!(places(&addr("ofi+tcp://*:0"), TCP).unwrap().len(), 2);
    }

    #[test]
    fn names_on_this_host_may_have_a_port() {
        let name = |text: &str| local(&addr(text), SHM).unwrap();
        assert_eq!(name("ofi+shm://a:1"), Meeting::Local("ofi+shm/a:1".into()));
        assert_ne!(name("ofi+shm://a"), name("ofi+shm://a:1"));
        assert!(local(&addr(&format!("ofi+shm://{}", "a".repeat(65))), SHM).is_err());
    }

    #[test]
    fn each_mistake_has_its_kind() {
        let kind = |text: &str| peers(&addr(text), TCP).unwrap_err().kind();
        assert_eq!(kind("tcp://10.0.0.5:7000"), ErrorKind::Unsupported);
        for text in ["ofi+tcp://h", "ofi+tcp://10.0.0.5:0", "ofi+tcp://*:1", "ofi+tcp://h:1/path"] {
            assert_eq!(kind(text), ErrorKind::Address, "{text}");
        }
        assert!(local_peer(&addr("ofi+shm://a:0"), SHM).is_err());
        assert!(local_peer(&addr("ofi+tcp://a:1"), SHM).is_err());
    }
}
