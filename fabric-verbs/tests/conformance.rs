//! The suite on the RDMA device of this host.
//!
//! Without one, each case says so and ends, unless `FABRIC_REQUIRE_VERBS=1` is set: then it fails.
//! `FABRIC_VERBS_DEVICE` names the device to use.

mod common;

use common::device;
use fabric_conformance::{Harness, conformance_tests};
use fabric_core::wrap::Trace;
use fabric_core::{Addr, Domain, Fabric};
use fabric_verbs::VerbsDomain;

struct Verbs<D> {
    name: &'static str,
    host: String,
    dress: fn(VerbsDomain) -> D,
}

impl<D: Domain + 'static> Harness for Verbs<D> {
    type Domain = D;

    fn name(&self) -> &str {
        self.name
    }

    fn domain(&self) -> D {
        let domain = common::fabric().open_for(&self.listen_addr());
        (self.dress)(domain.expect("a verbs domain"))
    }

    fn listen_addr(&self) -> Addr {
        Addr::new("verbs", &self.host, Some(0))
    }

    /// Ports below 1024 are nobody's unless he asks for one.
    fn unreachable_addr(&self) -> Addr {
        Addr::new("verbs", &self.host, Some(7))
    }

    /// One of so many that no two tests draw the same.
    fn fresh_group(&self) -> Option<Addr> {
        let [high, middle, low, _] = fastrand::u32(..).to_be_bytes();
        Some(Addr::new("verbs", &format!("239.{high}.{middle}.{low}"), None))
    }
}

mod verbs {
    use super::*;
    conformance_tests!(match device() {
        Some(host) => Verbs { name: "verbs", host, dress: |domain| domain },
        None => return,
    });
}

mod verbs_boxed {
    use super::*;
    conformance_tests!(match device() {
        Some(host) => {
            let dress: fn(VerbsDomain) -> Box<dyn Domain> = |domain| Box::new(domain);
            Verbs { name: "verbs-boxed", host, dress }
        }
        None => return,
    });
}

mod verbs_trace {
    use super::*;
    conformance_tests!(match device() {
        Some(host) => Verbs { name: "verbs-trace", host, dress: Trace::new },
        None => return,
    });
}
