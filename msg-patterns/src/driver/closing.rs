//! Closing: by a call that waits for it, or going on whoever drives the socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::{Awaits, Guard, Shared, Ticket};
use crate::context::Lease;
use crate::engine::Core;
use crate::options::Linger;
use crate::roles::Role;

/// How long a close waits for a peer's goodbye after everything has left.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);

/// A close that no call waits for. It goes on although nobody holds the socket any more.
pub(super) struct Ending<R> {
    /// On the socket's clock, as the next.
    deadline: Option<Duration>,
    goodbye: Option<Duration>,
    _lease: Option<Lease>,
    /// Kept until the end.
    _socket: Arc<Shared<R>>,
}

impl<R: Role> Shared<R> {
    /// Closes the socket: waits up to its linger, then everything is free.
    pub(crate) fn close(&self, linger: Linger) {
        let mut state = self.lock();
        // Whoever would go on with it may be this very thread.
        let taken_over = state.ending.take();
        if state.core.net.closing && taken_over.is_none() {
            // Another handle closes it, or has closed it.
            while !state.closed {
                self.sleep(&mut state, None);
            }
            return;
        }
        self.linger(&mut state, linger);
        self.finish(&mut state);
        drop(state);
        drop(taken_over);
    }

    /// As `close`, for the last handle that was dropped: a close that goes on is not waited for.
    /// Nor is one in a runtime, whose tasks could not go on meanwhile.
    pub(crate) fn close_dropped(
        self: &Arc<Self>,
        linger: Linger,
        lease: impl FnOnce() -> Option<Lease>,
    ) {
        let mut state = self.lock();
        if state.ending.is_some() || state.closed {
            return;
        }
        if state.core.net.closing || !self.flags.is_driven_around_here() {
            drop(state);
            return self.close(linger);
        }
        self.begin_ending(&mut state, linger, lease());
        self.advance_ending(&mut state);
        self.tell_deadline(&mut state);
        self.background.nudge(&self.flags);
    }

    pub(crate) fn linger_setting(&self) -> Linger {
        self.lock().core.net.options.linger
    }

    fn finish(&self, state: &mut Guard<'_, R>) {
        state.closed = true;
        let core = &mut state.core;
        core.role.on_end(&mut core.net);
        core.net.finish();
        self.wakers.lock().clear();
        self.flags.closed.store(true, Ordering::SeqCst);
        self.tell_of_end(state);
        self.background.nudge(&self.flags);
    }

    fn linger(&self, state: &mut Guard<'_, R>, linger: Linger) {
        let until = |limit| Instant::now().checked_add(limit);
        let deadline = match linger {
            Linger::Forever => None,
            Linger::For(limit) => until(limit),
            Linger::No => return state.core.begin_close(),
        };
        state.core.begin_close();
        self.tell_of_end(state);
        let mut goodbye: Option<Instant> = None;
        while !state.core.advance_close() {
            if goodbye.is_none() && state.core.is_drained() {
                goodbye = until(GOODBYE_WAIT);
            }
            let end = [deadline, goodbye].into_iter().flatten().min();
            if end.is_some_and(|end| Instant::now() >= end) {
                return;
            }
            if state.driving {
                // Its driver sees that the socket is closing and leaves.
                MutexGuard::unlocked(state, std::thread::yield_now);
            } else {
                self.step(state, end);
            }
        }
    }

    /// Begins to close, if nobody has, and says whether the socket is closed. Once begun it goes on
    /// whether or not this is called again.
    pub(crate) fn poll_close(
        self: &Arc<Self>,
        ticket: &mut Ticket,
        lease: impl FnOnce() -> Option<Lease>,
        task: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.lock();
        if !state.core.net.closing {
            let linger = state.core.net.options.linger;
            self.begin_ending(&mut state, linger, lease());
        }
        self.advance_ending(&mut state);
        if state.closed {
            state.forget(ticket);
            return Poll::Ready(());
        }
        state.register(ticket, Awaits::End, task.waker());
        self.tell_deadline(&mut state);
        self.flags.drive_for_tasks(&self.background);
        self.follow_up(&mut state);
        Poll::Pending
    }

    fn begin_ending(
        self: &Arc<Self>,
        state: &mut Guard<'_, R>,
        linger: Linger,
        lease: Option<Lease>,
    ) {
        let now = state.core.net.now();
        let deadline = match linger {
            Linger::Forever => None,
            Linger::For(limit) => Some(now.saturating_add(limit)),
            Linger::No => Some(now),
        };
        state.core.begin_close();
        let (_lease, _socket) = (lease, self.clone());
        state.ending = Some(Ending { deadline, goodbye: None, _lease, _socket });
        self.tell_of_end(state);
    }

    /// Moves a close on that no call waits for.
    pub(super) fn advance_ending(&self, state: &mut Guard<'_, R>) {
        if state.ending.is_none() {
            return;
        }
        let done = state.core.advance_close();
        let now = state.core.net.now();
        let drained = state.core.is_drained();
        let Some(ending) = &mut state.ending else { return };
        if drained && ending.goodbye.is_none() {
            ending.goodbye = Some(now + GOODBYE_WAIT);
        }
        let end = [ending.deadline, ending.goodbye].into_iter().flatten().min();
        if done || end.is_some_and(|end| now >= end) {
            let ended = state.ending.take();
            self.finish(state);
            self.without_lock(state, || drop(ended));
        } else {
            state.core.net.note(end);
        }
    }
}

impl<R: Role> Core<R> {
    /// Whether everything accepted has left.
    fn is_drained(&self) -> bool {
        !self.role.is_pending() && self.net.peers.iter().all(|(_, peer)| peer.is_drained())
    }
}

impl crate::engine::Net {
    /// Ends everything: what is left is dropped and counted, domains close.
    fn finish(&mut self) {
        for peer in self.peer_ids() {
            self.drop_queue(peer);
            self.drop_inbox(peer);
        }
        self.close_ports();
        self.tell(&crate::MonitorEvent::Stopped);
        self.monitors.end();
    }
}
