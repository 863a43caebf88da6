//! Room in the process's table of descriptors.
//!
//! Linux doubles that table when it is full. Where several threads share it, all that open something
//! meanwhile sleep until every processor has passed through the scheduler (`expand_fdtable` in fs/file.c
//! waits for RCU), which takes milliseconds: more than dozens of connections do. A process with one thread
//! does not wait.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

/// What contexts make room for: a thousand sockets with a connection each. That takes the kernel 32 KiB.
const DESCRIPTORS: u64 = 4096;

/// Makes room for `count` descriptors at once, or for as many as the limit of the process allows
/// (getrlimit(2), `RLIMIT_NOFILE`).
///
/// For programs that will have hundreds of sockets: called before they start their first thread it costs
/// microseconds, and saves each doubling of the table later, which stops the threads for milliseconds. A
/// [`Context`](crate::Context) that is made while the process has one thread does this for 4096.
pub fn reserve_descriptors(count: u64) {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let last = i32::try_from(count.min(limit)).unwrap_or(i32::MAX) - 1;
    // Without room there is the usual error where a descriptor is needed.
    if let Err(error) = reach(last) {
        tracing::debug!(%error, count, "no room for descriptors");
    }
}

/// As [`reserve_descriptors`], if that makes nobody wait.
pub(crate) fn reserve_while_alone() {
    if is_alone() {
        reserve_descriptors(DESCRIPTORS);
    }
}

/// Opens a descriptor of that number or above, and closes it: the table keeps its size.
fn reach(number: i32) -> Result<(), Errno> {
    let any: OwnedFd = eventfd(0, EventfdFlags::CLOEXEC)?;
    fcntl_dupfd_cloexec(any.as_fd(), number).map(drop)
}

/// Whether the process has one thread: the directory of its threads then has one entry beside itself and
/// its parent (proc(5)).
fn is_alone() -> bool {
    std::fs::metadata("/proc/self/task").is_ok_and(|task| task.nlink() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_slots() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        line.trim().parse().unwrap()
    }

    #[test]
    fn the_table_has_the_room_that_was_asked_for() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let wanted = limit.min(table_slots() * 2);
        reserve_descriptors(wanted);
        assert!(table_slots() >= wanted, "{} of {wanted}", table_slots());
        reserve_descriptors(u64::MAX);
    }

    #[test]
    fn a_process_with_a_second_thread_is_not_alone() {
        assert!(std::thread::spawn(|| !is_alone()).join().unwrap());
    }
}
