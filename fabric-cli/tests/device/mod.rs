//! The RDMA device of this host, and what the kernel holds for it.

use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// There is one device for all tests.
static ALONE: Mutex<()> = Mutex::new(());

/// Looks at the objects before they count as left behind: a minute at least.
const LOOKS_MAX: usize = 3000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The device, and what there was on it before the test.
pub(crate) struct Device {
    before: Value,
    _alone: MutexGuard<'static, ()>,
}

impl Device {
    /// The device, if this host has one; with `FABRIC_REQUIRE_VERBS=1` it must.
    pub(crate) fn get() -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = name() {
            return Some(Self { before: objects(&name), _alone: alone });
        }
        let required = std::env::var("FABRIC_REQUIRE_VERBS").is_ok_and(|value| value == "1");
        assert!(!required, "FABRIC_REQUIRE_VERBS=1, but there is no RDMA device that is up");
        println!("skipped: there is no RDMA device that is up");
        None
    }

    /// Waits until there are as many objects of each kind as before.
    pub(crate) fn assert_unchanged(self) {
        let name = name().expect("the device is still there");
        let mut now = objects(&name);
        for _ in 0..LOOKS_MAX {
            if now == self.before {
                return;
            }
            thread::sleep(BETWEEN_LOOKS);
            now = objects(&name);
        }
        panic!("objects before: {}, and after: {now}", self.before);
    }
}

/// An address on the device that picks a free port.
pub(crate) fn any() -> String {
    format!("verbs://{}:0", name().expect("a device, see Device::get"))
}

/// The device that `FABRIC_VERBS_DEVICE` names, else the first one that is up.
fn name() -> Option<String> {
    if let Ok(name) = std::env::var("FABRIC_VERBS_DEVICE") {
        return Some(name);
    }
    let entries = fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_up(name)).min()
}

fn is_up(name: &str) -> bool {
    let state = fs::read_to_string(format!("/sys/class/infiniband/{name}/ports/1/state"));
    state.is_ok_and(|state| state.contains("ACTIVE"))
}

/// How many objects of each kind there are: protection domains, queue pairs, regions and so on.
fn objects(name: &str) -> Value {
    let shown = Command::new("rdma").args(["-j", "resource", "show", name]).output();
    let shown = shown.expect("the program `rdma`: install iproute2").stdout;
    serde_json::from_slice(&shown).expect("`rdma -j resource show` writes JSON")
}
