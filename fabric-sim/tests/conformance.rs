//! The suite on the simulated fabric: as it is, boxed, traced, and in a wrapper for faults without any.

mod group;

use fabric_conformance::{Harness, conformance_tests};
use fabric_core::wrap::{Fault, FaultPlan, Trace};
use fabric_core::{Addr, Domain, Fabric};
use fabric_sim::{SimDomain, SimFabric, SimNet};

/// A network, and how its domains are dressed.
struct Sim<D> {
    name: &'static str,
    fabric: SimFabric,
    dress: fn(SimDomain) -> D,
}

impl<D: Domain + 'static> Sim<D> {
    fn new(name: &'static str, dress: fn(SimDomain) -> D) -> Self {
        Self { name, fabric: SimFabric::new(SimNet::new()), dress }
    }
}

impl<D: Domain + 'static> Harness for Sim<D> {
    type Domain = D;

    fn name(&self) -> &str {
        self.name
    }

    fn domain(&self) -> D {
        (self.dress)(self.fabric.open().expect("a simulated domain"))
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

mod sim {
    use super::*;
    conformance_tests!(Sim::new("sim", |domain| domain));
}

mod sim_boxed {
    use super::*;
    conformance_tests!(Sim::<Box<dyn Domain>>::new("sim-boxed", |domain| Box::new(domain)));
}

mod sim_trace {
    use super::*;
    conformance_tests!(Sim::new("sim-trace", Trace::new));
}

mod sim_fault {
    use super::*;
    conformance_tests!(Sim::new("sim-fault", |domain| Fault::new(domain, FaultPlan::default())));
}
