//! Interfaces, their addresses and the main routing table, as `/proc/net` and sysfs show them
//! (proc(5)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::root::Root;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name: `eth0`.
    pub name: String,
    /// Its largest packet.
    pub mtu_bytes: Option<u64>,
    /// The kernel's word for its state: `up`, `down`, `unknown`.
    pub state: Option<String>,
    /// Whether soft-RoCE can be put on it: Ethernet, and no VLAN.
    pub ethernet: bool,
    /// Its addresses as far as the routing table tells whose they are.
    pub addresses: Vec<IpAddr>,
}

/// A line of the routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    interface: String,
    network: IpAddr,
    /// Bits of the network's part.
    prefix: u8,
    metric: u32,
    /// Without a router between.
    direct: bool,
}

/// Interfaces and the ways through them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) interfaces: Vec<Interface>,
    routes: Vec<Route>,
}

impl Network {
    pub(crate) fn read(root: &Root) -> Self {
        let routes = [routes_v4(root), routes_v6(root)].concat();
        let addresses = [addresses_v4(root, &routes), addresses_v6(root)].concat();
        let names = root.list("/sys/class/net").into_iter();
        let interfaces = names
            .filter(|name| root.exists(&format!("/sys/class/net/{name}/type")))
            .map(|name| interface(root, name, &addresses))
            .collect();
        Self { interfaces, routes }
    }

    /// The interface that packets to `ip` leave through, or that has it.
    pub(crate) fn interface_to(&self, ip: IpAddr) -> Option<&str> {
        self.owner(ip).or_else(|| self.way(ip))
    }

    /// The interface that has this address.
    pub(crate) fn owner(&self, ip: IpAddr) -> Option<&str> {
        let owner = self.interfaces.iter().find(|interface| interface.addresses.contains(&ip));
        owner.map(|interface| interface.name.as_str())
    }

    fn way(&self, ip: IpAddr) -> Option<&str> {
        let fitting = self.routes.iter().filter(|route| route.leads_to(ip));
        let best = fitting.max_by_key(|route| (route.prefix, u32::MAX - route.metric));
        best.map(|route| route.interface.as_str())
    }
}

impl Route {
    fn leads_to(&self, ip: IpAddr) -> bool {
        let (ip, network, width) = match (ip, self.network) {
            (IpAddr::V4(ip), IpAddr::V4(network)) => {
                (u128::from(ip.to_bits()), u128::from(network.to_bits()), 32)
            }
            (IpAddr::V6(ip), IpAddr::V6(network)) => (ip.to_bits(), network.to_bits(), 128),
            _ => return false,
        };
        let rest = u32::saturating_sub(width, u32::from(self.prefix));
        ip.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
    }
}

fn interface(root: &Root, name: String, addresses: &[(String, IpAddr)]) -> Interface {
    let dir = format!("/sys/class/net/{name}");
    let ethernet = root.number(&format!("{dir}/type")) == Some(1);
    let kind = root.read(&format!("{dir}/uevent")).unwrap_or_default();
    Interface {
        mtu_bytes: root.number(&format!("{dir}/mtu")),
        state: root.read(&format!("{dir}/operstate")),
        ethernet: ethernet && !kind.contains("DEVTYPE=vlan"),
        addresses: addresses
            .iter()
            .filter(|(owner, _)| *owner == name)
            .map(|(_, ip)| *ip)
            .collect(),
        name,
    }
}

/// Interface, destination, gateway, flags, then metric and mask: numbers in hexadecimal, addresses
/// in the byte order of the host.
fn routes_v4(root: &Root) -> Vec<Route> {
    let table = root.read("/proc/net/route").unwrap_or_default();
    table.lines().skip(1).filter_map(route_v4).collect()
}

fn route_v4(line: &str) -> Option<Route> {
    let words: Vec<_> = line.split_whitespace().collect();
    let address = |at: usize| {
        let bits = u32::from_str_radix(words.get(at)?, 16).ok()?;
        Some(Ipv4Addr::from(bits.to_ne_bytes()))
    };
    Some(Route {
        interface: (*words.first()?).to_owned(),
        network: IpAddr::V4(address(1)?),
        direct: address(2)?.is_unspecified(),
        metric: words.get(6)?.parse().ok()?,
        prefix: u8::try_from(address(7)?.to_bits().count_ones()).ok()?,
    })
}

/// Destination and its prefix, source and its prefix, next hop, metric, counts, flags, interface.
fn routes_v6(root: &Root) -> Vec<Route> {
    /// Routes of one's own addresses and of groups: they name no way out.
    const LOCAL: u32 = 0x8000_0000;
    const REJECT: u32 = 0x0200;
    let table = root.read("/proc/net/ipv6_route").unwrap_or_default();
    let route = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let flags = u32::from_str_radix(words.get(8)?, 16).ok()?;
        let usable = flags & (LOCAL | REJECT) == 0;
        let route = Route {
            interface: (*words.get(9)?).to_owned(),
            network: IpAddr::V6(v6(words.first()?)?),
            prefix: u8::from_str_radix(words.get(1)?, 16).ok()?,
            direct: v6(words.get(4)?)?.is_unspecified(),
            metric: u32::from_str_radix(words.get(5)?, 16).ok()?,
        };
        usable.then_some(route)
    };
    table.lines().filter_map(route).collect()
}

fn v6(digits: &str) -> Option<Ipv6Addr> {
    u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from_bits)
}

/// The table of own addresses does not say whose they are: the interface of the narrowest network
/// around one is taken, and none if two have it.
fn addresses_v4(root: &Root, routes: &[Route]) -> Vec<(String, IpAddr)> {
    let table = root.read("/proc/net/fib_trie").unwrap_or_default();
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    let mut last = None;
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        }
        let Some(address) = last.filter(|_| line == "/32 host LOCAL") else { continue };
        let owner = neighbourhood(IpAddr::V4(address), routes);
        let entry = owner.map(|owner| (owner.to_owned(), IpAddr::V4(address)));
        found.extend(entry.filter(|entry| !found.contains(entry)));
    }
    found
}

fn neighbourhood(ip: IpAddr, routes: &[Route]) -> Option<&str> {
    if ip.is_loopback() {
        return Some("lo");
    }
    let around = routes.iter().filter(|route| route.direct && route.leads_to(ip));
    let narrowest = around.clone().map(|route| route.prefix).max()?;
    let mut owners = around.filter(|route| route.prefix == narrowest).map(|r| &*r.interface);
    let owner = owners.next()?;
    owners.all(|other| other == owner).then_some(owner)
}

/// Address, index, prefix, scope, flags, interface.
fn addresses_v6(root: &Root) -> Vec<(String, IpAddr)> {
    let table = root.read("/proc/net/if_inet6").unwrap_or_default();
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let address = v6(words.next()?)?;
        Some((words.nth(4)?.to_owned(), IpAddr::V6(address)))
    };
    table.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        ens2\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";

    fn network() -> Network {
        let routes = ROUTES.lines().skip(1).filter_map(route_v4).collect();
        Network { interfaces: Vec::new(), routes }
    }

    #[test]
    fn the_narrowest_route_wins_and_the_default_takes_the_rest() {
        let cases = [("10.1.2.3", "ens2"), ("192.0.2.9", "eth0"), ("198.51.100.1", "eth0")];
        for (ip, interface) in cases {
            assert_eq!(network().interface_to(ip.parse().unwrap()), Some(interface), "{ip}");
        }
        assert_eq!(network().interface_to("2001:db8::1".parse().unwrap()), None);
    }

    #[test]
    fn an_address_belongs_to_the_interface_of_its_network_unless_two_have_it() {
        let mut routes = network().routes;
        let ip = "10.1.2.3".parse().unwrap();
        assert_eq!(neighbourhood(ip, &routes), Some("ens2"));
        let twin = routes.iter().find(|route| route.interface == "ens2").cloned().unwrap();
        routes.push(Route { interface: "ens3".into(), ..twin });
        assert_eq!(neighbourhood(ip, &routes), None);
    }

    #[test]
    fn no_table_makes_reading_panic() {
        for line in ["", "eth0", "eth0 x y z", "eth0 0 0 0 0 0 99999999999 0", "\u{fffd} 1 2"] {
            assert_eq!(route_v4(line), None, "{line}");
        }
    }
}
