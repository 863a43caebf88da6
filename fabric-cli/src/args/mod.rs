//! The command line.

mod common;
mod feed;
#[cfg(test)]
mod guide;
mod perf;
mod proxy;
#[cfg(test)]
mod shell;
mod softroce;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use msg_patterns::Addr;

pub(crate) use common::{Ends, Queues, Tuning};
pub(crate) use feed::Feed;
pub(crate) use perf::{How, PerfCommand};
pub(crate) use proxy::{ProxyArgs, ProxyKind};
pub(crate) use softroce::SoftRoce;
pub(crate) use store::Store;

use crate::doctor::DoctorArgs;
use crate::exit::CODES;
use crate::report::Style;
use crate::top::TopArgs;
use crate::units::{parse_fabric, parse_place, parse_time};

/// Messaging patterns over any fabric: PUB/SUB, PUSH/PULL and REQ/REP from the shell, and proxies
/// between them.
///
/// Addresses are written like tcp://127.0.0.1:5555, `tcp://[::1]:5555`, tcp://host:5555, tcp://*:5555
/// (all interfaces) or tcp://eth0:5555; port 0 picks a free one. Built with the feature `softroce`,
/// also like verbs://10.0.0.5:5555, verbs://mlx5_0:5555 or softroce://eth0:5555. Sizes are written like
/// 4096, 64KiB, 1G (binary) or 10MB (decimal), times like 5s, 200ms or 2m.
///
/// Any address may have settings of its socket behind it, which hold against options:
/// `tcp://host:5555?hwm=1000&linger=5s` (in quotes, for the shell). docs/configuration.md lists them; a
/// name that is none is refused with the nearest one.
#[derive(Debug, Parser)]
#[command(name = "fabric", version, after_help = CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What every subcommand takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Say more on standard error: -v connections, -vv everything; FABRIC_LOG overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Who reads standard error: people, programs (one JSON object a line), or nobody
    #[arg(long, global = true, value_enum, default_value = "text", value_name = "STYLE")]
    pub(crate) report: Style,
    /// End when this process, which started this one, ends
    #[arg(long, global = true, hide = true, value_name = "PID")]
    pub(crate) die_with_parent: Option<i32>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Publish: each message to every subscriber whose topic it begins with
    Pub(PubArgs),
    /// Subscribe: print what matches the topics
    Sub(SubArgs),
    /// Push: each message to one puller, in turn
    Push(PushArgs),
    /// Pull: print what pushers send
    Pull(PullArgs),
    /// Request: send each message and print its reply
    Req(ReqArgs),
    /// Reply: answer each request with itself or with the output of a command
    Rep(RepArgs),
    /// Carry messages between two sides until a signal comes: published ones, work, or requests
    Proxy(ProxyArgs),
    /// Show all three patterns at work between processes on this machine, and check every delivery
    Demo(DemoArgs),
    /// List, make and remove soft-RoCE links: RDMA devices made of software
    #[command(subcommand)]
    Softroce(SoftRoce),
    /// Measure sockets and bare domains between two processes or hosts
    Perf(PerfArgs),
    /// Look at this host: what would be used, what is wrong, why, and what to type
    Doctor(DoctorArgs),
    /// Show what the sockets of a running process do now, by the metrics that it shows
    Top(TopArgs),
    /// Pull, name who worked on it, push on
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// What a publisher does with a message for a subscriber that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFull {
    /// Drop it for that subscriber and count it.
    Drop,
    /// Wait for room.
    Block,
}

#[derive(Debug, Args)]
pub(crate) struct PubArgs {
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Send this as a first part of its own; given several times, messages take them in turn
    #[arg(short = 'T', long, value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
    /// Before the first message (of each topic), wait until so many subscribers would get it
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) wait_subscribers: usize,
    /// What to do with a message for a subscriber that has no room
    #[arg(long, value_enum, default_value = "drop", value_name = "WHAT")]
    pub(crate) when_full: WhenFull,
    /// Give the last N matching messages to subscribers that come late
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) history: usize,
    #[command(flatten)]
    pub(crate) feed: Feed,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct SubArgs {
    /// Address to connect to; not with --bind or --connect
    #[arg(value_name = "URL", required_unless_present_any = ["bind", "connect"])]
    pub(crate) url: Option<String>,
    /// Beginnings of the messages to receive; without any, all. With --bind or --connect, all
    /// positional arguments are topics
    #[arg(value_name = "TOPIC")]
    pub(crate) topics: Vec<String>,
    /// Listen there; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) bind: Vec<String>,
    /// Connect there; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) connect: Vec<String>,
    #[command(flatten)]
    pub(crate) store: Store,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Keep each message until its puller has processed it, and give it to another one if that one
    /// leaves
    #[arg(long)]
    pub(crate) ack: bool,
    /// Before the first message, wait until so many pullers are there
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) wait_peers: usize,
    #[command(flatten)]
    pub(crate) feed: Feed,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    pub(crate) ends: Ends,
    #[command(flatten)]
    pub(crate) store: Store,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct ReqArgs {
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Ask another replier when the one that was asked leaves
    #[arg(long)]
    pub(crate) retry: bool,
    /// Ask another replier when no reply came for so long; implies --retry
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) resend_after: Option<Duration>,
    #[command(flatten)]
    pub(crate) feed: Feed,
    #[command(flatten)]
    pub(crate) store: Store,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct RepArgs {
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Program to start for each request: the request is its input, its output is the reply; if it
    /// fails, what it wrote to standard error is. Without it each request is its own reply
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// File to send, line by line and in pieces; by default 190 KiB of measurements that come along
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Where its processes listen, each at a port of its own: verbs://10.0.0.5, softroce://eth0
    #[arg(long, value_name = "URL", default_value = "tcp://127.0.0.1", value_parser = parse_place)]
    addr: Addr,
    /// The fabric to run over, at a place that every host has: tcp, ofi+tcp, ofi+shm
    #[arg(long, value_name = "NAME", conflicts_with = "addr", value_parser = parse_fabric)]
    fabric: Option<Addr>,
    /// How long it may take; by default 13s and another second for each MiB of the file
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,
}

impl DemoArgs {
    /// Where its processes listen.
    pub(crate) fn place(&self) -> &Addr {
        self.fabric.as_ref().unwrap_or(&self.addr)
    }
}

#[derive(Debug, Args)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    pub(crate) command: PerfCommand,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Put in front of what is pushed on
    pub(crate) name: String,
    /// Where to pull from
    pub(crate) source: String,
    /// Where to push to
    pub(crate) sink: String,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}
