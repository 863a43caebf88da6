//! The device that tests use.

use fabric_core::{Domain, Fabric};
use fabric_verbs::{VerbsFabric, VerbsOptions};

/// Set to 1 where a device must be there.
const REQUIRE: &str = "FABRIC_REQUIRE_VERBS";
/// Names the device; without it, it is the first one that is up.
const DEVICE: &str = "FABRIC_VERBS_DEVICE";

/// Settings that name the device under test.
pub(crate) fn options() -> VerbsOptions {
    VerbsOptions { device: std::env::var(DEVICE).ok(), ..Default::default() }
}

/// The provider on the device under test.
pub(crate) fn fabric() -> VerbsFabric {
    VerbsFabric::new(options())
}

/// The name of the device under test. Without one, says so, or fails if one is required.
pub(crate) fn device() -> Option<String> {
    match fabric().open() {
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
