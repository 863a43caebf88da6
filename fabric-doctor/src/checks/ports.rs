//! D20 to D22, D26, D28: ports and their wires.

use super::{Case, offered};
use crate::facts::{Device, Port};
use crate::finding::{Finding, Severity};

/// Every port of the devices that programs can open.
fn ports<'a>(case: &Case<'a>) -> impl Iterator<Item = (&'a Device, &'a Port)> {
    offered(case).flat_map(|device| device.ports.iter().map(move |port| (device, port)))
}

fn raw(text: Option<&str>) -> &str {
    text.unwrap_or("unknown")
}

/// A port that is not up, unless it waits for its subnet manager.
pub(super) fn d20_not_up(case: &Case<'_>) -> Vec<Finding> {
    let down = ports(case).filter(|(_, port)| !port.is_active() && !waits_for_manager(port));
    down.map(|(device, port)| not_up(device, port)).collect()
}

fn not_up(device: &Device, port: &Port) -> Finding {
    let seen = format!(
        "port {}: state {}, phys_state {}",
        port.number,
        raw(port.state.as_deref()),
        raw(port.phys_state.as_deref())
    );
    // Two ports, one cable: the other one is to be used.
    let severity = if device.is_up() { Severity::Note } else { Severity::Error };
    let finding = Finding::new(20, severity).about(&device.name).seen(seen);
    match &port.interface {
        Some(interface) => finding
            .cause(format!("{interface} is down, or its cable or switch"))
            .command(format!("ip link set {interface} up")),
        None => finding.cause("cable or switch").command(format!("ibstat {}", device.name)),
    }
}

fn waits_for_manager(port: &Port) -> bool {
    let waits = port.state.as_deref().is_some_and(|state| state.starts_with("2:"));
    port.is_infiniband() && waits && port.sm_lid == Some(0)
}

/// On InfiniBand somebody has to set up the fabric.
pub(super) fn d21_no_subnet_manager(case: &Case<'_>) -> Vec<Finding> {
    let waiting = ports(case).filter(|(_, port)| waits_for_manager(port));
    let finding = |(device, port): (&Device, &Port)| {
        let zero = device.node_guid.as_deref() == Some("0000:0000:0000:0000");
        let seen = format!(
            "port {}: state {}, sm_lid 0{}",
            port.number,
            raw(port.state.as_deref()),
            if zero { ", node_guid 0" } else { "" }
        );
        let cause = if zero {
            "a virtual function without a number of its own: no subnet manager takes it"
        } else {
            "the link is up, but no subnet manager has configured it"
        };
        Finding::error(21)
            .about(&device.name)
            .seen(seen)
            .cause(cause)
            .command("systemctl start opensm")
    };
    waiting.map(finding).collect()
}

/// InfiniBand without a local address: whoever is told of it cannot answer.
pub(super) fn d22_no_lid(case: &Case<'_>) -> Vec<Finding> {
    let without = ports(case)
        .filter(|(_, port)| port.is_infiniband() && port.is_active() && port.lid == Some(0));
    let finding = |(device, port): (&Device, &Port)| {
        Finding::error(22)
            .about(&device.name)
            .seen(format!("port {}: link_layer InfiniBand, state ACTIVE, lid 0x0", port.number))
            .cause("the subnet manager gave it no local address; peers answer to LID 0 and fail")
            .command(format!("ibstat {}", device.name))
    };
    without.map(finding).collect()
}

/// What every network carries.
const PATH_MTU_USUAL_BYTES: u64 = 1024;
/// What RDMA can use.
const PATH_MTU_MAX_BYTES: u64 = 4096;
/// An interface that carries the largest packets of RoCE.
const INTERFACE_MTU_BYTES: u64 = 4200;

/// Packets are smaller than they could be, here or on the way to the peer.
pub(super) fn d26_small_packets(case: &Case<'_>) -> Vec<Finding> {
    let here = ports(case).filter_map(|(device, port)| small(device, port));
    here.chain(narrow_way(case)).collect()
}

fn small(device: &Device, port: &Port) -> Option<Finding> {
    let (path, mtu) = (port.path_mtu_bytes?, port.interface_mtu_bytes?);
    let interface = port.interface.as_deref()?;
    let severity = match path {
        path if path < PATH_MTU_USUAL_BYTES => Severity::Warning,
        path if path < PATH_MTU_MAX_BYTES && !device.soft => Severity::Note,
        _ => return None,
    };
    let wanted = if device.soft { 1500 } else { INTERFACE_MTU_BYTES };
    let finding = Finding::new(26, severity)
        .about(&device.name)
        .seen(format!("the MTU of {interface} is {mtu}: RDMA packets carry {path} bytes"))
        .cause("the interface carries no larger ones; both ends and the switch must be the same")
        .command(format!("ip link set {interface} mtu {wanted}"));
    Some(finding)
}

fn narrow_way(case: &Case<'_>) -> Option<Finding> {
    let way = case.way_mtu_bytes?;
    let interface = case.host.network.interface_to(case.peer?)?;
    let facts = case.host.interfaces.iter().find(|one| one.name == interface)?;
    let own = facts.mtu_bytes?;
    let finding = Finding::warning(26)
        .about(interface)
        .seen(format!("the MTU of {interface} is {own}, TCP to the peer carries packets of {way}"))
        .cause("the peer, or a router on the way, carries smaller packets than this side")
        .command(format!("tracepath -n {}", case.peer?));
    // Some options of TCP take room, too: that is no difference.
    (way.saturating_add(64) < own).then_some(finding)
}

/// Below this many, errors are old or harmless.
const ERRORS_MANY: u64 = 100;

/// Counters of errors.
pub(super) fn d28_loss(case: &Case<'_>) -> Vec<Finding> {
    ports(case).filter_map(|(device, port)| loss(device, port)).collect()
}

fn loss(device: &Device, port: &Port) -> Option<Finding> {
    let most = *port.errors.values().max()?;
    let severity = if most >= ERRORS_MANY { Severity::Warning } else { Severity::Note };
    let counts: Vec<_> =
        port.errors.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let name = &device.name;
    let finding = Finding::new(28, severity)
        .about(name)
        .seen(format!("port {} since it came up: {}", port.number, counts.join(", ")))
        .cause("the network drops RoCE packets: no flow control (PFC, ECN), or a link that flaps")
        .command(format!("rdma statistic show link {name}/{}", port.number));
    Some(finding)
}
