//! The provider itself: opens domains and lists devices.

use fabric_core::{Device, Error, Fabric};

use crate::domain::TcpDomain;
use crate::options::TcpOptions;
use crate::resolve::SCHEME;
use crate::status;

/// The TCP provider. Every domain it opens has its own connections and listeners.
#[derive(Debug, Clone, Default)]
pub struct TcpFabric {
    options: TcpOptions,
}

impl TcpFabric {
    /// A provider whose domains have these settings.
    pub fn new(options: TcpOptions) -> Self {
        Self { options }
    }

    /// The settings of its domains.
    pub fn options(&self) -> &TcpOptions {
        &self.options
    }
}

impl Fabric for TcpFabric {
    type Domain = TcpDomain;

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    /// The interfaces that have an IP address.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        let found = if_addrs::get_if_addrs()
            .map_err(|error| status::host_error(error, "listing network interfaces"))?;
        let mut devices: Vec<Device> = Vec::new();
        for interface in &found {
            let ip = interface.ip().to_string();
            match devices.iter_mut().find(|device| device.name == interface.name) {
                Some(device) => device.detail = format!("{}, {ip}", device.detail),
                None => devices.push(Device { name: interface.name.clone(), detail: ip }),
            }
        }
        Ok(devices)
    }

    fn open(&self) -> Result<TcpDomain, Error> {
        TcpDomain::open(self.options.clone())
    }
}
