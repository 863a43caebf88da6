//! What a turn of a contender says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Shortest round trip in microseconds.
    MinUs,
    /// Median round trip.
    P50Us,
    /// 90 % of round trips are not longer.
    P90Us,
    /// 99 % are not longer.
    P99Us,
    /// 99.9 % are not longer.
    P99_9Us,
    /// Longest round trip.
    MaxUs,
    /// Mean round trip.
    MeanUs,
    /// From the start to the first reply.
    FirstReplyUs,
    /// Messages a second; deliveries, where there are several subscribers.
    MessagesPerSecond,
    /// Bytes a second, in units of 10⁹.
    GigabytesPerSecond,
    /// Processor seconds of both sides for a million messages.
    CpuPerMillion,
    /// The same of the measuring side alone.
    ClientCpuPerMillion,
    /// Context switches of the measuring side for a message.
    ClientSwitches,
    /// System calls of the measuring side for a message.
    ClientSyscalls,
    /// Share of the messages that did not arrive.
    Lost,
    /// KiB of the listening side for a silent peer.
    ServerKib,
    /// KiB of the connecting side for a silent peer.
    ClientKib,
    /// Connections a second, each with a first message.
    SetUps,
}

impl Metric {
    /// Whether more is better.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Self::MessagesPerSecond | Self::GigabytesPerSecond | Self::SetUps)
    }

    /// For the head of a column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::MinUs => "min µs",
            Self::P50Us => "p50 µs",
            Self::P90Us => "p90 µs",
            Self::P99Us => "p99 µs",
            Self::P99_9Us => "p99.9 µs",
            Self::MaxUs => "max µs",
            Self::MeanUs => "mean µs",
            Self::FirstReplyUs => "first reply µs",
            Self::MessagesPerSecond => "messages/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::CpuPerMillion => "CPU s/million",
            Self::ClientCpuPerMillion => "client's CPU s/million",
            Self::ClientSwitches => "client's switches",
            Self::ClientSyscalls => "client's system calls",
            Self::Lost => "lost share",
            Self::ServerKib => "server's KiB a peer",
            Self::ClientKib => "client's KiB a peer",
            Self::SetUps => "set-ups/s",
        }
    }
}

/// The figures of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sample {
    /// What was measured took so long.
    pub(crate) seconds: f64,
    pub(crate) figures: BTreeMap<Metric, f64>,
}

impl Sample {
    /// A turn that took so long.
    pub(crate) fn new(seconds: f64) -> Self {
        Self { seconds, figures: BTreeMap::new() }
    }

    /// Adds a figure, if there is one.
    pub(crate) fn put(&mut self, metric: Metric, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.figures.insert(metric, value);
        }
    }

    /// Adds the rate of `messages` of `size` bytes.
    pub(crate) fn put_rate(&mut self, messages: f64, size: usize) {
        let rate = messages / self.seconds;
        self.put(Metric::MessagesPerSecond, Some(rate));
        self.put(Metric::GigabytesPerSecond, Some(rate * size as f64 / 1e9));
    }
}
