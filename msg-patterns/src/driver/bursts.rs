//! Calls that need not wait, and when what they send leaves.
//!
//! A plain call takes the lock, does its work and leaves. A lone message leaves at once; in a burst
//! messages gather, and only some calls look at the clock.

use std::time::Duration;

use super::{Guard, Shared, State};
use crate::Message;
use crate::engine::Core;
use crate::roles::Role;

/// A burst is flushed at most this often; in between its messages gather in a slot.
const FLUSH_INTERVAL: Duration = Duration::from_micros(20);
/// Flushes in a row of a sender before it also looks for what came in, such as credit.
const FLUSHES_PER_TURN: u32 = 4;
/// Sends in a row before a sender that flushes also looks for what came in.
const SENDS_PER_TURN: u32 = 128;
/// Sends of a burst for each look at the clock.
pub(crate) const SENDS_PER_LOOK: u32 = 16;
impl<R: Role> Shared<R> {
    /// Runs a send: a lone message leaves at once, a burst gathers. `None` when the socket is over.
    pub(crate) fn send<T>(&self, attempt: impl FnOnce(&mut Core<R>) -> T) -> Option<T> {
        let mut state = self.lock();
        if self.is_over(&state) {
            return None;
        }
        let value = attempt(&mut state.core);
        self.after_send(&mut state, 1);
        self.tell_deadline(&mut state);
        if std::mem::take(&mut state.core.net.progressed) {
            self.tell_sleepers(&mut state);
        } else if state.sleepers > 0 {
            self.update_signals(&mut state);
        }
        self.follow_up(&mut state);
        Some(value)
    }

    /// As `send`, when there is nothing to it but the lock; says whether it was done.
    #[inline]
    pub(crate) fn send_at_once(&self, attempt: impl FnOnce(&mut Core<R>) -> bool) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let done = !self.is_over(&state) && attempt(&mut state.core);
        if done {
            self.after_send(&mut state, 1);
            if state.sleepers > 0 {
                self.update_signals(&mut state);
            }
        }
        done
    }

    /// Sends as many of `messages` as go at once, with one lock; says how many.
    pub(crate) fn send_many_at_once(
        &self,
        messages: &[Message],
        mut attempt: impl FnMut(&mut Core<R>, &Message) -> bool,
    ) -> usize {
        let mut state = self.lock();
        if self.is_over(&state) {
            return 0;
        }
        let mut sent = 0;
        for message in messages {
            if !attempt(&mut state.core, message) {
                break;
            }
            sent += 1;
        }
        if sent > 0 {
            self.after_send(&mut state, sent as u32);
            if state.sleepers > 0 {
                self.update_signals(&mut state);
            }
        }
        sent
    }

    /// As `drive`, when there is nothing to it but the lock.
    #[inline(always)]
    pub(crate) fn take_at_once<T>(
        &self,
        attempt: impl FnOnce(&mut Core<R>) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.state.try_lock()?;
        if self.is_over(&state) {
            return None;
        }
        let found = attempt(&mut state.core)?;
        if state.core.net.has_unflushed() {
            self.flush_all(&mut state);
        }
        self.flags.count_activity(1);
        self.tell_sleepers(&mut state);
        self.flags.rouse(&self.background);
        Some(found)
    }

    pub(super) fn flush_all(&self, state: &mut Guard<'_, R>) {
        state.core.net.flush();
        self.flags.count_flush();
    }

    #[inline]
    pub(super) fn after_send(&self, state: &mut Guard<'_, R>, sent: u32) {
        self.flags.count_activity(sent);
        state.sends = state.sends.wrapping_add(sent);
        if !R::GATHERS {
            return self.flush(state);
        }
        let full = state.core.net.has_posted();
        if full || !self.gathers(state, sent) {
            self.look_at_clock(state, full);
        }
    }

    fn look_at_clock(&self, state: &mut Guard<'_, R>, full: bool) {
        let now = state.core.net.now();
        if full || now >= state.gather_until {
            self.flush(state);
            state.gather_from(now);
        } else if state.core.net.has_put_off() {
            self.put_off(state);
        }
    }

    fn put_off(&self, state: &mut Guard<'_, R>) {
        if self.flags.is_driven_by_one_thread() && !state.sent_by_task {
            // That thread may be this one, or not run at all.
            self.flush(state);
        } else {
            self.flags.defer(&self.background);
        }
    }

    /// In a burst whose tail is taken care of, only some messages look at the clock.
    fn gathers(&self, state: &Guard<'_, R>, sent: u32) -> bool {
        self.flags.is_deferred() && state.sends % SENDS_PER_LOOK >= sent
    }

    fn flush(&self, state: &mut Guard<'_, R>) {
        state.flushes += 1;
        // With nothing to flush, messages are waiting for credit that may have come.
        let unheard = state.flushes >= FLUSHES_PER_TURN
            || state.sends.wrapping_sub(state.heard_at) >= SENDS_PER_TURN;
        if unheard || !state.core.net.has_unflushed() {
            self.hear(state);
        } else {
            self.flush_all(state);
        }
    }

    /// Flushes and looks for what came in, such as credit.
    pub(super) fn hear(&self, state: &mut Guard<'_, R>) {
        state.turn();
        self.tell_sleepers(state);
        self.tell_deadline(state);
        self.flags.count_flush();
        self.follow_up(state);
    }
}

impl<R: Role> State<R> {
    /// A turn, which hears all that came in; says whether anything happened.
    pub(super) fn turn(&mut self) -> bool {
        (self.flushes, self.heard_at) = (0, self.sends);
        self.core.turn()
    }

    /// As `turn`, of one who has just taken a turn.
    pub(super) fn look(&mut self) -> bool {
        self.core.look()
    }

    /// Everything was flushed, from `began` until now. Where that takes long, as it does for many
    /// peers, the next flush waits as long, so that messages gather at least half of the time.
    pub(super) fn gather_from(&mut self, began: Duration) {
        let now = self.core.net.now();
        self.gather_until = now + FLUSH_INTERVAL.max(now.saturating_sub(began));
    }
}
