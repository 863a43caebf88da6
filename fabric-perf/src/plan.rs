//! What is to be measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Which measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// Round trips.
    Lat,
    /// A one-way stream.
    Bw,
    /// One publisher and many subscribers.
    Fanout,
    /// Many peers that are silent, and one that is not.
    Idle,
}

/// What is measured: how much of this project lies between the program and the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Sockets: REQ/REP, PUSH/PULL and PUB/SUB.
    Socket,
    /// REQ/REP by tasks of tokio's runtime of one thread; with the feature `tokio`.
    Tasks,
    /// The bare `Domain` of the fabric.
    Domain,
}

/// What a domain does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sends to a posted receive.
    Send,
    /// Reads memory of the other side.
    Read,
    /// Writes memory of the other side.
    Write,
    /// Compares and swaps a 64-bit word of the other side.
    Cas,
    /// Adds to a 64-bit word of the other side.
    Add,
}

/// What a publisher does with a message for a subscriber that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// Drops it for that subscriber and counts it.
    Drop,
    /// Waits for room.
    Block,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many messages, a tenth more to warm up.
    Count(u64),
    /// About so long, from half as long on: shorter runs before say how many messages that is.
    Time(Duration),
}

/// How both sides run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Sockets or the bare domain.
    pub level: Level,
    /// What a domain does.
    pub op: Op,
    /// Poll without ever sleeping.
    pub busy_poll: bool,
    /// The processor of this side and of the serving side; without it, wherever the host puts them.
    pub pin: Option<(usize, usize)>,
    /// Messages queued for each peer, on either side.
    pub hwm: usize,
    /// Messages handed over and taken in one call, where streams do that.
    pub batch: usize,
    /// What a publisher does at that mark.
    pub when_full: WhenFull,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            level: Level::Socket,
            op: Op::Send,
            busy_poll: false,
            pin: None,
            hwm: 1000,
            batch: 1,
            when_full: WhenFull::Block,
        }
    }
}

/// What is measured, how much of it, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which measurement.
    pub test: Test,
    /// Sizes of messages in bytes; each gives rows of its own.
    pub sizes: Vec<usize>,
    /// Numbers of subscribers, or of silent peers; each gives a row of its own. Ignored by the
    /// measurements between two.
    pub peers: Vec<usize>,
    /// How much.
    pub amount: Amount,
    /// How.
    pub settings: Settings,
}

impl Plan {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// `Plan` with what does not go together.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.into()));
        let (bare, op) = (self.settings.level == Level::Domain, self.settings.op);
        match self.test {
            Test::Fanout | Test::Idle if bare => {
                return refuse("fanout and idle measure sockets: leave out --level domain");
            }
            test if test != Test::Lat && self.settings.level == Level::Tasks => {
                return refuse("tasks measure round trips: use `lat`, or leave out --level tasks");
            }
            _ if !bare && op != Op::Send => {
                return refuse("sockets only send: say --level domain with --op");
            }
            _ => {}
        }
        if matches!(op, Op::Cas | Op::Add) && self.sizes.iter().any(|&size| size != 8) {
            return refuse("atomics have 8 bytes: leave out --size");
        }
        if self.settings.batch == 0 || (self.settings.batch > 1 && bare) {
            return refuse("--batch is a number from 1 on, and for sockets only");
        }
        if self.sizes.is_empty() || self.peers.contains(&0) || self.amount == Amount::Count(0) {
            return refuse("sizes, peers and the count must be at least 1");
        }
        Ok(())
    }
}

/// One run, as the serving side is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) test: Test,
    pub(crate) settings: Settings,
    pub(crate) size: usize,
    /// Messages before the clock runs.
    pub(crate) warm: u64,
    /// Messages while it runs.
    pub(crate) count: u64,
    /// Subscribers, or silent peers.
    pub(crate) peers: usize,
    /// Whether system calls and instructions are counted, which slows the run.
    pub(crate) counted: bool,
}

impl Task {
    /// A run of `count` messages, and a tenth more to warm up.
    pub(crate) fn new(plan: &Plan, size: usize, peers: usize, count: u64) -> Self {
        let (test, settings) = (plan.test, plan.settings);
        Self { test, settings, size, warm: count / 10 + 1, count, peers, counted: false }
    }

    /// All messages.
    pub(crate) fn total(&self) -> u64 {
        self.warm.saturating_add(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(test: Test, level: Level, op: Op, size: usize) -> Plan {
        let settings = Settings { level, op, ..Settings::default() };
        Plan { test, sizes: vec![size], peers: vec![1], amount: Amount::Count(1), settings }
    }

    #[test]
    fn what_makes_sense_passes() {
        plan(Test::Fanout, Level::Socket, Op::Send, 64).check().unwrap();
        plan(Test::Bw, Level::Domain, Op::Read, 64).check().unwrap();
        plan(Test::Lat, Level::Domain, Op::Cas, 8).check().unwrap();
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_a_way_out() {
        let bad = [
            (plan(Test::Idle, Level::Domain, Op::Send, 64), "--level"),
            (plan(Test::Lat, Level::Socket, Op::Read, 64), "--level domain"),
            (plan(Test::Bw, Level::Tasks, Op::Send, 64), "--level tasks"),
            (plan(Test::Lat, Level::Domain, Op::Add, 64), "--size"),
            (Plan { amount: Amount::Count(0), ..plan(Test::Lat, Level::Socket, Op::Send, 1) }, "1"),
        ];
        for (plan, word) in bad {
            let text = plan.check().unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
