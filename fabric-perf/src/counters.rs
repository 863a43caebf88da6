//! What the kernel counts for us: system calls and instructions.

use std::fs;
use std::io;

use perf_event::events::{Hardware, Tracepoint};
use perf_event::{Builder, Counter};

/// Where tracefs may be mounted (the kernel's Documentation/trace/ftrace.rst).
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracepoint of every system call.
const SYS_ENTER: &str = "events/raw_syscalls/sys_enter/id";

/// Counters of the calling thread and the threads that it starts afterwards.
#[derive(Debug)]
pub(crate) struct Counters {
    /// System calls, or why they are not counted.
    pub(crate) syscalls: Result<Counter, String>,
    /// Instructions, or why they are not counted.
    pub(crate) instructions: Result<Counter, String>,
}

impl Counters {
    /// Counts from now on.
    pub(crate) fn open() -> Self {
        Self { syscalls: syscalls(), instructions: instructions() }
    }
}

/// What a counter says now; what cannot be read counts as nothing.
pub(crate) fn read(counter: &mut Result<Counter, String>) -> Option<u64> {
    counter.as_mut().ok()?.read().ok()
}

fn syscalls() -> Result<Counter, String> {
    let id = tracepoint_id()?;
    // Tracepoints stand in the kernel: leaving it out would count none.
    let mut builder = Builder::new(Tracepoint::with_id(id));
    start(builder.include_kernel()).map_err(|error| format!("perf_event_open: {error}"))
}

fn tracepoint_id() -> Result<u64, String> {
    let read = |dir: &&str| fs::read_to_string(format!("{dir}/{SYS_ENTER}")).ok();
    let text = TRACEFS.iter().find_map(read);
    let text = text.ok_or("tracefs is not mounted or not readable (needs root)")?;
    text.trim().parse().map_err(|_| format!("tracefs says {text:?}"))
}

fn instructions() -> Result<Counter, String> {
    let mut builder = Builder::new(Hardware::INSTRUCTIONS);
    let counter = start(builder.include_kernel());
    counter.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "this machine has no counter for them".into(),
        _ => format!("perf_event_open: {error}"),
    })
}

fn start(builder: &mut Builder<'_>) -> io::Result<Counter> {
    let mut counter = builder.inherit(true).build()?;
    counter.enable()?;
    Ok(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the host allows it, the count is right; elsewhere there is a reason.
    #[test]
    fn system_calls_are_counted_or_the_reason_is_said() {
        let mut counters = Counters::open();
        let Some(before) = read(&mut counters.syscalls) else {
            return assert!(!counters.syscalls.unwrap_err().is_empty());
        };
        for _ in 0..1000 {
            let _ = rustix::process::getppid();
        }
        let counted = read(&mut counters.syscalls).unwrap() - before;
        assert!((1000..1100).contains(&counted), "{counted}");
    }
}
