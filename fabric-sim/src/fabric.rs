//! The way in.

use fabric_core::{Device, Error, Fabric};

use crate::{SimDomain, SimNet};

/// Opens domains in one simulated network.
#[derive(Debug, Clone)]
pub struct SimFabric {
    net: SimNet,
}

impl SimFabric {
    /// A fabric whose domains all live in `net`.
    pub fn new(net: SimNet) -> Self {
        Self { net }
    }

    /// The network, to advance its time or break something.
    pub fn net(&self) -> &SimNet {
        &self.net
    }
}

impl Fabric for SimFabric {
    type Domain = SimDomain;

    fn schemes(&self) -> &'static [&'static str] {
        &["sim"]
    }

    fn devices(&self) -> Result<Vec<Device>, Error> {
        let detail = "simulated network inside this process".into();
        Ok(vec![Device { name: "sim".into(), detail }])
    }

    fn open(&self) -> Result<SimDomain, Error> {
        SimDomain::open(self.net.clone())
    }
}
