//! The suite on the RDMA device of this host.
//!
//! Without one, each case says so and ends, unless `FABRIC_REQUIRE_VERBS=1` is set: then it fails.

use fabric_conformance::{Harness, conformance_tests};
use fabric_core::wrap::Trace;
use fabric_core::{Addr, Domain, Fabric};
use fabric_verbs::{VerbsDomain, VerbsFabric};

/// Set to 1 where a device must be there.
const REQUIRE: &str = "FABRIC_REQUIRE_VERBS";

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
        (self.dress)(VerbsFabric::default().open().expect("a verbs domain"))
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

/// The first device that can be opened.
fn device() -> Option<String> {
    let opened = VerbsFabric::default().open();
    match opened {
        Ok(domain) => Some(domain.caps().device.clone()),
        Err(error) if std::env::var(REQUIRE).is_ok_and(|value| value == "1") => {
            panic!("{REQUIRE}=1, but: {error}")
        }
        Err(error) => {
            println!("skipped, no RDMA device: {error}");
            None
        }
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
