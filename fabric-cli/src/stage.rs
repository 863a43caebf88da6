//! What every run has: a context, signals, and somebody who is told.

use std::cell::RefCell;
use std::thread::JoinHandle;
use std::time::Duration;

use msg_patterns::{Builder, Context, Counters};

use crate::args::{Ends, Global, Tuning};
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::notes;
use crate::report::{Line, Style, Summary};
use crate::socket::Endpoint;
use crate::tally::Tally;

/// The surroundings of a run.
pub(crate) struct Stage {
    context: Context,
    /// Whether a signal came.
    pub(crate) interrupt: Interrupt,
    /// Who reads standard error.
    pub(crate) style: Style,
    notes: RefCell<Vec<JoinHandle<()>>>,
}

/// What the positional address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Listen there.
    Bind,
    /// Connect there.
    Connect,
}

impl Stage {
    /// Sets the stage. A signal ends all waiting calls of its sockets.
    ///
    /// # Errors
    /// `Failed` when the host refuses.
    pub(crate) fn new(global: &Global, tuning: &Tuning) -> Result<Self, Failure> {
        let context = Context::new();
        let shut_down = context.clone();
        let interrupt = Interrupt::listen(tuning.queues.grace(), move || shut_down.shutdown())?;
        Ok(Self { context, interrupt, style: global.report, notes: RefCell::default() })
    }

    /// As `new`, for who looks out for a signal itself and ends within `grace`.
    ///
    /// # Errors
    /// As `new`.
    pub(crate) fn watchful(global: &Global, grace: Duration) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen(grace, || {})?;
        let context = Context::new();
        Ok(Self { context, interrupt, style: global.report, notes: RefCell::default() })
    }

    /// Makes a socket and binds and connects it.
    ///
    /// # Errors
    /// `Failed` when an address cannot be used.
    pub(crate) fn open<S: Endpoint>(
        &self,
        builder: Builder<S>,
        ends: &Ends,
        side: Side,
    ) -> Result<S, Failure> {
        let socket = builder.build(&self.context)?;
        self.notes.borrow_mut().extend(notes::watch(socket.monitor(), self.style));
        let (bind, connect) = ends.split(side);
        for addr in bind {
            let addr = socket.bind(addr)?.to_string();
            Line::Listening { addr }.say(self.style);
        }
        for addr in connect {
            socket.connect(addr)?;
        }
        Ok(socket)
    }

    /// Closes the last socket within linger, tells what was done, and says how the run ended.
    ///
    /// # Errors
    /// What `outcome` says, or that a signal came.
    pub(crate) fn finish<S: Endpoint>(
        &self,
        command: &str,
        socket: S,
        tally: Tally,
        outcome: Result<(), Failure>,
    ) -> Result<Summary, Failure> {
        let counters = close(socket, outcome.is_ok());
        self.join_notes();
        let summary = tally.finish(command, &counters);
        Line::Summary(summary.clone()).say(self.style);
        outcome?;
        if self.interrupt.is_hit() { Err(Failure::Interrupted) } else { Ok(summary) }
    }

    /// Nothing worth a note is left unsaid. All sockets are closed by now.
    pub(crate) fn join_notes(&self) {
        for notes in self.notes.take() {
            // A thread that failed has said so.
            drop(notes.join());
        }
    }
}

/// Closing acknowledges the last message that was pulled; after a failure nobody processed it.
fn close<S: Endpoint>(socket: S, succeeded: bool) -> Counters {
    let watched = socket.clone();
    if succeeded {
        socket.close();
    } else {
        drop(socket);
        watched.clone().close();
    }
    watched.counters()
}

impl Ends {
    /// Addresses to bind and addresses to connect.
    fn split(&self, side: Side) -> (Vec<&str>, Vec<&str>) {
        let mut bind: Vec<&str> = self.bind.iter().map(String::as_str).collect();
        let mut connect: Vec<&str> = self.connect.iter().map(String::as_str).collect();
        let chosen = if side == Side::Bind { &mut bind } else { &mut connect };
        chosen.extend(self.url.as_deref());
        (bind, connect)
    }
}
