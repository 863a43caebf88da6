//! What tasks do at a socket: look, and if there is nothing yet, wait without a thread.
//!
//! A poll has its whole effect at once or none at all. Nothing sleeps here; whoever drives the
//! socket, a call or the background thread, wakes the tasks.

use std::task::{Context, Poll, Waker};

use super::tasks::Wakers;
use super::{Awaits, Guard, Shared, State, Stop, Ticket, arm_all};
use crate::engine::Core;
use crate::roles::Role;

/// A task that always finds what it looks for lets others have their turn after so many times.
const FOUND_MAX: u32 = 128;

/// How what an attempt gave to the fabric leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// At once.
    Now,
    /// As with plain sends: a lone message at once, bursts together.
    WithOthers,
}

impl<R: Role> Shared<R> {
    /// Looks with `attempt`, once; the task waits if that gives nothing. With `ticket` it has to
    /// `forget` later, unless it was ready.
    pub(crate) fn poll<T>(
        &self,
        ticket: &mut Ticket,
        awaits: impl Fn() -> Awaits,
        leaves: Leaves,
        task: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Poll<Result<T, Stop>> {
        let mut state = self.lock();
        if self.is_over(&state) {
            state.forget(ticket);
            return Poll::Ready(Err(Stop::Terminated));
        }
        if state.is_to_yield() {
            drop(state);
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut found = attempt(&mut state.core);
        if found.is_none() && self.flush_and_hear(&mut state) {
            // What was heard may have ended the socket, but not what was found.
            found = attempt(&mut state.core);
        }
        if let Some(found) = found {
            state.forget(ticket);
            self.leave_with(&mut state, leaves);
            return Poll::Ready(Ok(found));
        }
        state.unyielded = 0;
        state.register(ticket, awaits(), task.waker());
        self.tell_deadline(&mut state);
        self.flags.drive_for_tasks(&self.background);
        Poll::Pending
    }

    /// The task does not wait any more.
    pub(crate) fn forget(&self, ticket: &mut Ticket) {
        if ticket.is_some() {
            let mut state = self.lock();
            state.forget(ticket);
            self.set_awaited(&state);
        }
    }

    /// Before the task waits: what an attempt or others put off leaves. Says whether that brought
    /// anything.
    fn flush_and_hear(&self, state: &mut Guard<'_, R>) -> bool {
        let core = &mut state.core;
        core.role.on_idle(&mut core.net);
        if !core.net.has_unflushed() {
            return false;
        }
        self.flush_all(state);
        let is_left = self.flags.is_watched() && arm_all(state).is_none();
        let progress = is_left && state.core.hear_one();
        if progress {
            self.tell_sleepers(state);
        }
        self.follow_up(state);
        progress
    }

    fn leave_with(&self, state: &mut Guard<'_, R>, leaves: Leaves) {
        match leaves {
            Leaves::WithOthers => {
                state.sent_by_task = true;
                self.after_send(state, 1);
                state.sent_by_task = false;
            }
            Leaves::Now if state.core.net.has_unflushed() => self.flush_all(state),
            Leaves::Now => {}
        }
        self.tell_deadline(state);
        if std::mem::take(&mut state.core.net.progressed) {
            self.tell_sleepers(state);
        } else if state.sleepers > 0 {
            self.update_signals(state);
        }
        self.follow_up(state);
    }
}

/// A socket, to whoever waits for its events and nothing else.
pub(crate) trait EventSource: Send + Sync {
    /// The task waits until monitors are told something.
    fn wait_for_event(&self, ticket: &mut Ticket, waker: &Waker);
    /// The task does not wait any more.
    fn forget(&self, ticket: &mut Ticket);
}

impl<R: Role> EventSource for Shared<R> {
    fn wait_for_event(&self, ticket: &mut Ticket, waker: &Waker) {
        let mut state = self.lock();
        let awaits = Awaits::Event(state.core.net.monitors.told());
        state.register(ticket, awaits, waker);
        self.flags.drive_for_tasks(&self.background);
    }

    fn forget(&self, ticket: &mut Ticket) {
        Self::forget(self, ticket);
    }
}

impl<R: Role> State<R> {
    /// The wakers of tasks whose wait may be over.
    pub(super) fn due_wakers(&mut self) -> Wakers {
        let State { core, tasks, sleepers, .. } = self;
        let wakers = tasks.take(|awaits| match awaits {
            Awaits::Anything => true,
            Awaits::Reply(id) => core.role.has_result(id),
            Awaits::Event(told) => core.net.monitors.told() != told,
            Awaits::End => false,
        });
        *sleepers -= wakers.len();
        wakers
    }

    pub(super) fn take_wakers(&mut self, is_over: impl FnMut(Awaits) -> bool) -> Wakers {
        let wakers = self.tasks.take(is_over);
        self.sleepers -= wakers.len();
        wakers
    }

    pub(super) fn register(&mut self, ticket: &mut Ticket, awaits: Awaits, waker: &Waker) {
        let before = self.tasks.asleep();
        self.tasks.register(ticket, awaits, waker);
        self.sleepers += self.tasks.asleep() - before;
    }

    pub(super) fn forget(&mut self, ticket: &mut Ticket) {
        let before = self.tasks.asleep();
        self.tasks.forget(ticket);
        self.sleepers -= before - self.tasks.asleep();
    }

    /// Whether others have to have their turn first.
    fn is_to_yield(&mut self) -> bool {
        self.unyielded += 1;
        let yields = self.unyielded > FOUND_MAX;
        if yields {
            self.unyielded = 0;
        }
        yields
    }
}

#[cfg(test)]
impl<R: Role> Shared<R> {
    /// How many tasks have a place here.
    pub(crate) fn tasks(&self) -> usize {
        self.lock().tasks.len()
    }
}
