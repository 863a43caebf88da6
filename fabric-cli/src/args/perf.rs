//! `fabric perf`: what to measure, and how.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use fabric_perf as perf;
use fabric_perf::{Amount, Plan, Settings, Test};

use crate::units::{parse_some_len, parse_time};

/// What of `fabric perf`.
#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Round trips: how they are distributed, and what each costs on both sides
    Lat(Between),
    /// A one-way stream: rate, and what a million messages cost on both sides
    Bw(Between),
    /// One publisher and many subscribers in one process: deliveries, and losses
    Fanout(Fanout),
    /// Many silent peers in one process: memory for each, set-ups, and whether they slow another one
    Idle(Idle),
    /// The other side for `--connect`, on this or another host: serves until a signal comes
    Serve(Serve),
}

/// Measurements between two.
#[derive(Debug, Args)]
pub(crate) struct Between {
    /// Bytes of each message; may be repeated. By default 64, 1KiB, 64KiB and 1MiB (domain: 64,
    /// 1KiB and 64KiB, atomics 8)
    #[arg(short, long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_some_len)]
    size: Vec<usize>,
    /// Sockets (REQ/REP, PUSH/PULL), such in tasks, or the bare domain of the fabric below them
    #[arg(long, value_enum, default_value = "socket", value_name = "LEVEL")]
    level: Level,
    /// What the domain does
    #[arg(long, value_enum, default_value = "send", value_name = "OP")]
    op: Op,
    #[command(flatten)]
    pub(crate) how: How,
}

/// One publisher, many subscribers.
#[derive(Debug, Args)]
pub(crate) struct Fanout {
    /// Bytes of each message; may be repeated
    #[arg(short, long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_some_len,
          default_value = "64")]
    size: Vec<usize>,
    /// Numbers of subscribers
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,8,64")]
    subscribers: Vec<usize>,
    /// What the publisher does with a message for a subscriber that has no room
    #[arg(long, value_enum, default_value = "block", value_name = "WHAT")]
    when_full: super::WhenFull,
    #[command(flatten)]
    pub(crate) how: How,
}

/// Silent peers.
#[derive(Debug, Args)]
pub(crate) struct Idle {
    /// Numbers of silent peers
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,100,1000")]
    peers: Vec<usize>,
    /// Bytes of each message that another peer streams meanwhile; may be repeated
    #[arg(short, long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_some_len,
          default_value = "64")]
    size: Vec<usize>,
    #[command(flatten)]
    pub(crate) how: How,
}

/// What all measurements have.
#[derive(Debug, Clone, Args)]
pub(crate) struct How {
    /// Measure so many messages, after a tenth more to warm up
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    count: Option<u64>,
    /// Measure for about so long for each row; shorter runs before say how many messages that is
    #[arg(short, long, value_name = "TIME", value_parser = parse_time, default_value = "1s")]
    duration: Duration,
    /// Never sleep: faster, at the price of a core on each side
    #[arg(long)]
    busy_poll: bool,
    /// Keep this side on one processor and the other side on another one
    #[arg(long, value_name = "CLIENT,SERVER", value_parser = parse_pin)]
    pin: Option<(usize, usize)>,
    /// Messages queued for each peer, on either side; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 1000)]
    hwm: usize,
    /// Messages handed over and taken in one call, where streams do that
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Where the other side, started by this one, listens
    #[arg(long, value_name = "URL", default_value = "tcp://127.0.0.1:0")]
    pub(crate) addr: String,
    /// Measure with a `fabric perf serve` that runs already
    #[arg(long, value_name = "URL", conflicts_with = "addr")]
    pub(crate) connect: Option<String>,
    /// Print one JSON object, which docs/perf.md describes, instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The other side.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen there, like tcp://*:7000; each run listens at a free port beside it
    #[arg(value_name = "URL")]
    pub(crate) url: String,
}

/// As `fabric_perf::Level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// REQ/REP, PUSH/PULL, PUB/SUB.
    Socket,
    /// REQ/REP by tasks of tokio's runtime of one thread.
    Tasks,
    /// The bare domain.
    Domain,
}

/// As `fabric_perf::Op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Op {
    /// Send to a posted receive.
    Send,
    /// Read memory of the other side.
    Read,
    /// Write memory of the other side.
    Write,
    /// Compare and swap a word of the other side.
    Cas,
    /// Add to a word of the other side.
    Add,
}

impl Between {
    /// The plan, for round trips or a stream.
    pub(crate) fn plan(&self, test: Test) -> Plan {
        let op = self.op();
        let level = match self.level {
            Level::Socket => perf::Level::Socket,
            Level::Tasks => perf::Level::Tasks,
            Level::Domain => perf::Level::Domain,
        };
        let settings = Settings { level, op, ..self.how.settings() };
        let sizes = if self.size.is_empty() { default_sizes(level, op) } else { &self.size };
        Plan { test, sizes: sizes.to_vec(), peers: vec![1], amount: self.how.amount(), settings }
    }

    fn op(&self) -> perf::Op {
        match self.op {
            Op::Send => perf::Op::Send,
            Op::Read => perf::Op::Read,
            Op::Write => perf::Op::Write,
            Op::Cas => perf::Op::Cas,
            Op::Add => perf::Op::Add,
        }
    }
}

fn default_sizes(level: perf::Level, op: perf::Op) -> &'static [usize] {
    match (level, op) {
        (_, perf::Op::Cas | perf::Op::Add) => &[8],
        (perf::Level::Domain, _) => &[64, 1 << 10, 64 << 10],
        (perf::Level::Socket | perf::Level::Tasks, _) => &[64, 1 << 10, 64 << 10, 1 << 20],
    }
}

impl Fanout {
    /// The plan.
    pub(crate) fn plan(&self) -> Plan {
        let when_full = match self.when_full {
            super::WhenFull::Drop => perf::WhenFull::Drop,
            super::WhenFull::Block => perf::WhenFull::Block,
        };
        let settings = Settings { when_full, ..self.how.settings() };
        let (sizes, peers) = (self.size.clone(), self.subscribers.clone());
        Plan { test: Test::Fanout, sizes, peers, amount: self.how.amount(), settings }
    }
}

impl Idle {
    /// The plan.
    pub(crate) fn plan(&self) -> Plan {
        let (sizes, peers) = (self.size.clone(), self.peers.clone());
        let (amount, settings) = (self.how.amount(), self.how.settings());
        Plan { test: Test::Idle, sizes, peers, amount, settings }
    }
}

impl How {
    fn amount(&self) -> Amount {
        self.count.map_or(Amount::Time(self.duration), Amount::Count)
    }

    fn settings(&self) -> Settings {
        let (busy_poll, pin, hwm, batch) = (self.busy_poll, self.pin, self.hwm, self.batch);
        Settings { busy_poll, pin, hwm, batch, ..Settings::default() }
    }
}

/// Two processors, as `0,1`.
fn parse_pin(text: &str) -> Result<(usize, usize), String> {
    let both = text.split_once(',').map(|(a, b)| (a.trim().parse(), b.trim().parse()));
    match both {
        Some((Ok(client), Ok(server))) => Ok((client, server)),
        _ => Err("write two numbers of processors, like 0,1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processors_are_two_numbers() {
        assert_eq!(parse_pin("0, 1"), Ok((0, 1)));
        for text in ["", "0", "0,", "a,b", "0,1,2", "-1,0"] {
            assert!(parse_pin(text).is_err(), "{text}");
        }
    }
}
