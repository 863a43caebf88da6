//! What the kernel offers: modules, versions, settings.

use std::collections::BTreeMap;

use serde::Serialize;

use super::device::DeviceFile;
#[cfg(target_os = "linux")]
use crate::netlink;
use crate::root::Root;

/// The kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Its version: `6.1.0-57-amd64`.
    pub release: Option<String>,
    /// Whether it knows RDMA devices at all (`ib_core`).
    pub has_rdma: bool,
    /// The version of its verbs interface (`ib_uverbs`).
    pub verbs_abi_version: Option<u64>,
    /// The version of its connection manager's interface (`rdma_ucm`).
    pub cm_abi_version: Option<u64>,
    /// The connection manager's file.
    pub cm_file: DeviceFile,
    /// The modules for RDMA that are loaded.
    pub modules: Vec<String>,
    /// Those among them that have a version of their own: they did not come with the kernel.
    pub foreign_modules: BTreeMap<String, String>,
    /// Whether soft-RoCE (`rdma_rxe`) is there or can be loaded.
    pub soft_roce: Availability,
    /// The same of the connection manager (`rdma_ucm`).
    pub connection_manager: Availability,
    /// Whether files of devices appear in `/dev` by themselves, as not in containers.
    #[serde(skip)]
    pub(crate) makes_files: bool,
    /// Whether each network namespace has its devices for itself.
    pub exclusive_namespaces: Option<bool>,
    /// Whether it copies registered pages when a process forks.
    pub copies_on_fork: Option<bool>,
    /// Connections that may wait to be accepted.
    pub backlog_max: Option<u64>,
    /// Huge pages set aside.
    pub huge_pages: Option<u64>,
    /// Modules of firewalls that are loaded.
    pub firewalls: Vec<String>,
}

/// Whether a module can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// It is loaded.
    Loaded,
    /// It is installed.
    Installed,
    /// It is not installed for this kernel.
    Missing,
    /// Its list cannot be read, as is usual in containers.
    Unknown,
}

/// Settings that hold for all devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct System {
    /// Whether each network namespace has its devices for itself.
    pub(crate) exclusive_namespaces: Option<bool>,
    /// Whether registered pages are copied when a process forks.
    pub(crate) copies_on_fork: Option<bool>,
}

#[cfg(target_os = "linux")]
fn asked() -> Option<System> {
    netlink::system()
}

#[cfg(not(target_os = "linux"))]
fn asked() -> Option<System> {
    None
}

const MODULES: &[&str] = &[
    "ib_core",
    "ib_uverbs",
    "ib_cm",
    "iw_cm",
    "rdma_cm",
    "rdma_ucm",
    "ib_ipoib",
    "rdma_rxe",
    "siw",
    "mlx4_core",
    "mlx4_ib",
    "mlx5_core",
    "mlx5_ib",
    "bnxt_re",
    "irdma",
    "qedr",
    "hns_roce",
    "efa",
    "mana_ib",
    "iw_cxgb4",
    "hfi1",
    "nvidia_peermem",
];

const FIREWALLS: &[&str] = &["nf_tables", "ip_tables", "ip6_tables"];

impl Kernel {
    pub(crate) fn read(root: &Root) -> Self {
        let release = root.read("/proc/sys/kernel/osrelease");
        let modules = loaded(root, MODULES);
        let system = if root.is_host() { asked() } else { None };
        Self {
            has_rdma: super::device::has_class(root),
            verbs_abi_version: root.number("/sys/class/infiniband_verbs/abi_version"),
            cm_abi_version: root.number("/sys/class/misc/rdma_cm/abi_version"),
            cm_file: DeviceFile::read(root, "rdma_cm"),
            foreign_modules: foreign(root, &modules),
            soft_roce: availability(root, release.as_deref(), "rdma_rxe"),
            connection_manager: availability(root, release.as_deref(), "rdma_ucm"),
            makes_files: root.read("/proc/mounts").is_some_and(|mounts| {
                mounts
                    .lines()
                    .any(|line| line.split_whitespace().skip(1).take(2).eq(["/dev", "devtmpfs"]))
            }),
            exclusive_namespaces: system.and_then(|system| system.exclusive_namespaces),
            copies_on_fork: system.and_then(|system| system.copies_on_fork),
            backlog_max: root.number("/proc/sys/net/core/somaxconn"),
            huge_pages: root.number("/proc/sys/vm/nr_hugepages"),
            firewalls: loaded(root, FIREWALLS),
            release,
            modules,
        }
    }

    pub(crate) fn has_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module == name)
    }

    /// Major and minor number of its version.
    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.as_deref()?.split(['.', '-']).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

fn loaded(root: &Root, names: &[&str]) -> Vec<String> {
    let there = |name: &&&str| root.exists(&format!("/sys/module/{name}"));
    names.iter().filter(there).map(|name| (*name).to_owned()).collect()
}

/// Modules that come with the kernel have no version.
fn foreign(root: &Root, modules: &[String]) -> BTreeMap<String, String> {
    let version = |name: &String| {
        let version = root.read(&format!("/sys/module/{name}/version"))?;
        Some((name.clone(), version))
    };
    modules.iter().filter_map(version).collect()
}

fn availability(root: &Root, release: Option<&str>, module: &str) -> Availability {
    if root.exists(&format!("/sys/module/{module}")) {
        return Availability::Loaded;
    }
    let list =
        release.and_then(|release| root.read(&format!("/lib/modules/{release}/modules.dep")));
    match list {
        None => Availability::Unknown,
        Some(list) if list.contains(&format!("/{module}.ko")) => Availability::Installed,
        Some(_) => Availability::Missing,
    }
}
