//! What facts mean. Each check looks at one kind of finding and reads nothing itself.

mod addresses;
mod devices;
mod drivers;
mod kernel;
mod libfabric;
mod limits;
mod ports;
mod verdict;
mod way;

use std::net::IpAddr;

use crate::earlier::Earlier;
use crate::facts::{Device, Host};
use crate::finding::{Finding, Severity};
use crate::probe::Probe;

pub(crate) use verdict::usable;

/// What checks look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    /// This host.
    pub(crate) host: &'a Host,
    /// The peer that was asked about.
    pub(crate) peer: Option<IpAddr>,
    /// The largest packet on the way to it.
    pub(crate) way_mtu_bytes: Option<u64>,
    /// Why RDMA does not reach it, though TCP does.
    pub(crate) rdma_refusal: Option<&'a str>,
    /// What the asking program lends.
    pub(crate) probe: Option<&'a dyn Probe>,
    /// What an earlier report said.
    pub(crate) earlier: Option<&'a Earlier>,
}

type Check = fn(&Case<'_>) -> Vec<Finding>;

/// Causes stand before what they cause: of findings that are equally bad, the first is said first.
const CHECKS: &[Check] = &[
    kernel::d04_no_verbs,
    drivers::d05_mixed,
    drivers::d02_no_config_dir,
    drivers::d01_no_driver,
    drivers::d03_versions,
    kernel::d07_no_connection_manager,
    devices::d11_no_file,
    devices::d15_no_permission,
    limits::d12_locked,
    limits::d13_not_applied,
    devices::d19_no_interface,
    ports::d21_no_subnet_manager,
    ports::d20_not_up,
    ports::d22_no_lid,
    addresses::d23_no_route,
    addresses::d17_other_interface,
    addresses::d30_other_device,
    addresses::d31_shared_address,
    addresses::d29_moved,
    ports::d26_small_packets,
    ports::d28_loss,
    limits::d16_descriptors,
    limits::d47_backlog,
    kernel::d40_fork,
    kernel::d43_old,
    kernel::d49_software_iwarp,
    kernel::d10_beside_a_card,
    kernel::d08_no_device,
    kernel::d09_no_soft_roce,
    devices::d18_shared,
    libfabric::d44_nothing_fits,
];

/// All findings, the most important first.
pub(crate) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut findings: Vec<_> = CHECKS.iter().flat_map(|check| check(case)).collect();
    findings.extend(way::d06_no_loopback(case, &usable(case.host, &findings)));
    let usable: Vec<&Device> = usable(case.host, &findings);
    findings.extend(way::refused_there(case, &usable));
    verdict::spare(&mut findings, case.host, &usable);
    findings.extend(verdict::d32_instead(case.host, &findings, &usable));
    verdict::say_what_works(&mut findings, &usable);
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The devices of a case that programs can open in principle.
fn offered<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Device> {
    case.host.devices.iter().filter(|device| device.verbs.is_some())
}

/// An error, or less if it concerns nobody here.
fn error_if(serious: bool) -> Severity {
    if serious { Severity::Error } else { Severity::Warning }
}
