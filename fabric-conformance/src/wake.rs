//! Threads and descriptors under watch: what hangs becomes a failure, not a hanging test.

use std::os::fd::BorrowedFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fabric_core::{Armed, Domain};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::node::Node;

const NAP: Duration = Duration::from_millis(1);

/// Runs `job` on a thread of its own and panics if it takes too many naps. A thread that hangs is
/// left behind.
pub(crate) fn watched<T: Send + 'static>(
    naps_max: u32,
    what: &str,
    job: impl FnOnce() -> T + Send + 'static,
    meanwhile: impl FnOnce(),
) -> T {
    let thread = thread::spawn(job);
    meanwhile();
    watch(naps_max, what, thread, || {})
}

/// As `watched`, and does something before every nap.
pub(crate) fn watched_with<T: Send + 'static>(
    naps_max: u32,
    what: &str,
    job: impl FnOnce() -> T + Send + 'static,
    again: impl FnMut(),
) -> T {
    watch(naps_max, what, thread::spawn(job), again)
}

fn watch<T>(naps_max: u32, what: &str, thread: JoinHandle<T>, mut again: impl FnMut()) -> T {
    for _ in 0..naps_max {
        if thread.is_finished() {
            return thread.join().unwrap_or_else(|_| panic!("the thread panicked: {what}"));
        }
        again();
        thread::sleep(NAP);
    }
    panic!("waited for {naps_max} naps in vain: {what}");
}

/// Whether a descriptor becomes readable within so many naps.
pub(crate) fn becomes_readable(naps_max: u32, fd: BorrowedFd<'_>) -> bool {
    let nap = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    (0..naps_max).any(|_| {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&nap)).is_ok_and(|ready| ready > 0)
    })
}

/// Polls and arms until the domain says that it is idle.
pub(crate) fn arm_until_idle<D: Domain>(naps_max: u32, node: &mut Node<D>) {
    for _ in 0..naps_max {
        if matches!(node.domain.arm(), Armed::Idle(_)) {
            return;
        }
        node.turn();
        thread::sleep(NAP);
    }
    panic!("a domain without traffic must become idle");
}

/// Whether a foreign event loop that arms now would learn of something.
pub(crate) fn would_wake<D: Domain>(naps_max: u32, node: &mut Node<D>) -> bool {
    node.domain.arm() == Armed::Ready || becomes_readable(naps_max, node.domain.wait_fd())
}
