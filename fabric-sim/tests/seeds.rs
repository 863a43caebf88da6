//! The suite holds whatever the order and the delay of packets.

mod group;

use fabric_conformance::{Harness, run_all};
use fabric_core::{Addr, Fabric};
use fabric_sim::{Faults, SimDomain, SimFabric, SimNet, SimOptions};

struct Slow(SimFabric);

impl Harness for Slow {
    type Domain = SimDomain;

    fn name(&self) -> &str {
        "sim-slow"
    }

    fn domain(&self) -> SimDomain {
        self.0.open().expect("a simulated domain")
    }

    fn listen_addr(&self) -> Addr {
        Addr::new("sim", "here", Some(0))
    }

    fn unreachable_addr(&self) -> Addr {
        Addr::new("sim", "nowhere", Some(1))
    }

    fn fresh_group(&self) -> Option<Addr> {
        Some(group::fresh())
    }
}

#[test]
fn every_case_passes_on_slow_networks_of_several_seeds() {
    for seed in 1..=2 {
        let faults = Faults { delay_polls_max: 6, ..Faults::default() };
        let options = SimOptions { seed, faults, ..SimOptions::default() };
        run_all(&Slow(SimFabric::new(SimNet::with(options))));
    }
}
