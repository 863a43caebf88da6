//! Who drives a socket: the caller's own thread, one at a time.
//!
//! A call that has to wait becomes the driver: it sleeps in the fabric with the lock held. Other
//! threads that want the lock wake it; threads that also have to wait sleep until the driver made
//! progress or leaves. When no call drives, the context's background thread does.

mod bursts;
mod closing;
mod polls;
mod signals;
mod tasks;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fabric_core::{Armed, Waker};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;
use crate::background::{Background, Driven, Flags, Next};
use crate::engine::Core;
use crate::roles::Role;

pub(crate) use bursts::SENDS_PER_LOOK;
pub(crate) use polls::{EventSource, Leaves};
pub(crate) use signals::{SignalSource, Tells};
pub(crate) use tasks::{Awaits, Ticket};

use closing::Ending;
use signals::Signals;
use tasks::{Tasks, Wakers};

/// Looks for what came in, for each turn of a driver that polls: turns look at the clock.
const LOOKS_PER_TURN: u32 = 8;

/// How long a call waits. A call that need not wait never looks at the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    Endless,
    For(Duration),
    Until(Instant),
}

impl Patience {
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        deadline.map_or(Self::Endless, Self::Until)
    }

    /// The end of it, from now on if the call has just begun to wait.
    ///
    /// # Errors
    /// `TimedOut` when it is over.
    fn deadline(&mut self) -> Result<Option<Instant>, Stop> {
        if matches!(self, Self::Endless) {
            return Ok(None);
        }
        let now = Instant::now();
        if let Self::For(timeout) = *self {
            *self = Self::until(now.checked_add(timeout));
        }
        match *self {
            Self::Until(deadline) if deadline <= now => Err(Stop::TimedOut),
            Self::Until(deadline) => Ok(Some(deadline)),
            Self::Endless | Self::For(_) => Ok(None),
        }
    }
}

/// Why a call ended without what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    TimedOut,
    Terminated,
}

/// One socket, shared by its handles and the background thread.
pub(crate) struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
    contenders: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
    flags: Flags,
    background: Arc<Background>,
}

pub(crate) struct State<R> {
    pub(crate) core: Core<R>,
    driving: bool,
    /// Threads and tasks that sleep until something happens.
    sleepers: usize,
    tasks: Tasks,
    /// Each counts as a sleeper, too.
    signals: Signals,
    /// Polls in a row that found what they looked for.
    unyielded: u32,
    /// What is sent comes from a task, which lets others have their turn before it waits.
    sent_by_task: bool,
    /// Until when messages gather, on the socket's clock.
    gather_until: Duration,
    flushes: u32,
    sends: u32,
    /// Sends when it was last looked for what came in.
    heard_at: u32,
    /// The next deadline as the background thread last saw it.
    due_known: Option<Duration>,
    /// A close that goes on whoever drives the socket.
    ending: Option<Ending<R>>,
    closed: bool,
}

type Guard<'a, R> = MutexGuard<'a, State<R>>;

impl<R: Role> Shared<R> {
    pub(crate) fn new(core: Core<R>, background: Arc<Background>) -> Self {
        let state = State {
            core,
            driving: false,
            sleepers: 0,
            tasks: Tasks::default(),
            signals: Signals::default(),
            unyielded: 0,
            sent_by_task: false,
            gather_until: Duration::ZERO,
            flushes: 0,
            sends: 0,
            heard_at: 0,
            due_known: None,
            ending: None,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            contenders: AtomicUsize::new(0),
            wakers: Mutex::new(Vec::new()),
            flags: Flags::new(background.new_key()),
            background,
        }
    }

    fn lock(&self) -> Guard<'_, R> {
        if let Some(state) = self.state.try_lock() {
            return state;
        }
        self.contenders.fetch_add(1, Ordering::SeqCst);
        self.wake();
        let state = self.state.lock();
        self.contenders.fetch_sub(1, Ordering::SeqCst);
        state
    }

    fn wake(&self) {
        for waker in self.wakers.lock().iter() {
            waker.wake();
        }
    }

    /// Runs a command that does not wait, and sends what came of it.
    pub(crate) fn command<T>(&self, command: impl FnOnce(&mut Core<R>) -> T) -> Result<T, Error> {
        let mut state = self.lock();
        if self.is_over(&state) {
            return Err(Error::terminated());
        }
        state.core.net.revoke_allowances();
        let value = command(&mut state.core);
        state.core.net.flush();
        self.learn_ports(&state);
        // It may have made room, or ended what somebody waits for.
        state.core.net.progressed = true;
        self.leave(&mut state);
        self.background.nudge(&self.flags);
        Ok(value)
    }

    #[inline]
    fn is_over(&self, state: &State<R>) -> bool {
        state.closed || state.core.net.closing || self.flags.terminated.load(Ordering::Relaxed)
    }

    /// Runs `attempt` until it gives something, driving the socket meanwhile.
    pub(crate) fn drive<T>(
        &self,
        patience: &mut Patience,
        mut attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Result<T, Stop> {
        let mut state = self.lock();
        let found = loop {
            if self.is_over(&state) {
                break Err(Stop::Terminated);
            }
            if let Some(value) = attempt(&mut state.core) {
                break Ok(value);
            }
            let deadline = match patience.deadline() {
                Ok(deadline) => deadline,
                Err(stop) => break Err(stop),
            };
            if state.driving {
                self.sleep(&mut state, deadline);
            } else {
                state.driving = true;
                self.step(&mut state, deadline);
                state.driving = false;
            }
        };
        if state.core.net.has_unflushed() {
            self.flush_all(&mut state);
        }
        self.leave(&mut state);
        found
    }

    /// Sleeps until the driver made progress or leaves.
    fn sleep(&self, state: &mut Guard<'_, R>, deadline: Option<Instant>) {
        state.sleepers += 1;
        match deadline {
            Some(deadline) => drop(self.changed.wait_until(state, deadline)),
            None => self.changed.wait(state),
        }
        state.sleepers -= 1;
    }

    #[inline]
    fn tell_sleepers(&self, state: &mut Guard<'_, R>) {
        if state.sleepers > 0 {
            self.tell(state);
        }
    }

    #[cold]
    fn tell(&self, state: &mut Guard<'_, R>) {
        self.changed.notify_all();
        self.update_signals(state);
        let wakers = state.due_wakers();
        self.wake_tasks(state, wakers);
    }

    /// Tells all threads and tasks, whatever they wait for: the socket ends.
    fn tell_of_end(&self, state: &mut Guard<'_, R>) {
        self.changed.notify_all();
        self.update_signals(state);
        let wakers = state.take_wakers(|_| true);
        self.wake_tasks(state, wakers);
    }

    /// Without the lock: wakers are foreign code, which may drop whatever the task holds.
    fn wake_tasks(&self, state: &mut Guard<'_, R>, wakers: Wakers) {
        if !wakers.is_empty() {
            self.set_awaited(state);
            self.without_lock(state, || wakers.into_iter().for_each(std::task::Waker::wake));
        }
    }

    /// Gives the lock away for as long as `run` takes. Nobody falls asleep with it meanwhile.
    fn without_lock(&self, state: &mut Guard<'_, R>, run: impl FnOnce()) {
        self.contenders.fetch_add(1, Ordering::SeqCst);
        MutexGuard::unlocked(state, run);
        self.contenders.fetch_sub(1, Ordering::SeqCst);
    }

    /// The background thread may sleep until the deadline that it knows: an earlier one is news,
    /// to be told once the activity was counted.
    fn tell_deadline(&self, state: &mut Guard<'_, R>) {
        let due = state.core.next_deadline();
        if due.is_some_and(|due| state.due_known.is_none_or(|known| due < known)) {
            state.due_known = due;
            self.background.nudge(&self.flags);
        }
    }

    /// The thread stops driving: somebody else may have to.
    fn leave(&self, state: &mut Guard<'_, R>) {
        self.flags.count_activity(1);
        self.tell_deadline(state);
        if state.sleepers > 0 {
            self.tell_of_leaving(state);
        }
        self.follow_up(state);
    }

    /// A thread has to drive now; tasks need to know only what happened.
    #[cold]
    fn tell_of_leaving(&self, state: &mut Guard<'_, R>) {
        if std::mem::take(&mut state.core.net.progressed) {
            self.tell(state);
        } else {
            self.changed.notify_all();
            self.update_signals(state);
        }
    }

    fn set_awaited(&self, state: &State<R>) {
        self.flags.set_awaited(state.tasks.asleep() > 0 || !state.signals.is_empty());
    }

    /// What a call left undone that the descriptors will not tell of is told the background thread,
    /// if it relies on them.
    #[inline]
    fn follow_up(&self, state: &mut Guard<'_, R>) {
        if self.flags.is_left_alone() {
            self.tell_rest(state);
        }
    }

    #[cold]
    fn tell_rest(&self, state: &mut Guard<'_, R>) {
        // A call that looks for what came in may use up what made a descriptor ready.
        let told = self.flags.is_watched() && arm_all(state) == Some(None);
        if !told {
            self.flags.attend(&self.background);
        }
    }

    /// One step of the driver: sleep until something happens, then take a turn.
    fn step(&self, state: &mut Guard<'_, R>, deadline: Option<Instant>) {
        self.flags.count_activity(1);
        let State { core, .. } = &mut **state;
        core.role.on_idle(&mut core.net);
        core.net.flush();
        self.flags.count_flush();
        if self.contenders.load(Ordering::SeqCst) > 0 {
            MutexGuard::unlocked(state, std::thread::yield_now);
            return;
        }
        let progress = self.spin(state, deadline) || {
            self.wait(state, deadline);
            state.turn()
        };
        if progress {
            self.tell_sleepers(state);
            // Nobody but the driver may wait for the lock like this: who gets it could drive.
            MutexGuard::bump(state);
        }
    }

    /// Polls for the busy-poll time before sleeping; says whether anything happened.
    fn spin(&self, state: &mut Guard<'_, R>, deadline: Option<Instant>) -> bool {
        let budget = state.core.net.options.busy_poll;
        if budget.is_zero() {
            return false;
        }
        let mut end = None;
        loop {
            if state.turn() {
                return true;
            }
            for _ in 0..LOOKS_PER_TURN {
                if self.contenders.load(Ordering::Relaxed) > 0 {
                    return false;
                }
                if state.look() {
                    return true;
                }
            }
            let now = Instant::now();
            let own = *end.get_or_insert(now + budget);
            if now >= deadline.map_or(own, |deadline| deadline.min(own)) {
                return false;
            }
        }
    }

    fn wait(&self, state: &mut Guard<'_, R>, deadline: Option<Instant>) {
        let call = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let due = state.core.next_deadline().map(|at| at.saturating_sub(state.core.net.now()));
        let timeout = [call, due].into_iter().flatten().min();
        self.flags.blocked.store(true, Ordering::Relaxed);
        match &mut state.core.net.ports[..] {
            [] => match timeout {
                Some(timeout) => drop(self.changed.wait_for(state, timeout)),
                None => self.changed.wait(state),
            },
            [port] => log_failure(port.domain.wait(timeout)),
            _ => wait_for_any(state, timeout),
        }
        self.flags.blocked.store(false, Ordering::Relaxed);
    }

    /// New ports can wake the driver too.
    fn learn_ports(&self, state: &State<R>) {
        let ports = &state.core.net.ports;
        let mut wakers = self.wakers.lock();
        if wakers.len() < ports.len() {
            *wakers = ports.iter().map(|port| port.domain.waker()).collect();
            self.changed.notify_all();
        }
    }

    /// Looks at the socket without sending anything.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Core<R>) -> T) -> T {
        look(&mut self.lock().core)
    }
}

impl<R: Role> Driven for Shared<R> {
    fn flags(&self) -> &Flags {
        &self.flags
    }

    fn flush_tail(&self) {
        if let Some(mut state) = self.state.try_lock() {
            let now = state.core.net.now();
            if state.core.net.has_unflushed() {
                self.flush_all(&mut state);
            } else {
                self.hear(&mut state);
            }
            state.gather_from(now);
        }
    }

    fn turn(&self, turns_max: usize) -> Option<Next> {
        let mut state = self.state.try_lock()?;
        if state.closed {
            return Some(Next::default());
        }
        for _ in 0..turns_max {
            let State { core, .. } = &mut *state;
            core.role.on_idle(&mut core.net);
            if !core.turn() {
                break;
            }
        }
        self.flags.count_flush();
        self.tell_sleepers(&mut state);
        self.advance_ending(&mut state);
        state.due_known = state.core.next_deadline();
        let due = state.due_known.map(|at| at.saturating_sub(state.core.net.now()));
        let within = match arm_all(&mut state) {
            Some(armed) => [due, armed].into_iter().flatten().min(),
            None => Some(Duration::ZERO),
        };
        Some(Next { within, fds: state.core.net.ports.len() })
    }

    fn fds(&self) -> Option<Vec<OwnedFd>> {
        let state = self.state.try_lock()?;
        let owned = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().ok();
        state.core.net.ports.iter().map(|port| owned(port.domain.wait_fd())).collect()
    }

    fn terminate(&self) {
        self.flags.terminated.store(true, Ordering::SeqCst);
        self.tell_of_end(&mut self.lock());
    }
}

fn log_failure(waited: Result<(), fabric_core::Error>) {
    if let Err(error) = waited {
        tracing::error!(%error, "the fabric cannot wait");
        // Without a way to sleep, at least do not take the whole core.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Arms all ports; `None` if one has something already, else its own nearest deadline.
fn arm_all<R: Role>(state: &mut State<R>) -> Option<Option<Duration>> {
    let mut nearest = None;
    for port in &mut state.core.net.ports {
        match port.domain.arm() {
            Armed::Ready => return None,
            Armed::Idle(within) => nearest = [nearest, within].into_iter().flatten().min(),
        }
    }
    Some(nearest)
}

/// Sleeps on several ports at once.
fn wait_for_any<R: Role>(state: &mut State<R>, timeout: Option<Duration>) {
    let Some(nearest) = arm_all(state) else { return };
    let timeout = [timeout, nearest].into_iter().flatten().min();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let ports = &state.core.net.ports;
    let mut fds: Vec<PollFd<'_>> = ports
        .iter()
        .map(|port| PollFd::from_borrowed_fd(port.domain.wait_fd(), PollFlags::IN))
        .collect();
    // An interrupted sleep ends early, which is in order.
    let _ = poll(&mut fds, timeout.as_ref());
}
