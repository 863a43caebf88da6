//! A task of a tokio runtime that drives one socket, in place of the background thread.
//!
//! It sleeps on the fabric's descriptors through the runtime's own epoll instance, looks and arms
//! before each sleep, and wakes the socket's tasks. When the runtime ends first, the background thread
//! takes the socket over.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Sleep, sleep, sleep_until};

use crate::background::{Background, Driven, Next};

/// Turns in a row before other tasks have theirs.
const TURNS_MAX: usize = 8;
/// When to look again at a socket that calls hold.
const HELD_PAUSE: Duration = Duration::from_millis(1);
/// Looks in a row at a socket that calls hold before a pause.
const HELD_LOOKS: u32 = 4;

/// Makes a task of the runtime that this is called in drive the socket. False if there is none that
/// could.
pub(crate) fn adopt(socket: &Arc<dyn Driven>, background: &Arc<Background>) -> bool {
    let Ok(handle) = Handle::try_current() else { return false };
    if !can_wait(&handle) {
        tracing::warn!("the tokio runtime has no I/O or time: a thread drives the socket");
        return false;
    }
    let one_thread = handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
    let bell = Arc::new(Bell { one_thread, ..Bell::default() });
    if socket.flags().set_bell(bell.clone()).is_err() {
        return false;
    }
    handle.spawn(Driver {
        socket: Arc::downgrade(socket),
        background: background.clone(),
        bell,
        fds: Vec::new(),
        due: None,
        alarm: None,
        held_looks: 0,
        ended: false,
    });
    true
}

/// Whether the runtime was built with I/O and time. It has no other way to say so than to panic.
fn can_wait(handle: &Handle) -> bool {
    let Ok(fd) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return false };
    let _entered = handle.enter();
    let wait = || {
        drop(sleep(Duration::ZERO));
        watched(fd).is_some()
    };
    catch_unwind(AssertUnwindSafe(wait)).unwrap_or(false)
}

/// Registers a descriptor with the runtime that this is called in.
#[allow(deprecated, reason = "its successor is unsafe, for types that do not own their descriptor")]
fn watched(fd: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE).ok()
}

/// Wakes the task.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    one_thread: bool,
    rung: AtomicBool,
    /// The task ended before the socket.
    gone: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    /// Something came up at the socket. False if nobody hears it any more.
    pub(crate) fn ring(&self) -> bool {
        if self.gone.load(Ordering::SeqCst) {
            return false;
        }
        if !self.rung.swap(true, Ordering::SeqCst) {
            let task = self.task.lock().take();
            task.into_iter().for_each(Waker::wake);
        }
        true
    }

    /// Whether the task is alive, and runs on whatever thread blocks on the runtime.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.one_thread && !self.gone.load(Ordering::SeqCst)
    }

    /// Whether the task is alive, and this is called in a runtime.
    pub(crate) fn is_around_here(&self) -> bool {
        !self.gone.load(Ordering::SeqCst) && Handle::try_current().is_ok()
    }

    /// Whether it was rung since it was last asked; if not, the next ring wakes the task.
    fn heard(&self, task: &Waker) -> bool {
        if !self.rung.load(Ordering::SeqCst) {
            *self.task.lock() = Some(task.clone());
        }
        self.rung.swap(false, Ordering::SeqCst)
    }
}

/// The task.
struct Driver {
    socket: Weak<dyn Driven>,
    background: Arc<Background>,
    bell: Arc<Bell>,
    fds: Vec<AsyncFd<OwnedFd>>,
    /// When the socket is to be looked at, at the latest.
    due: Option<Instant>,
    /// Rings at `due` or before. Deadlines mostly move on before they come.
    alarm: Option<Pin<Box<Sleep>>>,
    held_looks: u32,
    /// The socket has.
    ended: bool,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..TURNS_MAX {
            let socket = this.socket.upgrade();
            let Some(socket) = socket.filter(|socket| !socket.flags().is_closed()) else {
                this.ended = true;
                return Poll::Ready(());
            };
            let ready = this.bell.heard(task.waker()) | this.is_readable(task) | this.is_due(task);
            if !ready {
                return Poll::Pending;
            }
            this.drive(&*socket);
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Driver {
    /// Whether a descriptor became readable. That counts as seen: the turn that follows looks.
    fn is_readable(&mut self, task: &mut Context<'_>) -> bool {
        let mut any = false;
        for fd in &self.fds {
            while let Poll::Ready(ready) = fd.poll_read_ready(task) {
                any = true;
                // Fails when the runtime ends, and then so does this task.
                let Ok(mut ready) = ready else { break };
                ready.clear_ready();
            }
        }
        any
    }

    fn is_due(&mut self, task: &mut Context<'_>) -> bool {
        let Some(due) = self.due else { return false };
        if due <= Instant::now() {
            self.due = None;
            return true;
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due.into())));
        if alarm.deadline() > due.into() {
            alarm.as_mut().reset(due.into());
        }
        while alarm.as_mut().poll(task).is_ready() {
            if due <= Instant::now() {
                self.due = None;
                return true;
            }
            alarm.as_mut().reset(due.into());
        }
        false
    }

    fn drive(&mut self, socket: &dyn Driven) {
        // Before its turn, as in the background thread.
        socket.flags().rely_on_descriptors();
        match socket.turn(1) {
            Some(Next { within, fds }) => {
                self.held_looks = 0;
                self.due = within.map(|within| Instant::now() + within);
                self.watch(socket, fds);
            }
            None if socket.flags().leave_to_call() => {}
            None => self.look_again(),
        }
    }

    fn look_again(&mut self) {
        self.held_looks += 1;
        let pause = if self.held_looks < HELD_LOOKS { Duration::ZERO } else { HELD_PAUSE };
        self.due = Some(Instant::now() + pause);
    }

    fn watch(&mut self, socket: &dyn Driven, fds: usize) {
        if self.fds.len() == fds {
            return;
        }
        match socket.fds().and_then(|fds| fds.into_iter().map(watched).collect()) {
            Some(fds) => {
                self.fds = fds;
                self.bell.ring();
            }
            // A call has the socket, or the host no descriptors.
            None => self.due = Some(Instant::now() + HELD_PAUSE),
        }
    }
}

impl Drop for Driver {
    /// The runtime ends and the socket does not.
    fn drop(&mut self) {
        self.bell.gone.store(true, Ordering::SeqCst);
        let Some(socket) = self.socket.upgrade().filter(|_| !self.ended) else { return };
        socket.flags().attend_again();
        if let Err(error) = self.background.add(&socket) {
            tracing::error!(%error, "nobody drives a socket whose tokio runtime ended");
        }
        self.background.nudge(socket.flags());
    }
}
