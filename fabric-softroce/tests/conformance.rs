//! The suite over the link on the interface that `FABRIC_SOFTROCE_INTERFACE` names, which is made
//! and stays if there is none.
//!
//! Without that variable each case says so and ends; with `FABRIC_REQUIRE_RXE=1` that is a failure.

use fabric_conformance::{Harness, conformance_tests};
use fabric_core::{Addr, Domain, ErrorKind, Fabric};
use fabric_softroce::{SoftRoceFabric, link_on};
use fabric_verbs::VerbsDomain;

struct SoftRoce {
    interface: String,
}

impl SoftRoce {
    fn at(&self, port: u16) -> Addr {
        Addr::new("softroce", &self.interface, Some(port))
    }
}

impl Harness for SoftRoce {
    type Domain = VerbsDomain;

    fn name(&self) -> &str {
        "softroce"
    }

    fn domain(&self) -> VerbsDomain {
        SoftRoceFabric::default().open_for(&self.at(0)).expect("a domain on a soft-RoCE link")
    }

    fn listen_addr(&self) -> Addr {
        self.at(0)
    }

    /// Ports below 1024 are nobody's unless he asks for one.
    fn unreachable_addr(&self) -> Addr {
        self.at(7)
    }

    /// One of so many that no two tests draw the same.
    fn fresh_group(&self) -> Option<Addr> {
        let [high, middle, low, _] = fastrand::u32(..).to_be_bytes();
        Some(Addr::new("softroce", &format!("239.{high}.{middle}.{low}"), None))
    }
}

fn interface() -> Option<String> {
    if let Ok(interface) = std::env::var("FABRIC_SOFTROCE_INTERFACE") {
        return Some(interface);
    }
    let required = std::env::var("FABRIC_REQUIRE_RXE").is_ok_and(|value| value == "1");
    assert!(!required, "FABRIC_REQUIRE_RXE=1, but FABRIC_SOFTROCE_INTERFACE names no interface");
    println!("skipped: FABRIC_SOFTROCE_INTERFACE names no interface to make a link on");
    None
}

mod softroce {
    use super::*;
    conformance_tests!(match interface() {
        Some(interface) => SoftRoce { interface },
        None => return,
    });

    #[test]
    fn a_domain_is_on_the_link_of_its_address() {
        let Some(interface) = interface() else { return };
        let domain = SoftRoce { interface: interface.clone() }.domain();
        let link = link_on(&interface).unwrap().expect("its link");
        assert_eq!((domain.caps().provider, &domain.caps().device), ("softroce", &link.name));
        let fabric = SoftRoceFabric::default();
        assert!(fabric.devices().unwrap().iter().any(|device| device.name == link.name));
        let at = |host| Addr::new("softroce", host, Some(7000));
        assert_eq!(fabric.device_for(&at(&interface)).unwrap(), Some(link.name));
        assert_eq!(fabric.device_for(&at("*")).unwrap(), None);
    }

    #[test]
    fn addresses_of_other_providers_are_refused() {
        let Some(interface) = interface() else { return };
        let mut domain = SoftRoce { interface }.domain();
        let addr: Addr = "verbs://10.9.1.1:7000".parse().unwrap();
        let refusals = [
            domain.connect(&addr).unwrap_err(),
            domain.listen(&addr).unwrap_err(),
            SoftRoceFabric::default().open_for(&addr).unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.kind(), ErrorKind::Unsupported);
            assert!(refusal.message().contains("it begins with softroce://"), "{refusal}");
        }
    }
}
