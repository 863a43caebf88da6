//! What a side pays for its messages.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::counters::{Counters, read};

/// What one side pays for each message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time of all threads, in seconds for a million messages (or microseconds for one).
    pub cpu_seconds_per_million: f64,
    /// Context switches of all threads, voluntary or not.
    pub switches_per_message: f64,
    /// System calls of all threads, from a run of its own since counting slows; `null` where they
    /// cannot be counted.
    pub syscalls_per_message: Option<f64>,
    /// Instructions in user and kernel mode; `null` where they cannot be counted.
    pub instructions_per_message: Option<f64>,
}

/// What one side used in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) switches: u64,
    pub(crate) syscalls: Option<u64>,
    pub(crate) instructions: Option<u64>,
    /// What was to be counted and could not be, with the reason.
    pub(crate) not_counted: Vec<String>,
}

/// Measures what this process uses. Make it before the sockets: it counts for the calling thread
/// and those that come after it.
#[derive(Debug)]
pub(crate) struct Meter {
    counters: Option<Counters>,
    began: Sample,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    cpu: Duration,
    switches: u64,
    syscalls: Option<u64>,
    instructions: Option<u64>,
}

impl Meter {
    /// A meter that has begun; `counted` has the kernel count, too.
    pub(crate) fn new(counted: bool) -> Self {
        let mut counters = counted.then(Counters::open);
        let began = Sample::take(&mut counters);
        Self { counters, began }
    }

    /// Begins again from here.
    pub(crate) fn begin(&mut self) {
        self.began = Sample::take(&mut self.counters);
    }

    /// What was used since.
    pub(crate) fn end(&mut self) -> Usage {
        let ended = Sample::take(&mut self.counters);
        let between = |end: Option<u64>, begin: Option<u64>| Some(end?.saturating_sub(begin?));
        Usage {
            seconds: ended.at.duration_since(self.began.at).as_secs_f64(),
            cpu_seconds: ended.cpu.saturating_sub(self.began.cpu).as_secs_f64(),
            // Threads that ended meanwhile take their counts along.
            switches: ended.switches.saturating_sub(self.began.switches),
            syscalls: between(ended.syscalls, self.began.syscalls),
            instructions: between(ended.instructions, self.began.instructions),
            not_counted: self.counters.as_ref().map(not_counted).unwrap_or_default(),
        }
    }
}

impl Sample {
    fn take(counters: &mut Option<Counters>) -> Self {
        let (syscalls, instructions) = match counters {
            Some(counters) => (read(&mut counters.syscalls), read(&mut counters.instructions)),
            None => (None, None),
        };
        let (cpu, switches) = (cpu_time(), context_switches());
        Self { at: Instant::now(), cpu, switches, syscalls, instructions }
    }
}

fn not_counted(counters: &Counters) -> Vec<String> {
    let named = [("system calls", &counters.syscalls), ("instructions", &counters.instructions)];
    let missing = named.iter().filter_map(|(name, counter)| Some((name, counter.as_ref().err()?)));
    missing.map(|(name, why)| format!("{name}: {why}")).collect()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Voluntary and involuntary context switches of all threads of this process (proc(5)).
fn context_switches() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let statuses = tasks.flatten().map(|task| fs::read_to_string(task.path().join("status")));
    statuses.flatten().map(|status| switches_in(&status)).sum()
}

fn switches_in(status: &str) -> u64 {
    let lines = status.lines().filter(|line| line.contains("ctxt_switches:"));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

impl Cost {
    /// From a run of `messages`, and one in which the kernel counted, if there was one.
    pub(crate) fn of(used: &Usage, messages: u64, counted: Option<(&Usage, u64)>) -> Self {
        let each = |amount: f64, messages: u64| amount / messages.max(1) as f64;
        let share = |pick: fn(&Usage) -> Option<u64>| {
            let (usage, messages) = counted?;
            Some(each(pick(usage)? as f64, messages))
        };
        Self {
            cpu_seconds_per_million: each(used.cpu_seconds * 1e6, messages),
            switches_per_message: each(used.switches as f64, messages),
            syscalls_per_message: share(|usage| usage.syscalls),
            instructions_per_message: share(|usage| usage.instructions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_processor_time() {
        let mut meter = Meter::new(false);
        let start = cpu_time();
        while cpu_time() - start < Duration::from_millis(20) {
            std::hint::black_box(0);
        }
        let used = meter.end();
        assert!(used.cpu_seconds >= 0.02 && used.seconds > 0.0, "{used:?}");
        assert_eq!((used.syscalls, used.not_counted), (None, vec![]));
    }

    #[test]
    fn sleeping_switches_context() {
        let mut meter = Meter::new(false);
        for _ in 0..20 {
            std::thread::sleep(Duration::from_micros(100));
        }
        assert!(meter.end().switches >= 20);
    }

    #[test]
    fn costs_are_shares_of_each_message() {
        let used = Usage { cpu_seconds: 2.0, switches: 10, ..Usage::default() };
        let counted = Usage { syscalls: Some(30), ..Usage::default() };
        let cost = Cost::of(&used, 1000, Some((&counted, 10)));
        assert_eq!((cost.cpu_seconds_per_million, cost.switches_per_message), (2000.0, 0.01));
        assert_eq!((cost.syscalls_per_message, cost.instructions_per_message), (Some(3.0), None));
    }
}
