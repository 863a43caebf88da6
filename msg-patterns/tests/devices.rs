//! One socket on several devices.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fabric_core::{Addr, Device, Domain, Error, Fabric};
use fabric_sim::{SimDomain, SimFabric, SimNet};
use msg_patterns::{Context, Pull, Push};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

/// A simulated network in which each host name is a device: the domain first opened for it.
#[derive(Clone)]
struct Devices {
    fabric: SimFabric,
    by_host: Arc<Mutex<HashMap<String, String>>>,
}

impl Devices {
    fn new() -> Self {
        Self { fabric: SimFabric::new(SimNet::new()), by_host: Arc::default() }
    }

    fn opened(&self) -> usize {
        self.by_host.lock().unwrap().len()
    }
}

impl Fabric for Devices {
    type Domain = SimDomain;

    fn schemes(&self) -> &'static [&'static str] {
        self.fabric.schemes()
    }

    fn devices(&self) -> Result<Vec<Device>, Error> {
        self.fabric.devices()
    }

    fn open(&self) -> Result<SimDomain, Error> {
        self.fabric.open()
    }

    fn open_for(&self, addr: &Addr) -> Result<SimDomain, Error> {
        let domain = self.fabric.open()?;
        let device = domain.caps().device.clone();
        let before = self.by_host.lock().unwrap().insert(addr.host().to_owned(), device);
        assert_eq!(before, None, "{addr} was opened before");
        Ok(domain)
    }

    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error> {
        let known = self.by_host.lock().unwrap().get(addr.host()).cloned();
        Ok(known.or_else(|| Some("not opened yet".to_owned())))
    }
}

#[test]
fn a_socket_has_a_domain_on_each_device_that_its_addresses_mean() {
    let devices = Devices::new();
    let context = Context::new().with_fabric(devices.clone());
    let pull = Pull::new(&context).unwrap();
    let left = pull.bind("sim://left:0").unwrap();
    let right = pull.bind("sim://right:0").unwrap();
    let again = pull.bind("sim://left:0").unwrap();
    assert_eq!(devices.opened(), 2, "a second address of a device needs no domain of its own");
    let elsewhere = Context::new().with_fabric(devices.fabric.clone());
    let mut pushers = Vec::new();
    for addr in [left, right, again] {
        let push = Push::new(&elsewhere).unwrap();
        push.connect(&addr.to_string()).unwrap();
        push.send(addr.to_string()).unwrap();
        pushers.push(push);
    }
    let mut came: Vec<String> = (0..3)
        .map(|_| String::from_utf8_lossy(pull.recv_timeout(LONG).unwrap().first()).into_owned())
        .collect();
    came.sort_unstable();
    came.dedup();
    assert_eq!(came.len(), 3, "a message over each address: {came:?}");
}
