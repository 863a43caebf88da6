//! Ports of devices, and the addresses in their tables.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::root::Root;

/// A port of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its number, from 1.
    pub number: u64,
    /// The kernel's word for its state: `4: ACTIVE`.
    pub state: Option<String>,
    /// The kernel's word for the state of the wire: `5: LinkUp`.
    pub phys_state: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// The kernel's word for its speed: `100 Gb/sec (4X EDR)`.
    pub rate: Option<String>,
    /// Its local address on an InfiniBand fabric.
    pub lid: Option<u64>,
    /// The local address of the subnet manager.
    pub sm_lid: Option<u64>,
    /// The network interface that it belongs to.
    pub interface: Option<String>,
    /// The largest packet of that interface.
    pub interface_mtu_bytes: Option<u64>,
    /// The largest RDMA packet that this allows (RoCE).
    pub path_mtu_bytes: Option<u64>,
    /// Places in its table of addresses, with those that are empty.
    pub gid_places: usize,
    /// What is in the table.
    pub gids: Vec<Gid>,
    /// Counters of errors that are not zero.
    pub errors: BTreeMap<String, u64>,
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gid {
    /// Its place in the table.
    pub index: usize,
    /// The address.
    pub address: IpAddr,
    /// The kernel's word for how packets to it look: `RoCE v2`, `IB/RoCE v1`.
    pub kind: Option<String>,
    /// The interface that has this address.
    pub interface: Option<String>,
}

/// Packets have one of these sizes.
const PATH_MTUS_BYTES: [u64; 5] = [4096, 2048, 1024, 512, 256];
/// What surrounds the payload of a RoCE packet at most, as the kernel reckons it: GRH 40, UDP 8,
/// BTH 12, extended heads 32, checksum 4.
const AROUND_BYTES: u64 = 96;

/// Counters that tell of lost or refused packets, of hardware and of soft-RoCE.
const ERROR_COUNTERS: &[&str] = &[
    "completer_retry_err",
    "local_ack_timeout_err",
    "out_of_sequence",
    "packet_seq_err",
    "rcvd_seq_err",
    "retry_exceeded_err",
    "rnr_nak_retry_err",
    "roce_adp_retrans_to",
    "roce_slow_restart_cnps",
];

impl Port {
    /// Whether it is up.
    pub fn is_active(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.starts_with("4:"))
    }

    pub(crate) fn is_infiniband(&self) -> bool {
        self.link_layer.as_deref() == Some("InfiniBand")
    }

    pub(crate) fn is_on(&self, interface: &str) -> bool {
        let is_it = |name: &Option<String>| name.as_deref() == Some(interface);
        is_it(&self.interface) || self.gids.iter().any(|gid| is_it(&gid.interface))
    }

    /// The entry to use: RoCE v2 and an address that routes, IPv4 first; on InfiniBand the first.
    pub fn best_gid(&self) -> Option<&Gid> {
        if self.is_infiniband() {
            return self.gids.first();
        }
        let ipv4 = |gid: &&Gid| gid.routes() && gid.address.is_ipv4();
        self.gids.iter().find(ipv4).or_else(|| self.gids.iter().find(|gid| gid.routes()))
    }
}

impl Gid {
    /// Whether packets to it pass a router: a global address, and packets with an IP head.
    pub fn routes(&self) -> bool {
        // iWARP has no kinds.
        let v1 = self.kind.as_deref().is_some_and(|kind| kind != "RoCE v2");
        !v1 && !is_link_local(self.address)
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

pub(super) fn read_all(root: &Root, device: &str) -> Vec<Port> {
    let numbers = root.list(&format!("{device}/ports")).into_iter();
    numbers.filter_map(|name| Some(read(root, device, name.parse().ok()?))).collect()
}

fn read(root: &Root, device: &str, number: u64) -> Port {
    let dir = format!("{device}/ports/{number}");
    let read = |name: &str| root.read(&format!("{dir}/{name}"));
    let places = root.list(&format!("{dir}/gids"));
    let gids = gids(root, &dir, &places);
    let interface = interface(root, device, &dir);
    let mtu =
        interface.as_ref().and_then(|name| root.number(&format!("/sys/class/net/{name}/mtu")));
    let link_layer = read("link_layer");
    let roce = link_layer.as_deref() == Some("Ethernet");
    Port {
        number,
        state: read("state"),
        phys_state: read("phys_state"),
        rate: read("rate"),
        lid: root.number(&format!("{dir}/lid")),
        sm_lid: root.number(&format!("{dir}/sm_lid")),
        path_mtu_bytes: mtu.filter(|_| roce).and_then(path_mtu_bytes),
        interface_mtu_bytes: mtu,
        link_layer,
        interface,
        gid_places: places.len(),
        gids,
        errors: errors(root, &dir),
    }
}

/// The largest RDMA packet that fits packets of an interface.
pub(crate) fn path_mtu_bytes(interface_mtu_bytes: u64) -> Option<u64> {
    let room = interface_mtu_bytes.checked_sub(AROUND_BYTES)?;
    PATH_MTUS_BYTES.into_iter().find(|bytes| *bytes <= room)
}

fn gids(root: &Root, port: &str, places: &[String]) -> Vec<Gid> {
    places.iter().filter_map(|place| gid(root, port, place.parse().ok()?)).collect()
}

/// Empty places have no address; their attributes cannot be read.
fn gid(root: &Root, port: &str, index: usize) -> Option<Gid> {
    let address: Ipv6Addr = root.read(&format!("{port}/gids/{index}"))?.parse().ok()?;
    let without_prefix = address.segments()[4..].iter().all(|part| *part == 0);
    if address.is_unspecified() || (without_prefix && address.is_unicast_link_local()) {
        return None;
    }
    Some(Gid {
        index,
        address: IpAddr::V6(address).to_canonical(),
        kind: root.read(&format!("{port}/gid_attrs/types/{index}")),
        interface: root.read(&format!("{port}/gid_attrs/ndevs/{index}")),
    })
}

/// The table names it; soft-RoCE has it as its parent; hardware lists it below itself.
fn interface(root: &Root, device: &str, port: &str) -> Option<String> {
    root.read(&format!("{port}/gid_attrs/ndevs/0"))
        .or_else(|| root.read(&format!("{device}/parent")))
        .or_else(|| root.list(&format!("{device}/device/net")).into_iter().next())
}

fn errors(root: &Root, port: &str) -> BTreeMap<String, u64> {
    let count = |name: &&str| {
        let count = root.number(&format!("{port}/hw_counters/{name}"))?;
        (count > 0).then(|| ((*name).to_owned(), count))
    };
    ERROR_COUNTERS.iter().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_takes_the_largest_packet_that_fits_the_interface() {
        let cases =
            [(1500, Some(1024)), (9000, Some(4096)), (4192, Some(4096)), (4191, Some(2048))];
        for (mtu, expected) in cases {
            assert_eq!(path_mtu_bytes(mtu), expected, "{mtu}");
        }
        assert_eq!(path_mtu_bytes(90), None);
        assert_eq!(path_mtu_bytes(300), None);
    }

    #[test]
    fn an_address_routes_unless_it_is_link_local_or_of_version_1() {
        let gid = |address: &str, kind: Option<&str>| Gid {
            index: 0,
            address: address.parse().unwrap(),
            kind: kind.map(str::to_owned),
            interface: None,
        };
        assert!(gid("10.0.0.5", Some("RoCE v2")).routes());
        assert!(gid("2001:db8::1", None).routes());
        assert!(!gid("10.0.0.5", Some("IB/RoCE v1")).routes());
        assert!(!gid("fe80::1", Some("RoCE v2")).routes());
        assert!(!gid("169.254.0.1", Some("RoCE v2")).routes());
    }
}
