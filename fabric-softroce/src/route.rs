//! Which interface an address leads to.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use fabric_core::{Addr, Error, ErrorKind};

use crate::interface;

/// The interface that `addr` names or that packets to it take; `None` for all interfaces. Names of
/// hosts are asked for, which may block.
///
/// # Errors
/// `Address` for a name that is neither an interface nor a host, `Unreachable` when nothing leads
/// there, `Host` when the host does not list its interfaces.
pub(crate) fn interface_of(addr: &Addr) -> Result<Option<String>, Error> {
    let host = addr.host();
    if host == "*" {
        return Ok(None);
    }
    if interface::exists(host) {
        return Ok(Some(host.to_owned()));
    }
    let peers = resolve(host)?;
    let source = peers.iter().find_map(|peer| source_to(*peer)).ok_or_else(|| no_way(host))?;
    owner_of(source).map(Some)
}

/// The IP addresses of an interface that others can route to.
///
/// # Errors
/// `Host` when the host does not list its interfaces.
pub(crate) fn addresses_of(interface: &str) -> Result<Vec<IpAddr>, Error> {
    let all = all()?;
    let ours = all.iter().filter(|one| one.name == interface && !one.is_link_local());
    Ok(ours.map(if_addrs::Interface::ip).collect())
}

fn resolve(host: &str) -> Result<Vec<SocketAddr>, Error> {
    let found = (host, 1).to_socket_addrs().map_err(|error| {
        let text = format!("`{host}` is neither a network interface nor a host with an address");
        Error::new(ErrorKind::Address, text).with_source(error)
    })?;
    Ok(found.collect())
}

/// The address that packets to `peer` would come from. Connecting a datagram socket sends none.
fn source_to(peer: SocketAddr) -> Option<IpAddr> {
    let any = if peer.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(peer).map(|()| socket));
    Some(socket.ok()?.local_addr().ok()?.ip())
}

fn owner_of(source: IpAddr) -> Result<String, Error> {
    let owner = all()?.into_iter().find(|one| one.ip() == source);
    owner.map(|one| one.name).ok_or_else(|| {
        Error::new(ErrorKind::Address, format!("no network interface has the address {source}"))
    })
}

fn all() -> Result<Vec<if_addrs::Interface>, Error> {
    if_addrs::get_if_addrs().map_err(|error| {
        Error::new(ErrorKind::Host, "the network interfaces cannot be listed").with_source(error)
    })
}

fn no_way(host: &str) -> Error {
    Error::new(ErrorKind::Unreachable, format!("no route leads to `{host}`: see `ip route`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str) -> Result<Option<String>, Error> {
        interface_of(&Addr::new("softroce", host, Some(1)))
    }

    #[test]
    fn an_address_leads_to_the_interface_that_has_it() {
        for host in ["127.0.0.1", "localhost", "lo"] {
            assert_eq!(to(host).unwrap().as_deref(), Some("lo"), "{host}");
        }
        assert_eq!(to("*").unwrap(), None);
    }

    #[test]
    fn a_name_that_is_nothing_is_refused() {
        assert_eq!(to("no such name").unwrap_err().kind(), ErrorKind::Address);
    }
}
