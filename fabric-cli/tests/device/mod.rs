//! The RDMA device of this host, and what the kernel holds for it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Pull};
use serde_json::Value;

/// There is one device for all tests.
static ALONE: Mutex<()> = Mutex::new(());

/// Looks at the objects before they count as left behind: a minute at least.
const LOOKS_MAX: usize = 3000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The device, and what there was on it before the test.
pub(crate) struct Device {
    before: Objects,
    _alone: MutexGuard<'static, ()>,
}

/// Counts by kind: protection domains, queue pairs, regions and so on.
type Objects = BTreeMap<String, u64>;

impl Device {
    /// The device, if this host has one; with `FABRIC_REQUIRE_VERBS=1` it must.
    pub(crate) fn get() -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = name() {
            return Some(Self { before: objects_in_use(&name), _alone: alone });
        }
        let required = std::env::var("FABRIC_REQUIRE_VERBS").is_ok_and(|value| value == "1");
        assert!(!required, "FABRIC_REQUIRE_VERBS=1, but there is no RDMA device that is up");
        println!("skipped: there is no RDMA device that is up");
        None
    }

    /// Waits until there are as many objects of each kind as before.
    pub(crate) fn assert_unchanged(self) {
        let name = name().expect("the device is still there");
        let before = &self.before;
        let after = settled(&name, |now| now == before);
        assert!(after == self.before, "objects before: {before:?}, and after: {after:?}");
    }
}

/// What there is on the device when this process has used it and does so no more: the connection
/// manager's library keeps a context and a protection domain once it was used.
fn objects_in_use(name: &str) -> Objects {
    let cold = objects(name);
    let pull = Pull::new(&Context::new()).unwrap();
    pull.bind(&any()).unwrap();
    pull.close();
    let kept = |kind: &str| u64::from(["ctx", "pd"].contains(&kind));
    let is_closed = |(kind, count): (&String, &u64)| {
        let before = cold.get(kind).copied().unwrap_or_default();
        (before..=before + kept(kind)).contains(count)
    };
    settled(name, |now| now.iter().all(is_closed))
}

/// The objects once they are as `wanted`, or when it seems that they never will be.
fn settled(name: &str, wanted: impl Fn(&Objects) -> bool) -> Objects {
    let mut now = objects(name);
    for _ in 0..LOOKS_MAX {
        if wanted(&now) {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
        now = objects(name);
    }
    now
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

/// How many objects of each kind there are now.
fn objects(name: &str) -> Objects {
    let shown = Command::new("rdma").args(["-j", "resource", "show", name]).output();
    let shown = shown.expect("the program `rdma`: install iproute2").stdout;
    let devices: Vec<BTreeMap<String, Value>> =
        serde_json::from_slice(&shown).expect("`rdma -j resource show` writes JSON");
    let kinds = devices.into_iter().flatten().filter(|(kind, _)| kind != "ifindex");
    kinds.filter_map(|(kind, count)| Some((kind, count.as_u64()?))).collect()
}
