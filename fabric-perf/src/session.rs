//! The measuring side's view of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use msg_patterns::{Addr, Context, Monitor, MonitorEvent, Req};

use crate::context::context;
use crate::control::{Answer, Control, Figures, PATIENCE, Request, VERSION};
use crate::host::reachable;
use crate::plan::Task;
use crate::progress::Progress;
use crate::{Error, memory};

/// How long the serving side may take to be there and get ready.
const CONTACT_TIME: Duration = Duration::from_secs(20);

/// A connection to the serving side.
pub(crate) struct Session<'a> {
    control: Control,
    /// Where the serving side was reached.
    reached: Addr,
    pub(crate) progress: &'a dyn Progress,
}

/// One run, ready to begin.
pub(crate) struct Run<'a> {
    pub(crate) task: Task,
    /// Where to connect.
    pub(crate) addr: Addr,
    /// For the sockets of the run alone.
    pub(crate) context: Context,
    pub(crate) session: &'a Session<'a>,
    /// Set when the other side left.
    pub(crate) over: Arc<AtomicBool>,
}

impl<'a> Session<'a> {
    /// Connects to who serves at `addr`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn connect(addr: &str, progress: &'a dyn Progress) -> Result<Self, Error> {
        memory::raise_descriptor_limit();
        let context = Context::new();
        let socket = Req::new(&context)?;
        watch(socket.monitor(), &context, &Arc::default())?;
        socket.connect(addr)?;
        let reached = addr.parse().map_err(msg_patterns::Error::from)?;
        Ok(Self { control: Control::new(socket), reached, progress })
    }

    /// Plays `part` with the other side ready for `task`.
    ///
    /// # Errors
    /// What `part` says, or what the other side knows better.
    pub(crate) fn play<T>(
        &self,
        task: Task,
        part: impl FnOnce(&Run<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let run = self.start(task)?;
        let outcome = part(&run).map_err(|error| self.explain(error));
        run.context.shutdown();
        // After a failure, that one is worth more than what this may say.
        let ended = self.control.ask(&Request::Done, PATIENCE);
        let value = outcome?;
        ended.map(|_| value)
    }

    fn start(&self, task: Task) -> Result<Run<'_>, Error> {
        let request = Request::Start { version: VERSION, task };
        let Answer::Ready { addr } = self.control.ask(&request, CONTACT_TIME)? else {
            return Err(out_of_turn());
        };
        let listening: Addr = addr.parse().map_err(msg_patterns::Error::from)?;
        // Settings that the address was given with are for what is measured, too.
        let addr = reachable(&listening, &self.reached).with_queries_of(&self.reached);
        let context = context(&task);
        Ok(Run { task, addr, context, session: self, over: Arc::default() })
    }

    /// The next figures of the other side.
    pub(crate) fn figures(&self) -> Result<Figures, Error> {
        match self.control.ask(&Request::Next, 2 * PATIENCE)? {
            Answer::Figures(figures) => Ok(figures),
            _ => Err(out_of_turn()),
        }
    }

    /// When the other side is gone from a run, it may still say why.
    fn explain(&self, error: Error) -> Error {
        if !error.may_be_known_to_peer() {
            return error;
        }
        match self.figures() {
            Err(known @ Error::Peer(_)) => known,
            _ => error,
        }
    }
}

impl Run<'_> {
    /// Ends all waiting calls of this run when the other side leaves.
    ///
    /// # Errors
    /// `Host` when the host has no thread left.
    pub(crate) fn watch(&self, monitor: Monitor) -> Result<(), Error> {
        watch(monitor, &self.context, &self.over)
    }

    /// The next figures of the other side.
    ///
    /// # Errors
    /// `Peer` with what went wrong there.
    pub(crate) fn figures(&self) -> Result<Figures, Error> {
        self.session.figures()
    }
}

/// Ends all waiting calls in `context` when the peer leaves. The thread ends with the monitor.
fn watch(monitor: Monitor, context: &Context, over: &Arc<AtomicBool>) -> Result<(), Error> {
    let (context, over) = (context.clone(), over.clone());
    let watch = move || {
        for event in monitor {
            if matches!(event, MonitorEvent::Disconnected { .. }) {
                over.store(true, Ordering::Relaxed);
                context.shutdown();
            }
        }
    };
    let thread = thread::Builder::new().name("watch".into()).spawn(watch);
    thread.map(drop).map_err(Error::host("cannot start a thread"))
}

fn out_of_turn() -> Error {
    Error::Peer("it answers something else than it was asked".into())
}
