//! What comes out, as one object. `docs/perf.md` describes it for those who read the JSON.

use serde::{Deserialize, Serialize};

use crate::plan::{Settings, Test};
use crate::{Bucket, Cost, Host, RoundTrip};

/// Raised when a field changes its meaning or goes; new fields may come at any time.
const VERSION: u32 = 1;

/// The outcome of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Of this format.
    pub version: u32,
    /// Where the serving side was reached.
    pub addr: String,
    /// How both sides ran.
    pub settings: Settings,
    /// This host, where the measuring side ran.
    pub host: Host,
    /// The measurement and its rows.
    #[serde(flatten)]
    pub rows: Rows,
    /// What could not be counted, with the reason, each once.
    pub not_available: Vec<String>,
}

/// The rows of a measurement, one for each size and number of peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "test", content = "rows", rename_all = "lowercase")]
pub enum Rows {
    /// Round trips.
    Lat(Vec<LatRow>),
    /// One-way streams.
    Bw(Vec<BwRow>),
    /// One publisher, many subscribers.
    Fanout(Vec<FanoutRow>),
    /// Silent peers.
    Idle(Vec<IdleRow>),
}

/// Something about the measuring side and about the serving side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BothSides {
    /// The measuring side, which connected.
    pub client: f64,
    /// The serving side, which listened.
    pub server: f64,
}

/// Round trips of one size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatRow {
    /// Bytes of each message, both ways.
    pub size_bytes: usize,
    /// Round trips measured.
    pub count: u64,
    /// What they took together.
    pub seconds: f64,
    /// How they are distributed, in microseconds.
    pub round_trip_us: RoundTrip,
    /// The same as buckets.
    pub histogram: Vec<Bucket>,
    /// From no socket at all to the first reply, in microseconds; `null` for bare domains.
    pub first_reply_us: Option<f64>,
    /// What the measuring side paid for a round trip.
    pub client: Cost,
    /// What the serving side paid for it.
    pub server: Cost,
}

/// A one-way stream of one size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BwRow {
    /// Bytes of each message.
    pub size_bytes: usize,
    /// Messages measured, all of which arrived.
    pub count: u64,
    /// From the first to the last arrival.
    pub seconds: f64,
    /// Messages in a second.
    pub messages_per_second: f64,
    /// Bytes of messages in a second, in units of 10⁹.
    pub gigabytes_per_second: f64,
    /// What the measuring side paid, which sends.
    pub client: Cost,
    /// What the serving side paid, which receives.
    pub server: Cost,
}

/// One publisher and so many subscribers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FanoutRow {
    /// Bytes of each message.
    pub size_bytes: usize,
    /// Subscribers, all on one thread.
    pub subscribers: usize,
    /// Messages published while the clock ran.
    pub count: u64,
    /// Messages that arrived, all subscribers together, with those that warm up.
    pub delivered: u64,
    /// Messages that did not.
    pub lost: u64,
    /// Messages that the publisher says it dropped.
    pub dropped: u64,
    /// What the arrivals that count took.
    pub seconds: f64,
    /// Deliveries in a second, all subscribers together.
    pub delivered_per_second: f64,
    /// Bytes of these in a second, in units of 10⁹.
    pub gigabytes_per_second: f64,
    /// What the subscribers paid for a delivery.
    pub client: Cost,
    /// What the publisher paid for a delivery.
    pub server: Cost,
}

/// So many silent peers and one that streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleRow {
    /// Silent peers, all in one process.
    pub peers: usize,
    /// Memory for each on either side, in bytes.
    pub memory_bytes_per_peer: BothSides,
    /// Descriptors for each on either side.
    pub descriptors_per_peer: BothSides,
    /// Connections made a second, each with a first message; `null` for fewer than two peers.
    pub set_ups_per_second: Option<f64>,
    /// Bytes of each message that the other peer streams.
    pub size_bytes: usize,
    /// Messages of it measured, all of which arrived.
    pub count: u64,
    /// Of these in a second.
    pub messages_per_second: f64,
}

impl Report {
    /// A report with these rows.
    pub(crate) fn new(
        addr: &str,
        settings: Settings,
        rows: Rows,
        not_available: Vec<String>,
    ) -> Self {
        let host = Host::here();
        Self { version: VERSION, addr: addr.to_owned(), settings, host, rows, not_available }
    }
}

impl Rows {
    /// No rows yet.
    pub(crate) fn of(test: Test) -> Self {
        match test {
            Test::Lat => Self::Lat(Vec::new()),
            Test::Bw => Self::Bw(Vec::new()),
            Test::Fanout => Self::Fanout(Vec::new()),
            Test::Idle => Self::Idle(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_reads_back() {
        let row = LatRow { size_bytes: 64, count: 2, ..LatRow::default() };
        let rows = Rows::Lat(vec![row]);
        let report = Report::new("tcp://h:1", Settings::default(), rows, vec!["x: y".into()]);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["test"], &json["rows"][0]["size_bytes"]), (&"lat".into(), &64.into()));
        assert!(json["rows"][0]["client"]["syscalls_per_message"].is_null());
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }
}
