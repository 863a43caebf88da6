//! RDMA devices as sysfs shows them (`Documentation/ABI/stable/sysfs-class-infiniband`).

use serde::Serialize;

use super::port::{self, Port};
use crate::root::Root;

/// Where devices are.
const CLASS: &str = "/sys/class/infiniband";
const VERBS: &str = "/sys/class/infiniband_verbs";
const FILES: &str = "/dev/infiniband";

/// One RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its name: `mlx5_0`.
    pub name: String,
    /// What drives it in the kernel: `mlx5_core`, `rxe`.
    pub driver: Option<String>,
    /// Whether it is made of software: for tests, not for speed.
    pub soft: bool,
    /// The kernel's word for what it is: `1: CA` (InfiniBand, RoCE) or `4: RNIC` (iWARP).
    pub node_type: Option<String>,
    /// Its firmware's version.
    pub firmware: Option<String>,
    /// Its own number.
    pub node_guid: Option<String>,
    /// The memory that it is close to.
    pub numa_node: Option<u64>,
    /// What programs open, if the kernel offers it to programs.
    pub verbs: Option<Verbs>,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// What programs open to use a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verbs {
    /// Its name: `uverbs0`.
    pub name: String,
    /// The version of what is spoken between this device's kernel driver and its user driver.
    pub abi_version: Option<u64>,
    /// The file that is opened.
    pub file: DeviceFile,
}

/// A file below `/dev/infiniband`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceFile {
    /// Its path.
    pub path: String,
    /// Whether it is there.
    pub exists: bool,
    /// Permissions and owner, like `0600 0:0`.
    pub owner: Option<String>,
    /// Why this process cannot open it.
    pub refusal: Option<String>,
    #[serde(skip)]
    pub(crate) permissions: Option<crate::root::Owner>,
}

impl DeviceFile {
    pub(crate) fn read(root: &Root, name: &str) -> Self {
        let path = format!("{FILES}/{name}");
        let permissions = root.owner(&path);
        let owner = permissions.map(|o| format!("0{:o} {}:{}", o.mode, o.uid, o.gid));
        let exists = permissions.is_some();
        let refusal = root.opens(&path).err().map(|error| error.to_string());
        Self { exists, owner, refusal: refusal.filter(|_| exists), permissions, path }
    }
}

impl Device {
    /// Whether any of its ports is up.
    pub fn is_up(&self) -> bool {
        self.ports.iter().any(Port::is_active)
    }

    /// Whether one of its ports, or an address in its tables, is on this interface.
    pub fn is_on(&self, interface: &str) -> bool {
        self.ports.iter().any(|port| port.is_on(interface))
    }

    /// The network interface of its first port that has one.
    pub fn interface(&self) -> Option<&str> {
        self.ports.iter().find_map(|port| port.interface.as_deref())
    }

    /// The module or program by which its driver is known to rdma-core.
    pub(crate) fn provider(&self) -> Option<&'static str> {
        let driver = self.driver.as_deref()?;
        PROVIDERS.iter().find(|(kernel, _)| *kernel == driver).map(|(_, user)| *user)
    }
}

/// Which user driver serves which kernel driver.
const PROVIDERS: &[(&str, &str)] = &[
    ("bnxt_en", "bnxt_re"),
    ("bnxt_re", "bnxt_re"),
    ("cxgb4", "cxgb4"),
    ("efa", "efa"),
    ("erdma", "erdma"),
    ("hfi1", "hfi1verbs"),
    ("hns3", "hns"),
    ("hns_roce", "hns"),
    ("i40e", "irdma"),
    ("ice", "irdma"),
    ("irdma", "irdma"),
    ("ib_mthca", "mthca"),
    ("mana", "mana"),
    ("mlx4_core", "mlx4"),
    ("mlx5_core", "mlx5"),
    ("ocrdma", "ocrdma"),
    ("qede", "qedr"),
    ("qib", "ipathverbs"),
    ("rxe", "rxe"),
    ("siw", "siw"),
    ("vmw_pvrdma", "vmw_pvrdma"),
];

/// All devices.
pub(crate) fn read_all(root: &Root) -> Vec<Device> {
    root.list(CLASS).into_iter().map(|name| read(root, name)).collect()
}

/// Whether the kernel knows what an RDMA device is.
pub(crate) fn has_class(root: &Root) -> bool {
    root.exists(CLASS)
}

/// The files that are in `/dev/infiniband`.
pub(crate) fn files(root: &Root) -> Vec<String> {
    root.list(FILES)
}

fn read(root: &Root, name: String) -> Device {
    let dir = format!("{CLASS}/{name}");
    let driver = driver(root, &dir);
    Device {
        soft: matches!(driver.as_deref(), Some("rxe" | "siw")),
        driver,
        node_type: root.read(&format!("{dir}/node_type")),
        firmware: root.read(&format!("{dir}/fw_ver")),
        node_guid: root.read(&format!("{dir}/node_guid")),
        numa_node: root.number(&format!("{dir}/device/numa_node")),
        verbs: verbs(root, &name),
        ports: port::read_all(root, &dir),
        name,
    }
}

/// A device without hardware below it says what it is in its description.
fn driver(root: &Root, dir: &str) -> Option<String> {
    if let Some(driver) = root.link_name(&format!("{dir}/device/driver")) {
        return Some(driver);
    }
    match root.read(&format!("{dir}/node_desc"))?.as_str() {
        "rxe" => Some("rxe".to_owned()),
        "Software iWARP stack" => Some("siw".to_owned()),
        _ if root.exists(&format!("{dir}/parent")) => Some("rxe".to_owned()),
        _ => None,
    }
}

fn verbs(root: &Root, device: &str) -> Option<Verbs> {
    let is_of = |name: &String| {
        root.read(&format!("{VERBS}/{name}/ibdev")).is_some_and(|ibdev| ibdev == device)
    };
    let name = root.list(VERBS).into_iter().find(is_of)?;
    let abi_version = root.number(&format!("{VERBS}/{name}/abi_version"));
    Some(Verbs { abi_version, file: DeviceFile::read(root, &name), name })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A device in order on an interface.
    pub(crate) fn device_on(interface: &str) -> Device {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/class/infiniband/rxe0/parent", interface);
        write("sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE");
        write("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0");
        read_all(&Root::tree(dir.path())).remove(0)
    }
}
