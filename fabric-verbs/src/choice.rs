//! Which device an address means, and which of its addresses to come from.
//!
//! The rule: a name or `VerbsOptions::device` means that device and no other; an address of this
//! host means the device it belongs to; any other address means the device that its route leaves
//! through. The connection manager says to which device an address belongs, so InfiniBand and iWARP
//! need no rule of their own. The GID of a connection follows from the address that it comes from.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use fabric_core::{Addr, Error, ErrorKind};

use crate::options::VerbsOptions;
use crate::resolve;
use crate::status;
use crate::sys::{Device, EventChannel, Id, Space};

/// The query parameter that names a device, as in `verbs://10.0.0.5:7000?device=mlx5_0`.
pub(crate) const DEVICE: &str = "device";

/// An address of a device, with the length of its network's prefix in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) ip: IpAddr,
    pub(crate) prefix_bits: u8,
}

/// The name of the device that `addr` means; `None` where any will do, and where no route leads
/// there for now.
///
/// # Errors
/// `Address` for what is no address of this provider or names no device, `Unreachable` when it is
/// reached through an interface without RDMA, `Host` when the host cannot be asked.
pub(crate) fn device_for(addr: &Addr, options: &VerbsOptions) -> Result<Option<String>, Error> {
    resolve::check_scheme(addr, options.scheme)?;
    if let Some(name) = &options.device {
        check_named(addr, name)?;
        return Ok(Some(name.clone()));
    }
    if let Some(name) = named(addr) {
        return Ok(Some(name.to_owned()));
    }
    if addr.host() == "*" {
        return Ok(None);
    }
    let devices = Device::all().map_err(status::open_error)?;
    if devices.iter().any(|device| device.name() == addr.host()) {
        return Ok(Some(addr.host().to_owned()));
    }
    let failed = if devices.is_empty() { status::open_error } else { status::channel_error };
    let channel = EventChannel::new().map_err(failed)?;
    let places = resolve::find(addr, addr.port().unwrap_or(0), &devices)?;
    by_route(addr, &places, &devices, &channel)
}

/// The device that `addr` names in its query.
pub(crate) fn named(addr: &Addr) -> Option<&str> {
    addr.query(DEVICE)
}

/// Refuses an address that names another device than `device`.
///
/// # Errors
/// `Address`.
pub(crate) fn check_named(addr: &Addr, device: &str) -> Result<(), Error> {
    match named(addr) {
        Some(other) if other != device => {
            let text = format!("{addr} names another device than {device}, which is used here");
            Err(Error::new(ErrorKind::Address, text))
        }
        _ => Ok(()),
    }
}

fn by_route(
    addr: &Addr,
    places: &[SocketAddr],
    devices: &[Device],
    channel: &Arc<EventChannel>,
) -> Result<Option<String>, Error> {
    let mut sources = places.iter().filter_map(|place| source_to(*place)).peekable();
    let Some(&first) = sources.peek() else {
        tracing::debug!(%addr, "no route leads there for now: any device will do");
        return Ok(None);
    };
    let found = sources.find_map(|source| owner(source, devices, channel));
    found.map(|device| Some(device.name())).ok_or_else(|| {
        let text = format!(
            "D17: {addr} is reached from {first}, which belongs to no RDMA device; there {}, see \
             `rdma link`",
            listed(devices)
        );
        Error::new(ErrorKind::Unreachable, text)
    })
}

/// The address that packets to `place` would come from; itself for one of this host. Connecting a
/// datagram socket sends none.
fn source_to(place: SocketAddr) -> Option<IpAddr> {
    let any = if place.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).ok()?;
    // Port 0 is for listening and cannot be connected to.
    socket.connect(SocketAddr::new(place.ip(), place.port().max(1))).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The device that an address of this host belongs to.
fn owner<'a>(ip: IpAddr, devices: &'a [Device], channel: &Arc<EventChannel>) -> Option<&'a Device> {
    let link = Id::new(channel, 0, Space::Connected).ok()?;
    link.bind(SocketAddr::new(ip, 0)).ok()?;
    devices.iter().find(|device| link.is_on(device))
}

/// The addresses of this host that belong to `device`.
pub(crate) fn addresses(device: &Device, channel: &Arc<EventChannel>) -> Vec<Local> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let locals = all.iter().map(|interface| match &interface.addr {
        if_addrs::IfAddr::V4(v4) => Local { ip: v4.ip.into(), prefix_bits: v4.prefixlen },
        if_addrs::IfAddr::V6(v6) => Local { ip: v6.ip.into(), prefix_bits: v6.prefixlen },
    });
    let devices = std::slice::from_ref(device);
    locals.filter(|local| owner(local.ip, devices, channel).is_some()).collect()
}

/// The IP addresses of a device, IPv4 first, link-local ones last. Those in its own tables where
/// none of this host belongs to it.
pub(crate) fn ips_of(device: &Device) -> Vec<IpAddr> {
    let channel = EventChannel::new();
    let locals = channel.map(|channel| addresses(device, &channel)).unwrap_or_default();
    let mut ips: Vec<IpAddr> = locals.iter().map(|local| local.ip).collect();
    if ips.is_empty() {
        ips = device.ips();
    }
    ips.sort_by_key(|ip| (is_link_local(*ip), ip.is_ipv6()));
    ips.dedup();
    ips
}

/// Which of a device's addresses to come from on the way to `peer`: one of the same network, else
/// one that others can route to, and never one of another family.
pub(crate) fn source_for(peer: IpAddr, locals: &[Local]) -> Option<IpAddr> {
    let of_family = |local: &&Local| local.ip.is_ipv4() == peer.is_ipv4();
    let near = locals.iter().filter(of_family).find(|local| local.is_near(peer));
    let routable = || locals.iter().filter(of_family).find(|local| !is_link_local(local.ip));
    near.or_else(routable).map(|local| local.ip)
}

impl Local {
    fn is_near(&self, peer: IpAddr) -> bool {
        let (own, peer, width) = match (self.ip, peer) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => {
                (u128::from(own.to_bits()), u128::from(peer.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(peer)) => (own.to_bits(), peer.to_bits(), 128),
            _ => return false,
        };
        // A prefix of no bits is everything's network.
        let host_bits = width - u32::from(self.prefix_bits).min(width);
        (own ^ peer).checked_shr(host_bits).unwrap_or(0) == 0
    }
}

pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The devices with the state of their ports, for people: `are: rxe0 (port 1 active)`.
pub(crate) fn listed(devices: &[Device]) -> String {
    let described: Vec<String> = devices.iter().map(described).collect();
    if described.is_empty() { "are none".into() } else { format!("are: {}", described.join(", ")) }
}

fn described(device: &Device) -> String {
    let ports: Vec<String> = device
        .port_states()
        .into_iter()
        .map(|(port, state)| format!("port {port} {state}"))
        .collect();
    format!("{} ({})", device.name(), ports.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> Local {
        let (ip, prefix) = text.split_once('/').unwrap();
        Local { ip: ip.parse().unwrap(), prefix_bits: prefix.parse().unwrap() }
    }

    fn chosen(peer: &str, locals: &[&str]) -> Option<String> {
        let locals: Vec<Local> = locals.iter().map(|text| local(text)).collect();
        source_for(peer.parse().unwrap(), &locals).map(|ip| ip.to_string())
    }

    #[test]
    fn an_address_of_the_same_network_comes_first() {
        let locals = ["10.0.0.1/24", "10.0.1.1/24", "fd00::1/64"];
        assert_eq!(chosen("10.0.1.9", &locals).as_deref(), Some("10.0.1.1"));
        assert_eq!(chosen("10.0.9.9", &locals).as_deref(), Some("10.0.0.1"));
        assert_eq!(chosen("fd00::7", &locals).as_deref(), Some("fd00::1"));
    }

    #[test]
    fn link_local_addresses_are_for_link_local_peers() {
        let locals = ["fe80::1/64", "169.254.1.1/16", "fd00::1/64"];
        assert_eq!(chosen("fd01::7", &locals).as_deref(), Some("fd00::1"));
        assert_eq!(chosen("fe80::7", &locals).as_deref(), Some("fe80::1"));
        assert_eq!(chosen("10.0.0.1", &locals), None);
    }

    #[test]
    fn prefixes_of_any_length_are_understood() {
        assert!(local("10.0.0.1/0").is_near("11.0.0.1".parse().unwrap()));
        assert!(!local("10.0.0.1/32").is_near("10.0.0.2".parse().unwrap()));
        assert!(local("::1/0").is_near("ff::".parse().unwrap()));
        assert!(!local("::1/200").is_near("::2".parse().unwrap()));
        assert_eq!(chosen("::1", &["10.0.0.1/8"]), None);
    }

    #[test]
    fn an_address_that_names_another_device_is_refused() {
        let addr: Addr = "verbs://10.0.0.5:7000?device=mlx5_1".parse().unwrap();
        assert!(check_named(&addr, "mlx5_1").is_ok());
        assert_eq!(check_named(&addr, "mlx5_0").unwrap_err().kind(), ErrorKind::Address);
        let options = VerbsOptions { device: Some("mlx5_0".into()), ..Default::default() };
        assert_eq!(device_for(&addr, &options).unwrap_err().kind(), ErrorKind::Address);
        assert_eq!(device_for(&addr, &VerbsOptions::default()).unwrap().as_deref(), Some("mlx5_1"));
    }

    #[test]
    fn the_source_of_a_local_address_is_itself() {
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(source_to(SocketAddr::new(ip, 0)), Some(ip));
    }
}
