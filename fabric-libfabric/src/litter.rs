//! What killed processes leave in /dev/shm.
//!
//! Providers that share memory give each endpoint a file there, and a process that is killed cannot
//! remove its own. Names of ours tell whose they are, so survivors do it, and whoever comes later.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

const DIR: &str = "/dev/shm";
/// What names of endpoints begin with in the provider's own format.
const SCHEME: &str = "fi_shm://";
/// What our names begin with; the process's number follows.
const PREFIX: &str = "fabric-ofi-";

/// A name for an endpoint of this process that no other has.
pub(crate) fn new_name() -> String {
    format!("{SCHEME}{PREFIX}{}-{:016x}", std::process::id(), fastrand::u64(..))
}

/// Whether a name is one of this process.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    let owner = file_of(name).and_then(|path| owner(path.file_name()?.to_str()?));
    owner.is_some_and(|pid| pid == rustix::process::getpid())
}

/// Removes what the endpoint of a peer left that went without a goodbye. One that was not killed has
/// closed its endpoint before its side channel, so there is nothing.
pub(crate) fn sweep_after(name: Option<&[u8]>) {
    if let Some(path) = name.and_then(file_of) {
        remove(&path);
    }
}

/// Removes what processes left that are gone.
pub(crate) fn sweep() {
    let Ok(entries) = std::fs::read_dir(DIR) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(is_gone) {
            remove(&entry.path());
        }
    }
}

/// The file of an endpoint with one of our names; a peer cannot name any other.
pub(crate) fn file_of(name: &[u8]) -> Option<PathBuf> {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let file = std::str::from_utf8(&name[..end]).ok()?.strip_prefix(SCHEME)?;
    owner(file)?;
    (!file.contains('/')).then(|| Path::new(DIR).join(file))
}

fn owner(file: &str) -> Option<Pid> {
    let (number, _) = file.strip_prefix(PREFIX)?.split_once('-')?;
    Pid::from_raw(number.parse().ok()?)
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Ok(()) => tracing::debug!(path = %path.display(), "removed what a killed process left"),
        Err(error) => tracing::trace!(%error, "nothing was left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_ours_leads_to_its_file_and_others_lead_nowhere() {
        let name = format!("{}:0:1\0", new_name());
        let file = file_of(name.as_bytes()).unwrap();
        assert!(is_ours(name.as_bytes()));
        assert!(file.starts_with(DIR) && file.to_str().unwrap().ends_with(":0:1"));
        for name in ["fi_shm://other", "fi_shm://fabric-ofi-1-a/../../x", "fabric-ofi-1-a", ""] {
            assert_eq!(file_of(name.as_bytes()), None, "{name}");
            assert!(!is_ours(name.as_bytes()));
        }
    }

    #[test]
    fn files_of_dead_processes_go_and_those_of_the_living_stay() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let path =
            |pid: u32| Path::new(DIR).join(format!("{PREFIX}{pid}-test-{}", fastrand::u64(..)));
        let (dead, alive) = (path(child.id()), path(std::process::id()));
        for path in [&dead, &alive] {
            std::fs::write(path, b"").unwrap();
        }
        sweep();
        assert_eq!((dead.exists(), alive.exists()), (false, true));
        std::fs::remove_file(&alive).unwrap();
    }
}
