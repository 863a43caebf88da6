//! Ctrl-C and SIGTERM: the first one ends the run cleanly, the second one at once.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Failure, INTERRUPTED};
use crate::report::say;

/// Whether a signal asked to end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hit: AtomicBool,
    /// Readable once hit: the other end is dropped then.
    hung_up: UnixStream,
}

impl Interrupt {
    /// Listens for signals. The first one calls `on_hit`; a second one, or `grace` without the
    /// process having ended, ends it at once.
    ///
    /// # Errors
    /// `Failed` when the host refuses.
    pub(crate) fn listen(
        grace: Duration,
        on_hit: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Failure> {
        let failed = || Failure::io("cannot listen for signals");
        let (hung_up, hang_up) = UnixStream::pair().map_err(failed())?;
        let interrupt = Self(Arc::new(Inner { hit: AtomicBool::new(false), hung_up }));
        let signals = Signals::new([SIGINT, SIGTERM]).map_err(failed())?;
        let seen = interrupt.clone();
        let thread = move || seen.serve(signals, hang_up, grace, on_hit);
        thread::Builder::new().name("signals".into()).spawn(thread).map_err(failed())?;
        Ok(interrupt)
    }

    fn serve(
        &self,
        mut signals: Signals,
        hang_up: UnixStream,
        grace: Duration,
        on_hit: impl FnOnce(),
    ) {
        if signals.forever().next().is_none() {
            return;
        }
        self.0.hit.store(true, Ordering::SeqCst);
        drop(hang_up);
        exit_after(grace);
        on_hit();
        if signals.forever().next().is_some() {
            std::process::exit(INTERRUPTED.into());
        }
    }

    /// Whether a signal came.
    pub(crate) fn is_hit(&self) -> bool {
        self.0.hit.load(Ordering::SeqCst)
    }

    /// Waits for a signal.
    ///
    /// # Errors
    /// `Failed` when the host refuses.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        // Readable once hit.
        let waited = self.wait_readable(&self.0.hung_up);
        waited.map(drop).map_err(Failure::io("cannot wait for a signal"))
    }

    /// Waits until `source` can be read; `false` when a signal came instead.
    fn wait_readable(&self, source: impl AsFd) -> io::Result<bool> {
        let source = source.as_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(self.0.hung_up.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(source, PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => return Ok(!self.is_hit()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn exit_after(grace: Duration) {
    let thread = move || {
        thread::sleep(grace);
        say("fabric: peers did not take everything in time; what was left is dropped");
        std::process::exit(INTERRUPTED.into());
    };
    // Without the thread a second signal still ends the process.
    drop(thread::Builder::new().name("grace".into()).spawn(thread));
}

/// A reader that ends when a signal comes.
#[derive(Debug)]
pub(crate) struct UntilHit<R> {
    reader: R,
    interrupt: Interrupt,
}

impl<R> UntilHit<R> {
    /// Reads `reader` until its end or a signal.
    pub(crate) fn new(reader: R, interrupt: &Interrupt) -> Self {
        Self { reader, interrupt: interrupt.clone() }
    }
}

impl<R: Read + AsFd> Read for UntilHit<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.interrupt.wait_readable(&self.reader)? { self.reader.read(buf) } else { Ok(0) }
    }
}
