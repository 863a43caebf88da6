//! The provider itself: opens domains and lists devices.

use fabric_core::{Addr, Device, Error, Fabric};

use crate::choice;
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
        VerbsDomain::open(self.options.clone(), None)
    }

    fn open_for(&self, addr: &Addr) -> Result<VerbsDomain, Error> {
        let device = choice::device_for(addr, &self.options)?;
        let mut options = self.options.clone();
        options.device = options.device.or_else(|| choice::named(addr).map(str::to_owned));
        VerbsDomain::open(options, device.as_deref())
    }

    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error> {
        choice::device_for(addr, &self.options)
    }

    fn queries(&self) -> &'static [&'static str] {
        &[choice::DEVICE]
    }
}

fn detail(device: &sys::Device) -> String {
    let ips: Vec<String> = choice::ips_of(device).iter().map(ToString::to_string).collect();
    let state = if device.is_active() { "up" } else { "down" };
    let kind = if device.limits().is_ok_and(|limits| limits.iwarp) { ", iWARP" } else { "" };
    format!("{state}{kind}, {}", if ips.is_empty() { "no address".into() } else { ips.join(", ") })
}
