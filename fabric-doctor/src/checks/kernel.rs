//! D04, D07 to D10, D40, D43, D49: what the kernel offers.

use super::Case;
use crate::facts::{Availability, Device, Host};
use crate::finding::{Finding, Severity};

/// The versions of the verbs interface that libibverbs speaks.
const VERBS_ABI: std::ops::RangeInclusive<u64> = 3..=6;

/// The kernel has devices, but offers none to programs.
pub(super) fn d04_no_verbs(case: &Case<'_>) -> Vec<Finding> {
    let kernel = &case.host.kernel;
    if case.host.devices.is_empty() {
        return Vec::new();
    }
    match kernel.verbs_abi_version {
        None => vec![
            Finding::error(4)
                .seen("/sys/class/infiniband_verbs/abi_version does not exist")
                .cause("the module ib_uverbs is not loaded")
                .command("modprobe ib_uverbs"),
        ],
        Some(version) if !VERBS_ABI.contains(&version) => vec![
            Finding::error(4)
                .seen(format!("/sys/class/infiniband_verbs/abi_version is {version}, not 3 to 6"))
                .cause("kernel and libibverbs are too far apart")
                .command(case.host.stack.upgrade("rdma-core libibverbs1", "rdma-core")),
        ],
        Some(_) => hidden(case),
    }
}

fn hidden(case: &Case<'_>) -> Vec<Finding> {
    let hidden = case.host.devices.iter().filter(|device| device.verbs.is_none());
    let finding = |name: &str| {
        Finding::error(4)
            .about(name)
            .seen(format!("no entry of /sys/class/infiniband_verbs names {name}"))
            .cause("its driver offers it to the kernel only, or it belongs to another namespace")
            .command("rdma dev show")
    };
    hidden.map(|device| finding(&device.name)).collect()
}

/// Without its connection manager, RDMA cannot connect by address.
pub(super) fn d07_no_connection_manager(case: &Case<'_>) -> Vec<Finding> {
    let kernel = &case.host.kernel;
    if case.host.devices.is_empty() || kernel.cm_file.exists {
        return Vec::new();
    }
    let finding = Finding::error(7).seen(format!("{} does not exist", kernel.cm_file.path));
    if kernel.connection_manager == Availability::Installed && kernel.makes_files {
        return vec![
            Finding { severity: Severity::Warning, ..finding }
                .cause("the module rdma_ucm is not loaded; only rdma-core 28 and newer asks for it")
                .command("modprobe rdma_ucm"),
        ];
    }
    let finding = match (kernel.cm_abi_version, &case.host.container) {
        (None, None) => {
            finding.cause("the module rdma_ucm is not loaded").command("modprobe rdma_ucm")
        }
        (None, Some(_)) => finding
            .cause("the module rdma_ucm is not loaded on the host of this container")
            .command("modprobe rdma_ucm  # on the host"),
        (Some(_), Some(_)) => finding
            .cause("the file was not passed to this container")
            .command("docker run --device=/dev/infiniband/rdma_cm ..."),
        (Some(_), None) => finding
            .cause("the module is loaded, but nothing made its file (udev)")
            .command("udevadm trigger --subsystem-match=misc"),
    };
    vec![finding]
}

/// No device at all: no error, since most hosts have none.
pub(super) fn d08_no_device(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    if !host.devices.is_empty() {
        return Vec::new();
    }
    if !cfg!(target_os = "linux") {
        return vec![
            Finding::note(8)
                .seen(format!("this system is {}", std::env::consts::OS))
                .cause("RDMA is supported on Linux only, other systems have tcp://")
                .command("fabric demo"),
        ];
    }
    let (seen, cause) = if host.kernel.has_rdma {
        (
            "/sys/class/infiniband is empty",
            "no RDMA hardware, or the module of its driver is not loaded",
        )
    } else {
        ("/sys/class/infiniband does not exist", "the kernel's RDMA modules are not loaded")
    };
    vec![Finding::note(8).seen(seen).cause(cause).command(soft_roce_on(host))]
}

fn soft_roce_on(host: &Host) -> String {
    format!("rdma link add rxe0 type rxe netdev {}", host.ethernet().unwrap_or("eth0"))
}

/// What one would try first without hardware does not work here either.
pub(super) fn d09_no_soft_roce(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let release = host.kernel.release.as_deref().unwrap_or("?");
    let finding = Finding::note(9);
    if !host.devices.is_empty() {
        return Vec::new();
    }
    if host.kernel.soft_roce == Availability::Missing {
        return vec![
            finding
                .seen(format!("/lib/modules/{release}/modules.dep has no rdma_rxe"))
                .cause("this kernel comes without soft-RoCE, or has it in a package of extras")
                .command(format!("apt-get install linux-modules-extra-{release}")),
        ];
    }
    if host.ethernet().is_some() {
        return Vec::new();
    }
    let names: Vec<_> = host.interfaces.iter().map(|one| one.name.as_str()).collect();
    vec![
        finding
            .seen(format!("none of the interfaces is Ethernet: {}", names.join(", ")))
            .cause("soft-RoCE needs an Ethernet interface in this namespace; a VLAN is none")
            .command("ip link add roce0 type veth peer name roce1"),
    ]
}

/// rdma-core asks that these are not loaded together.
pub(super) fn d10_beside_a_card(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let soft = driven_by(case, "rxe");
    let card = ["mlx5_ib", "mlx4_ib"].into_iter().find(|name| host.kernel.has_module(name));
    let (Some(soft), Some(card)) = (soft, card) else { return Vec::new() };
    let finding = Finding::warning(10)
        .about(&soft.name)
        .seen(format!("{} is there and the module {card} is loaded", soft.name))
        .cause("rdma-core's guide to soft-RoCE asks not to use both at once")
        .command(format!("rdma link delete {}", soft.name));
    vec![finding]
}

/// Registered memory and fork do not go together on old kernels.
pub(super) fn d40_fork(case: &Case<'_>) -> Vec<Finding> {
    let process = &case.host.process;
    let asked = ["IBV_FORK_SAFE", "RDMAV_FORK_SAFE"].iter().any(|n| process.variable(n).is_some());
    if case.host.kernel.copies_on_fork != Some(false) || asked || case.host.devices.is_empty() {
        return Vec::new();
    }
    let finding = Finding::warning(40)
        .seen("copy-on-fork is 0 (rdma netlink)")
        .cause("after a fork, parent and child may lose what devices write to registered memory")
        .command("export IBV_FORK_SAFE=1");
    vec![finding]
}

/// The oldest kernel that the tests run on.
const TESTED: (u32, u32) = (6, 1);

/// Soft-RoCE got better over the years.
pub(super) fn d43_old(case: &Case<'_>) -> Vec<Finding> {
    let kernel = &case.host.kernel;
    let (Some(soft), Some(version)) = (driven_by(case, "rxe"), kernel.version()) else {
        return Vec::new();
    };
    if version >= TESTED {
        return Vec::new();
    }
    let release = kernel.release.as_deref().unwrap_or_default();
    let finding = Finding::warning(43)
        .about(&soft.name)
        .seen(format!("kernel {release}, tested from {}.{} on", TESTED.0, TESTED.1))
        .cause("soft-RoCE of older kernels loses completions and dies after many connections")
        .command("uname -r && echo 'upgrade the kernel, then reboot'");
    vec![finding]
}

/// The suite's cases that fail on it are those of rights, and of many connections at once.
pub(super) fn d49_software_iwarp(case: &Case<'_>) -> Vec<Finding> {
    let Some(device) = driven_by(case, "siw") else { return Vec::new() };
    let finding = Finding::warning(49)
        .about(&device.name)
        .seen(format!("{}: driver siw", device.name))
        .cause(
            "siw does not refuse accesses without a right to them, fails instead of telling why, and \
             connections that are made while others come and go may hang",
        )
        .command(soft_roce_on(case.host));
    vec![finding]
}

fn driven_by<'a>(case: &Case<'a>, driver: &str) -> Option<&'a Device> {
    case.host.devices.iter().find(|device| device.driver.as_deref() == Some(driver))
}
