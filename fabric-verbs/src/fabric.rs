//! The provider itself: opens domains and lists devices.

use fabric_core::{Device, Error, Fabric};

use crate::domain::VerbsDomain;
use crate::options::VerbsOptions;
use crate::resolve::SCHEME;
use crate::status;
use crate::sys;

/// The verbs provider. Every domain it opens has its own connections and listeners.
#[derive(Debug, Clone, Default)]
pub struct VerbsFabric {
    options: VerbsOptions,
}

impl VerbsFabric {
    /// A provider whose domains have these settings.
    pub fn new(options: VerbsOptions) -> Self {
        Self { options }
    }

    /// The settings of its domains.
    pub fn options(&self) -> &VerbsOptions {
        &self.options
    }
}

impl Fabric for VerbsFabric {
    type Domain = VerbsDomain;

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    /// The RDMA devices with their IP addresses.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        let found = sys::Device::all().map_err(status::open_error)?;
        Ok(found
            .iter()
            .map(|device| Device { name: device.name(), detail: detail(device) })
            .collect())
    }

    fn open(&self) -> Result<VerbsDomain, Error> {
        VerbsDomain::open(self.options.clone())
    }
}

fn detail(device: &sys::Device) -> String {
    let ips: Vec<String> = device.ips().iter().map(ToString::to_string).collect();
    let state = if device.is_active() { "up" } else { "down" };
    let kind = if device.limits().is_ok_and(|limits| limits.iwarp) { ", iWARP" } else { "" };
    format!("{state}{kind}, {}", if ips.is_empty() { "no address".into() } else { ips.join(", ") })
}
