//! Boots a guest and watches it until its command ends.

use std::thread;
use std::time::{Duration, Instant};

use super::console::{self, Report, Reports};
use super::machine::Machine;

/// Between two looks at the guest.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// An emulated machine on a busy host may be slow, but not this slow.
const BOOT_TIME_MAX: Duration = Duration::from_secs(240);
const SILENCE_MAX: Duration = Duration::from_secs(120);
const POWER_OFF_TIME_MAX: Duration = Duration::from_secs(20);

const TAIL_LINES: usize = 25;

/// Why there is no exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command still ran when its time was over.
    OutOfTime(Duration),
    /// The guest went wrong: what happened, and the end of its kernel's messages.
    Guest(String),
    /// There was no guest.
    Host(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Host(why)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfTime(limit) => {
                write!(f, "the command still ran after {} s: stopped", limit.as_secs())
            }
            Self::Guest(what) | Self::Host(what) => f.write_str(what),
        }
    }
}

/// Waits for the command's exit code.
///
/// # Errors
/// When the guest panics, hangs, cannot make its link, or is not done within `time_max`.
pub(super) fn watch(machine: &mut Machine, time_max: Duration) -> Result<u8, Failure> {
    let mut watch = Watch::new(machine, Instant::now(), time_max);
    loop {
        if let Some(verdict) = watch.look(machine, drop) {
            return verdict;
        }
        thread::sleep(LOOK);
    }
}

fn with_tail(failure: Failure, machine: &Machine) -> Failure {
    match failure {
        Failure::Guest(what) => {
            let tail = console::tail(&machine.console, TAIL_LINES);
            Failure::Guest(format!("{what}; its kernel's last messages:\n{tail}"))
        }
        other => other,
    }
}

/// What is known of the guest, and what follows from it.
#[derive(Debug)]
pub(super) struct Watch {
    reports: Reports,
    started: Instant,
    time_max: Duration,
    ready: bool,
    heard: Instant,
    outcome: Option<Result<u8, String>>,
}

impl Watch {
    /// Of a machine that was turned on `now`.
    pub(super) fn new(machine: &Machine, now: Instant, time_max: Duration) -> Self {
        Self::of(Reports::new(machine.reports.clone()), now, time_max)
    }

    fn of(reports: Reports, now: Instant, time_max: Duration) -> Self {
        Self { reports, started: now, time_max, ready: false, heard: now, outcome: None }
    }

    /// Whether the guest has come up.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Takes note of what the guest reports, passes it on to `tell`, and says how its command
    /// ended, if it did.
    pub(super) fn look(
        &mut self,
        machine: &mut Machine,
        mut tell: impl FnMut(Report),
    ) -> Option<Result<u8, Failure>> {
        let ended = match machine.ended() {
            Ok(ended) => ended,
            Err(why) => return Some(Err(Failure::Host(why))),
        };
        for report in self.reports.fresh() {
            self.on_report(report.clone(), Instant::now());
            tell(report);
        }
        if let Some(status) = ended {
            return Some(self.on_end(&status.to_string(), &machine.console));
        }
        let verdict = self.on_time(Instant::now())?;
        Some(verdict.map_err(|failure| with_tail(failure, machine)))
    }

    fn on_report(&mut self, report: Report, now: Instant) {
        self.heard = now;
        match report {
            Report::Ready => self.ready = true,
            Report::Beat | Report::Done { .. } => {}
            Report::Exit(code) => self.outcome = Some(Ok(code)),
            Report::Failed(why) => self.outcome = Some(Err(why)),
        }
    }

    /// The machine went off.
    fn on_end(&self, status: &str, console: &std::path::Path) -> Result<u8, Failure> {
        if let Some(outcome) = self.outcome.clone() {
            return outcome.map_err(Failure::Guest);
        }
        let tail = console::tail(console, TAIL_LINES);
        let what = match console::panic_in(console) {
            Some(line) => format!("the guest's kernel panicked: {line}"),
            None => format!("the guest went off ({status}) before its command had ended"),
        };
        Err(Failure::Guest(format!("{what}; its kernel's last messages:\n{tail}")))
    }

    /// The machine is still on.
    fn on_time(&mut self, now: Instant) -> Option<Result<u8, Failure>> {
        let silence = now.saturating_duration_since(self.heard);
        if let Some(outcome) = self.outcome.clone() {
            return (silence > POWER_OFF_TIME_MAX).then(|| outcome.map_err(Failure::Guest));
        }
        if now.saturating_duration_since(self.started) > self.time_max {
            return Some(Err(Failure::OutOfTime(self.time_max)));
        }
        let silence_max = if self.ready { SILENCE_MAX } else { BOOT_TIME_MAX };
        (silence > silence_max).then(|| Err(Failure::Guest(self.silent(silence))))
    }

    fn silent(&self, silence: Duration) -> String {
        let what = if self.ready { "hangs: no sign of life" } else { "does not come up: nothing" };
        format!("the guest {what} for {} s", silence.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1000);
    const NOWHERE: &str = "/no such directory/console.log";

    fn watch() -> (Watch, Instant) {
        let now = Instant::now();
        (Watch::of(Reports::new(NOWHERE.into()), now, LIMIT), now)
    }

    fn guest_failure(verdict: Option<Result<u8, Failure>>) -> String {
        match verdict {
            Some(Err(Failure::Guest(what))) => what,
            other => panic!("{other:?} is no failure of the guest"),
        }
    }

    #[test]
    fn the_exit_code_is_the_commands() {
        let (mut watch, now) = watch();
        watch.on_report(Report::Exit(7), now);
        assert_eq!(watch.on_time(now), None);
        assert_eq!(watch.on_end("exit status: 0", Path::new(NOWHERE)), Ok(7));
    }

    #[test]
    fn a_guest_that_does_not_go_off_still_gives_its_exit_code() {
        let (mut watch, now) = watch();
        watch.on_report(Report::Exit(7), now);
        assert_eq!(watch.on_time(now + POWER_OFF_TIME_MAX * 2), Some(Ok(7)));
    }

    #[test]
    fn beats_keep_a_guest_alive_and_silence_is_a_hang() {
        let (mut watch, now) = watch();
        watch.on_report(Report::Ready, now);
        watch.on_report(Report::Beat, now + SILENCE_MAX);
        assert_eq!(watch.on_time(now + SILENCE_MAX * 2), None);
        let verdict = watch.on_time(now + SILENCE_MAX * 3);
        assert!(guest_failure(verdict).contains("hangs"));
    }

    #[test]
    fn a_guest_may_take_longer_to_boot_than_to_beat() {
        let (mut watch, now) = watch();
        assert_eq!(watch.on_time(now + SILENCE_MAX * 3 / 2), None);
        let verdict = watch.on_time(now + BOOT_TIME_MAX * 2);
        assert!(guest_failure(verdict).contains("does not come up"));
    }

    #[test]
    fn a_command_that_takes_too_long_is_told_from_a_hang() {
        let (mut watch, now) = watch();
        let late = now + LIMIT * 2;
        watch.on_report(Report::Ready, now);
        watch.on_report(Report::Beat, late);
        assert_eq!(watch.on_time(late), Some(Err(Failure::OutOfTime(LIMIT))));
    }

    #[test]
    fn going_off_early_is_a_failure_of_the_guest() {
        let (watch, _) = watch();
        let verdict = watch.on_end("exit status: 0", Path::new(NOWHERE));
        assert!(guest_failure(Some(verdict)).contains("went off"));
    }

    #[test]
    fn a_link_that_cannot_be_made_is_named() {
        let (mut watch, now) = watch();
        watch.on_report(Report::Failed("no link".into()), now);
        let verdict = watch.on_end("exit status: 0", Path::new(NOWHERE));
        assert_eq!(verdict, Err(Failure::Guest("no link".into())));
    }
}
