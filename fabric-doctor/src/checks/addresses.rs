//! D17, D23, D29 to D31: which address belongs to which device.

use std::net::IpAddr;

use super::{Case, offered, verdict};
use crate::facts::{Device, Gid, Port};
use crate::finding::{Finding, Severity};

/// The way to the peer has no device on it.
pub(super) fn d17_other_interface(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let Some(peer) = case.peer.filter(|_| !host.devices.is_empty()) else { return Vec::new() };
    let Some(interface) = host.network.interface_to(peer) else { return Vec::new() };
    if host.device_on(interface).is_some() {
        return Vec::new();
    }
    let places: Vec<_> = host.devices.iter().map(place).collect();
    let finding = Finding::error(17)
        .about(interface)
        .seen(format!(
            "{peer} is reached through {interface}, which has no RDMA device; {}",
            places.join(", ")
        ))
        .cause("the address is of another network than that of the devices")
        .command(format!("ip route get {peer}"));
    vec![finding]
}

fn place(device: &Device) -> String {
    let interface = device.interface().unwrap_or("no interface here");
    format!("{} is on {interface}", device.name)
}

/// Nothing but addresses that pass no router, or packets without an IP head.
pub(super) fn d23_no_route(case: &Case<'_>) -> Vec<Finding> {
    let iwarp = |device: &&Device| device.node_type.as_deref().is_some_and(|t| t.starts_with('4'));
    let devices = offered(case).filter(|device| !iwarp(device));
    let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let lacking = ports.filter(|(_, port)| {
        !port.is_infiniband()
            && port.is_active()
            && !port.gids.is_empty()
            && port.best_gid().is_none()
    });
    lacking.map(|(device, port)| no_route(device, port)).collect()
}

fn no_route(device: &Device, port: &Port) -> Finding {
    let all: Vec<_> = port.gids.iter().map(show).collect();
    let interface = port.interface.as_deref().unwrap_or("INTERFACE");
    let finding = Finding::error(23).about(&device.name).seen(format!(
        "port {} has only {}",
        port.number,
        all.join(", ")
    ));
    if port.gids.iter().any(|gid| matches!(gid.address, IpAddr::V4(_))) {
        return finding
            .cause("packets of RoCE version 1 have no IP head, and rdma_cm sends version 2")
            .command(format!("cma_roce_mode -d {} -p {} -m 2", device.name, port.number));
    }
    finding
        .cause(format!("{interface} has no IP address beyond its link"))
        .command(format!("ip addr add 10.0.0.1/24 dev {interface}"))
}

fn show(gid: &Gid) -> String {
    format!("{} (index {}, {})", gid.address, gid.index, gid.kind.as_deref().unwrap_or("?"))
}

/// An address has another place than before.
pub(super) fn d29_moved(case: &Case<'_>) -> Vec<Finding> {
    let Some(earlier) = case.earlier else { return Vec::new() };
    let moved = |device: &Device| {
        let before = earlier.gids_of(&device.name)?;
        let now: Vec<_> = device.ports.iter().flat_map(|port| &port.gids).collect();
        let (old, new) = before.iter().find_map(|old| {
            let same = |new: &&&Gid| new.address == old.address && new.kind == old.kind;
            let new = now.iter().find(same)?;
            (new.index != old.index).then_some((old, *new))
        })?;
        Some(
            Finding::warning(29)
                .about(&device.name)
                .seen(format!("{} was at index {}, is at {}", new.address, old.index, new.index))
                .cause("the table was filled anew in another order, as after a link that flapped")
                .command("unset NCCL_IB_GID_INDEX UCX_IB_GID_INDEX"),
        )
    };
    case.host.devices.iter().filter_map(moved).collect()
}

/// The route decides which device leads to a peer, and it is not the first one.
pub(super) fn d30_other_device(case: &Case<'_>) -> Vec<Finding> {
    let Some(peer) = case.peer else { return Vec::new() };
    let Some(interface) = case.host.network.interface_to(peer) else { return Vec::new() };
    let first = verdict::usable(case.host, &[]).first().copied();
    let (Some(first), Some(right)) = (first, case.host.device_on(interface)) else {
        return Vec::new();
    };
    if first.name == right.name {
        return Vec::new();
    }
    let severity = if right.is_up() { Severity::Note } else { Severity::Error };
    let (first, right) = (&first.name, &right.name);
    let finding = Finding::new(30, severity)
        .about(right)
        .seen(format!("the way to {peer} leaves through {interface}, which is {right}'s"))
        .cause(format!("verbs:// goes by the route; who takes the first device gets {first}"))
        .command(format!("ip route get {peer}"));
    vec![finding]
}

/// The connection manager decides by address, and takes the first that has it.
pub(super) fn d31_shared_address(case: &Case<'_>) -> Vec<Finding> {
    let devices: Vec<_> = offered(case).collect();
    let routed = |device: &Device| -> Vec<IpAddr> {
        let gids = device.ports.iter().flat_map(|port| &port.gids);
        gids.filter(|gid| gid.routes()).map(|gid| gid.address).collect()
    };
    let clash = |(place, device): (usize, &&Device)| {
        let mine = routed(device);
        let shared = |other: &&&Device| routed(other).iter().any(|ip| mine.contains(ip));
        let other = devices[..place].iter().find(shared)?;
        let ip = routed(other).into_iter().find(|ip| mine.contains(ip))?;
        Some(
            Finding::warning(31)
                .about(&device.name)
                .seen(format!("{ip} is in the tables of {} and {}", other.name, device.name))
                .cause("rdma_cm binds by address, so it may take another device than the named one")
                .command(format!("rdma link show {}", device.name)),
        )
    };
    devices.iter().enumerate().filter_map(clash).collect()
}
