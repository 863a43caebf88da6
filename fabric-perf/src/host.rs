//! The machine, and where threads run on it.

use std::fs;

use msg_patterns::Addr;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::Error;

/// What figures depend on besides the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Processors that this process may use.
    pub processors: usize,
    /// What `/proc/cpuinfo` calls them.
    pub processor: String,
    /// Release of the kernel.
    pub kernel: String,
}

impl Host {
    /// This host.
    pub fn here() -> Self {
        Self {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor().unwrap_or_else(|| "unknown".into()),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into()),
        }
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Keeps the calling thread, and threads that it starts afterwards, on one processor.
///
/// # Errors
/// `Host` when there is no such processor.
pub(crate) fn pin(processor: usize) -> Result<(), Error> {
    let refused = |why: &str| Error::Host(format!("cannot pin to processor {processor}: {why}"));
    if processor >= CpuSet::MAX_CPU {
        return Err(refused("its number is too large"));
    }
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).map_err(|error| refused(&error.to_string()))
}

/// Where to connect when the other side listens at `listening` and was reached at `reached`: who
/// listens on all interfaces does not know by which address it is known.
pub(crate) fn reachable(listening: &Addr, reached: &Addr) -> Addr {
    let everywhere = matches!(listening.host(), "*" | "0.0.0.0" | "::");
    match listening.port() {
        Some(port) if everywhere => reached.clone().with_port(port),
        _ => listening.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_processor() {
        assert!(Host::here().processors > 0);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        for number in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let text = pin(number).unwrap_err().to_string();
            assert!(text.contains(&number.to_string()), "{text}");
        }
    }

    #[test]
    fn who_listens_everywhere_is_reached_as_before() {
        let addr = |text: &str| text.parse::<Addr>().unwrap();
        let reached = addr("tcp://server:7000");
        assert_eq!(reachable(&addr("tcp://*:5"), &reached), addr("tcp://server:5"));
        assert_eq!(reachable(&addr("tcp://10.0.0.1:5"), &reached), addr("tcp://10.0.0.1:5"));
    }
}
