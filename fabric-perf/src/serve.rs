//! The serving side: one run at a time, as it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use msg_patterns::{Addr, Context, ErrorKind, Message, Rep};

use crate::context::context;
use crate::control::{Answer, Figures, PATIENCE, Request, VERSION, decode, encode};
use crate::plan::{Level, Task};
use crate::socket::tasks;
use crate::{Error, bare, host, memory, socket};

/// Serves whoever connects to measure, one after the other.
#[derive(Debug)]
pub struct Server {
    control: Rep,
    addr: Addr,
    /// Where it was told to, which may have settings in it.
    given: Addr,
    worker: Option<Worker>,
}

/// The thread that takes part in a run.
#[derive(Debug)]
struct Worker {
    said: Receiver<Answer>,
    /// Dropped to let it go.
    hold: Option<SyncSender<()>>,
    context: Context,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the worker of a run needs.
pub(crate) struct Part {
    pub(crate) task: Task,
    /// Where to listen, at a port of the run's own.
    pub(crate) addr: Addr,
    /// For the sockets of the run alone.
    pub(crate) context: Context,
    /// Set when the run is given up.
    pub(crate) over: Arc<AtomicBool>,
    said: SyncSender<Answer>,
    held: Receiver<()>,
}

impl Server {
    /// Listens for who wants to measure. Each run listens at a free port beside it, with the settings
    /// in the query of `addr`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn bind(context: &Context, addr: &str) -> Result<Self, Error> {
        memory::raise_descriptor_limit();
        let control = Rep::new(context)?;
        let given = addr.parse().map_err(msg_patterns::Error::from)?;
        let addr = control.bind(addr)?;
        Ok(Self { control, addr, given, worker: None })
    }

    /// Where it listens, with the real port.
    pub fn addr(&self) -> &Addr {
        &self.addr
    }

    /// Serves until its context is shut down.
    ///
    /// # Errors
    /// When the control socket fails.
    pub fn run(mut self) -> Result<(), Error> {
        loop {
            let request = match self.control.recv() {
                Ok(request) => request,
                Err(error) if error.kind() == ErrorKind::Terminated => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let answer = self.answer(&request).unwrap_or_else(|error| failed(&error));
            self.control.send(encode(&answer)?)?;
        }
    }

    fn answer(&mut self, request: &Message) -> Result<Answer, Error> {
        match decode(request)? {
            Request::Start { version: VERSION, task } => self.start(task),
            Request::Start { .. } => {
                Err(Error::Plan("use the same version of fabric on both sides".into()))
            }
            Request::Next => self.next(),
            Request::Done => {
                self.worker = None;
                Ok(Answer::Done)
            }
        }
    }

    /// Whoever started the last run is gone or done: its worker ends first.
    fn start(&mut self, task: Task) -> Result<Answer, Error> {
        self.worker = None;
        let addr = self.addr.clone().with_port(0).with_queries_of(&self.given);
        self.worker = Some(Worker::start(task, addr)?);
        self.next()
    }

    fn next(&self) -> Result<Answer, Error> {
        let nothing = || Error::Peer("no run was started".into());
        self.worker.as_ref().ok_or_else(nothing)?.next()
    }
}

impl Worker {
    fn start(task: Task, addr: Addr) -> Result<Self, Error> {
        let (say, said) = sync_channel(1);
        let (hold, held) = sync_channel(0);
        let context = context(&task);
        let over = Arc::new(AtomicBool::new(false));
        let (ours, theirs) = (context.clone(), over.clone());
        let part = Part { task, addr, context: ours, over: theirs, said: say, held };
        let thread = thread::Builder::new().name("run".into()).spawn(move || part.play());
        let thread = thread.map_err(Error::host("cannot start a thread"))?;
        Ok(Self { said, hold: Some(hold), context, over, thread: Some(thread) })
    }

    fn next(&self) -> Result<Answer, Error> {
        self.said.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::TimedOut("nothing moved for a minute".into()),
            RecvTimeoutError::Disconnected => Error::Peer("the run is over".into()),
        })
    }
}

impl Drop for Worker {
    /// Its sockets close in order if the run is over, and at once if it waits for somebody.
    fn drop(&mut self) {
        self.hold = None;
        self.over.store(true, Ordering::Relaxed);
        self.context.shutdown();
        // Room for its last word, which nobody waits for.
        while self.said.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

impl Part {
    fn play(self) {
        let outcome = self.pin().and_then(|()| match self.task.settings.level {
            Level::Socket => socket::serve(&self),
            Level::Tasks => tasks::serve(&self),
            Level::Domain => bare::serve(&self),
        });
        if let Err(error) = outcome {
            // Nobody waits for it any more.
            drop(self.said.send(failed(&error)));
        }
    }

    fn pin(&self) -> Result<(), Error> {
        self.task.settings.pin.map_or(Ok(()), |(_, serving)| host::pin(serving))
    }

    /// Says where it listens.
    pub(crate) fn ready(&self, addr: &Addr) {
        self.say(Answer::Ready { addr: addr.to_string() });
    }

    /// Says what it found out.
    pub(crate) fn report(&self, figures: Figures) {
        self.say(Answer::Figures(figures));
    }

    /// Whoever would have listened may be gone.
    fn say(&self, answer: Answer) {
        drop(self.said.send(answer));
    }

    /// Keeps connections open until the other side is done with them.
    pub(crate) fn hold(&self) {
        // Ends when the worker is dropped.
        let _ = self.held.recv();
    }
}

fn failed(error: &Error) -> Answer {
    Answer::Failed { why: error.to_string() }
}
