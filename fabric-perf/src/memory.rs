//! Memory and descriptors of this process.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// What a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Memory of its own, in bytes.
    pub(crate) memory_bytes: u64,
    /// Open descriptors.
    pub(crate) descriptors: u64,
}

impl Held {
    /// What this process holds now.
    pub(crate) fn now() -> Self {
        Self { memory_bytes: anonymous_bytes().unwrap_or(0), descriptors: descriptors() }
    }

    /// What was added since `before`, for each of `peers`.
    pub(crate) fn per_peer(self, before: Self, peers: usize) -> (f64, f64) {
        let share = |now: u64, before: u64| (now as f64 - before as f64) / peers.max(1) as f64;
        (share(self.memory_bytes, before.memory_bytes), share(self.descriptors, before.descriptors))
    }
}

/// Anonymous memory that is resident. The cheaper counters of `/proc/self/statm` are rounded to
/// batches of pages per processor (proc(5)), which is too coarse for some KiB a peer.
fn anonymous_bytes() -> Option<u64> {
    field_kib(&fs::read_to_string("/proc/self/smaps_rollup").ok()?, "Anonymous:")
        .map(|kib| kib << 10)
}

fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn descriptors() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

/// Allows as many descriptors as the host does: a thousand peers need some thousands.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it stays as it is, what needs more says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_is_seen() {
        let before = Held::now();
        let block = std::hint::black_box(vec![1_u8; 16 << 20]);
        let (memory, _) = Held::now().per_peer(before, 1);
        assert!(memory >= f64::from(15 << 20), "{memory}");
        drop(block);
    }

    #[test]
    fn a_descriptor_is_seen() {
        let before = Held::now();
        let file = fs::File::open("/proc/self/status").unwrap();
        // Other tests of this process open and close files, too: only the sum is certain.
        assert!(Held::now().descriptors > 0 && before.descriptors > 0);
        drop(file);
    }
}
