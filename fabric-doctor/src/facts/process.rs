//! This process: its limits, rights and surroundings (proc(5), capabilities(7), getrlimit(2)).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::root::{Owner, Root};

/// A limit of a process. What is absent is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// Up to where the process may raise it.
    pub hard: Option<u64>,
}

/// What this process may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Bytes of memory that it may lock; RDMA devices reach only locked memory.
    pub locked_bytes: Option<Limit>,
    /// The same of its parent.
    pub parent_locked_bytes: Option<Limit>,
    /// Whether the limit binds it at all: not those with `CAP_IPC_LOCK`.
    pub may_lock_all: bool,
    /// Files and sockets that it may have open.
    pub descriptors: Option<Limit>,
    /// How many are open.
    pub descriptors_open: usize,
    /// Its user.
    pub uid: Option<u32>,
    /// Whether it may set up networks: `CAP_NET_ADMIN`.
    pub may_set_up_networks: bool,
    #[serde(skip)]
    groups: Vec<u32>,
    #[serde(skip)]
    passes_permissions: bool,
    /// Its environment, as it began.
    #[serde(skip)]
    pub(crate) environment: BTreeMap<String, String>,
}

const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_NET_ADMIN: u32 = 12;
const CAP_IPC_LOCK: u32 = 14;

impl Process {
    pub(crate) fn read(root: &Root) -> Self {
        let status = Status(root.read("/proc/self/status").unwrap_or_default());
        let may = |capability| status.has(capability);
        // Rights of a user namespace count for its own networks, but not for devices and limits.
        let first = in_first_user_namespace(root);
        let parent = status.number("PPid");
        let parent = parent.and_then(|pid| root.read(&format!("/proc/{pid}/limits")));
        let limits = root.read("/proc/self/limits").unwrap_or_default();
        Self {
            locked_bytes: limit(&limits, LOCKED),
            parent_locked_bytes: parent.and_then(|limits| limit(&limits, LOCKED)),
            may_lock_all: first && may(CAP_IPC_LOCK),
            descriptors: limit(&limits, DESCRIPTORS),
            descriptors_open: root.list("/proc/self/fd").len(),
            uid: status.number("Uid"),
            may_set_up_networks: may(CAP_NET_ADMIN),
            groups: [status.numbers("Gid"), status.numbers("Groups")].concat(),
            passes_permissions: first && may(CAP_DAC_OVERRIDE),
            environment: environment(root),
        }
    }

    /// Whether it may read and write a file with these permissions.
    pub(crate) fn may_open(&self, owner: Owner) -> bool {
        let shift = if self.uid == Some(owner.uid) {
            6
        } else if self.groups.contains(&owner.gid) {
            3
        } else {
            0
        };
        self.passes_permissions || (owner.mode >> shift) & 0o6 == 0o6
    }

    /// A variable of the environment that is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// `/proc/self/status`: lines of a name and its values.
struct Status(String);

impl Status {
    fn numbers(&self, name: &str) -> Vec<u32> {
        let values = self.values(name).unwrap_or_default();
        values.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }

    fn number(&self, name: &str) -> Option<u32> {
        // Real, effective, saved: what counts is the effective one.
        let numbers = self.numbers(name);
        numbers.get(1).or_else(|| numbers.first()).copied()
    }

    fn has(&self, capability: u32) -> bool {
        let set = self.values("CapEff").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        set.is_some_and(|set| set >> capability & 1 == 1)
    }

    fn values(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| *found == name).map(|(_, values)| values)
    }
}

const LOCKED: &str = "Max locked memory";
const DESCRIPTORS: &str = "Max open files";

/// A line of `/proc/PID/limits`.
fn limit(limits: &str, name: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace();
    let mut next = || words.next().map(|word| word.parse().ok());
    Some(Limit { soft: next()?, hard: next()? })
}

fn in_first_user_namespace(root: &Root) -> bool {
    let Some(map) = root.read("/proc/self/uid_map") else { return true };
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn environment(root: &Root) -> BTreeMap<String, String> {
    let bytes = root.bytes("/proc/self/environ").unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What this process runs in, if it is a container.
pub(crate) fn container(root: &Root) -> Option<String> {
    let by_file = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    if let Some((_, kind)) = by_file.iter().find(|(path, _)| root.exists(path)) {
        return Some((*kind).to_owned());
    }
    let groups = root.read("/proc/1/cgroup").unwrap_or_default();
    let kinds = ["docker", "kubepods", "libpod", "containerd", "lxc"];
    kinds.iter().find(|kind| groups.contains(**kind)).map(|kind| (*kind).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        let text = "Max open files            1024                 4096                 files\n\
                    Max locked memory         unlimited            unlimited            bytes\n";
        let files = Limit { soft: Some(1024), hard: Some(4096) };
        assert_eq!(limit(text, DESCRIPTORS), Some(files));
        assert_eq!(limit(text, LOCKED), Some(Limit::default()));
        assert_eq!(limit(text, "Max nothing"), None);
    }

    #[test]
    fn the_first_bits_that_apply_decide() {
        let process = Process { uid: Some(7), groups: vec![8], ..Process::default() };
        let may = |mode, uid, gid| process.may_open(Owner { mode, uid, gid });
        assert!(may(0o600, 7, 0) && may(0o060, 0, 8) && may(0o006, 0, 0));
        assert!(!may(0o066, 7, 8) && !may(0o606, 0, 8) && !may(0o664, 0, 0));
        let root = Process { passes_permissions: true, ..process };
        assert!(root.may_open(Owner { mode: 0, uid: 0, gid: 0 }));
    }
}
