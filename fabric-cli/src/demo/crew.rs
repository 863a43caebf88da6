//! What all processes of the demo share: who starts them, where they listen, and how long they may
//! take.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use msg_patterns::Addr;

use crate::args::DemoArgs;
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Longest time for the file that comes along.
const TIME: Duration = Duration::from_secs(13);
/// A larger file gets a second more for each of these.
const BYTES_PER_SECOND: usize = 1 << 20;

/// The director of the demo.
pub(crate) struct Crew {
    /// This program, which plays all the parts.
    pub(crate) program: PathBuf,
    /// Where processes listen; each picks a port.
    pub(crate) addr: Addr,
    /// Whether a signal came.
    pub(crate) interrupt: Interrupt,
    /// Nothing after a time limit too long to come.
    end: Option<Instant>,
}

impl Crew {
    /// A crew for a file of `bytes`.
    ///
    /// # Errors
    /// `Failed` when this program cannot be found again.
    pub(crate) fn new(
        args: &DemoArgs,
        interrupt: Interrupt,
        bytes: usize,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("this program"))?;
        let more = Duration::from_secs((bytes / BYTES_PER_SECOND) as u64);
        let end = Instant::now().checked_add(args.timeout.unwrap_or(TIME + more));
        Ok(Self { program, addr: args.place().clone(), interrupt, end })
    }

    /// The demo may go on.
    ///
    /// # Errors
    /// `Interrupted`, or `Failed` when `who` took too long.
    pub(crate) fn go_on(&self, who: &str) -> Result<(), Failure> {
        if self.interrupt.is_hit() {
            return Err(Failure::Interrupted);
        }
        if self.end.is_none_or(|end| Instant::now() < end) {
            return Ok(());
        }
        let text = format!("{who} did not end in time: is this machine very busy? Raise --timeout");
        Err(Failure::new(text))
    }
}
