//! What a host is like. Facts only; what they mean is decided in `checks`.

pub(crate) mod device;
pub(crate) mod kernel;
pub(crate) mod network;
pub(crate) mod port;
pub(crate) mod process;
pub(crate) mod stack;

use serde::Serialize;

pub use device::{Device, DeviceFile, Verbs};
pub use kernel::{Availability, Kernel};
pub use network::Interface;
pub use port::{Gid, Port};
pub use process::{Limit, Process};
pub use stack::{Library, Stack};

use crate::root::Root;
use network::Network;

/// Everything that checks look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The RDMA devices.
    pub devices: Vec<Device>,
    /// The kernel.
    pub kernel: Kernel,
    /// The libraries.
    pub stack: Stack,
    /// This process.
    pub process: Process,
    /// The kind of container that this is, if it is one.
    pub container: Option<String>,
    /// The files in `/dev/infiniband`.
    pub device_files: Vec<String>,
    /// The network interfaces.
    pub interfaces: Vec<Interface>,
    #[serde(skip)]
    pub(crate) network: Network,
    /// What `limits.conf` allows to be locked, where it says something.
    #[serde(skip)]
    pub(crate) configured_locked: Option<String>,
}

impl Host {
    /// Reads all of it.
    pub(crate) fn read(root: &Root) -> Self {
        let process = Process::read(root);
        let network = Network::read(root);
        Self {
            devices: device::read_all(root),
            kernel: Kernel::read(root),
            stack: Stack::read(root, &process),
            container: process::container(root),
            device_files: device::files(root),
            interfaces: network.interfaces.clone(),
            configured_locked: configured_locked(root),
            network,
            process,
        }
    }

    pub(crate) fn device_on(&self, interface: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.is_on(interface))
    }

    pub(crate) fn has_interface(&self, name: &str) -> bool {
        self.interfaces.iter().any(|interface| interface.name == name)
    }

    /// An interface to put soft-RoCE on: one that is up rather than one that is not.
    pub(crate) fn ethernet(&self) -> Option<&str> {
        let mut all: Vec<_> = self.interfaces.iter().filter(|one| one.ethernet).collect();
        all.sort_by_key(|one| one.state.as_deref() != Some("up"));
        all.first().map(|one| one.name.as_str())
    }
}

/// Lines like `* soft memlock unlimited` (limits.conf(5)); the last one counts.
fn configured_locked(root: &Root) -> Option<String> {
    let dir = "/etc/security/limits.d";
    let files = root.list(dir).into_iter().map(|name| format!("{dir}/{name}"));
    let files = std::iter::once("/etc/security/limits.conf".to_owned()).chain(files);
    let texts: Vec<_> = files.filter_map(|path| root.read(&path)).collect();
    let value = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let fits = !line.starts_with('#') && words.get(2) == Some(&"memlock");
        words.get(3).filter(|_| fits).map(|value| (*value).to_owned())
    };
    texts.iter().flat_map(|text| text.lines()).filter_map(value).next_back()
}
