//! Waiting: looking for a while, arming the descriptor, sleeping.

use std::time::{Duration, Instant};

use fabric_core::Error;

use crate::driver::Driver;
use crate::kernel::Sleeper;
use crate::limits::EVENTS_MAX;
use crate::status;
use crate::table::Phase;

impl Driver {
    /// Asks for the descriptor to become readable, and says whether something is there already.
    ///
    /// # Errors
    /// `Host` or `Provider` when the device cannot be asked.
    pub(crate) fn arm(&mut self) -> Result<bool, Error> {
        self.flush();
        if self.is_pending() || self.waker.take() {
            return Ok(true);
        }
        self.is_armed = true;
        self.queues.arm().map_err(|error| status::host_error(error, "asking for completions"))?;
        // What came before the device was asked makes no event.
        let before = self.queue_progress();
        Ok(before || self.is_pending())
    }

    fn queue_progress(&mut self) -> bool {
        let came = self.drain_completions(EVENTS_MAX);
        if came {
            self.resume_starved();
            self.restock();
            self.flush();
        }
        came
    }

    /// Sleeps until something happens, the waker was called, or the time is over.
    ///
    /// # Errors
    /// `Host` or `Provider` when the host cannot wait.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let start = Instant::now();
        let came = self.comes_soon(start, timeout) || self.arm()? || self.sleep(timeout)?;
        match came {
            true => self.patience.on_came(start.elapsed()),
            false => self.patience.on_nothing(),
        }
        Ok(())
    }

    /// Looks for completions as long as patience and `timeout` last.
    fn comes_soon(&mut self, start: Instant, timeout: Option<Duration>) -> bool {
        self.flush();
        let span = timeout.unwrap_or(Duration::MAX).min(self.patience.span());
        while !span.is_zero() && start.elapsed() < span {
            if self.is_pending() || self.queue_progress() || self.waker.take() {
                return true;
            }
        }
        false
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        let timeout = [timeout, self.time_left()].into_iter().flatten().min();
        let slept = self.sleeper.sleep(timeout);
        let ready = slept.map_err(|error| status::host_error(error, "waiting"))?;
        self.slept = ready.any().then_some(ready);
        self.waker.take();
        Ok(ready.any())
    }

    pub(crate) fn sleeper(&self) -> &Sleeper {
        &self.sleeper
    }

    /// Time until the domain's own next deadline.
    pub(crate) fn time_left(&mut self) -> Option<Duration> {
        let table = &self.table;
        let all = &mut self.deadlines;
        let is = |wanted: fn(&Phase) -> bool| move |ep| table.phase_of(ep).is_some_and(wanted);
        let next = [
            all.dials.next(is(|phase| matches!(phase, Phase::Dialing(_)))),
            all.accepts.next(is(|phase| matches!(phase, Phase::Accepting(_)))),
            all.lingers.next(is(|phase| matches!(phase, Phase::Open(ep) if !ep.is_usable()))),
            all.silences.next(is(|phase| matches!(phase, Phase::Open(ep) if ep.watch.is_some()))),
        ];
        let next = next.into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }
}
