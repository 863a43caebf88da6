//! When a domain may sleep, and for how long.

use std::time::{Duration, Instant};

use fabric_core::Error;

use crate::driver::Driver;
use crate::limits::RETRY_AFTER;
use crate::status;
use crate::sys::Kind;
use crate::table::Phase;

impl Driver {
    /// Whether `turn` has something to do without asking anybody.
    fn is_pending(&self) -> bool {
        !self.events.is_empty()
            || self.table.dirty_len() > 0
            || (self.table.starved_len() > 0 && !self.recvs.is_empty())
    }

    /// Asks for the descriptor to become readable, and says whether something is there already.
    ///
    /// # Errors
    /// `Host` or `Provider` when the provider or the host cannot be asked.
    pub(crate) fn arm(&mut self) -> Result<bool, Error> {
        let is_ready = self.prepare_to_sleep()? || self.may_come_unannounced();
        let nap = self.nap().filter(|_| !is_ready);
        self.sleeper
            .ring_after(nap)
            .map_err(|error| status::host_error(error.into(), "setting a timer"))?;
        Ok(is_ready)
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, Error> {
        self.flush();
        if self.is_pending() || self.waker.take() {
            return Ok(true);
        }
        self.is_armed = true;
        if self.kind == Kind::Datagram {
            return Ok(false);
        }
        let may_sleep = self.wires.opened.may_sleep();
        may_sleep.map(|may| !may).map_err(|code| status::host_error(code, "preparing to wait"))
    }

    /// Whether something may come in the next moment that no nudge announces.
    fn may_come_unannounced(&self) -> bool {
        self.is_local && !self.table.is_empty() && !self.pace.is_quiet(Instant::now())
    }

    /// How long the descriptor may stay silent though something has come or can be tried again.
    fn nap(&self) -> Option<Duration> {
        let now = Instant::now();
        // Providers of one host do nothing behind our back: a nudge tells of everything else.
        let is_deaf = !self.has_fds && !self.table.is_empty();
        let may_sleep = self.is_local && self.pace.is_quiet(now) && self.is_quiet();
        let pace = (is_deaf && !may_sleep).then(|| self.pace.nap(now));
        let is_waiting = self.table.has_short() || !self.graves.is_empty();
        let retry = is_waiting.then_some(RETRY_AFTER);
        pace.into_iter().chain(retry).min()
    }

    /// Sleeps until something happens, the waker was called, or the time is over.
    ///
    /// # Errors
    /// `Host` or `Provider` when the host cannot wait.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        if self.prepare_to_sleep()? {
            return Ok(());
        }
        let failed = |error: std::io::Error| status::host_error(error.into(), "waiting");
        self.sleeper.ring_after(None).map_err(failed)?;
        let timeout = [timeout, self.time_left(), self.nap()].into_iter().flatten().min();
        self.sleeper.sleep(timeout).map_err(failed)?;
        self.waker.take();
        Ok(())
    }

    /// Time until the domain's own next deadline.
    pub(crate) fn time_left(&mut self) -> Option<Duration> {
        let next = self.next_deadline()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// The domain's own next deadline. Those that do not matter any more are forgotten.
    pub(crate) fn next_deadline(&mut self) -> Option<Instant> {
        let table = &self.table;
        let all = &mut self.deadlines;
        let is = |wanted: fn(&Phase) -> bool| move |ep| table.phase_of(ep).is_some_and(wanted);
        let is_ending = |phase: &Phase| match phase {
            Phase::Open(endpoint) => !endpoint.is_usable(),
            phase => matches!(phase, Phase::Parting(_)),
        };
        let next = [
            all.dials.next(is(|phase| matches!(phase, Phase::Dialing(_)))),
            all.accepts.next(is(|phase| matches!(phase, Phase::Accepting(_)))),
            all.lingers.next(is(is_ending)),
        ];
        next.into_iter().flatten().min()
    }
}
