//! What happened between two looks at the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::text::Sample;

/// Which labels tell links from each other.
type Place = (String, String, String);

/// The metrics of sockets at a time.
#[derive(Debug)]
pub(super) struct Scrape {
    at: Instant,
    samples: BTreeMap<(String, Place), Sample>,
}

/// What there is to show.
#[derive(Debug, Serialize)]
pub(super) struct Rows {
    pub(super) sockets: Vec<Row<Socket>>,
    pub(super) peers: Vec<Row<Peer>>,
}

/// One line about a socket, or about one of its peers.
#[derive(Debug, Serialize)]
pub(super) struct Row<T> {
    pub(super) socket: String,
    pub(super) socket_type: String,
    #[serde(flatten)]
    pub(super) figures: T,
}

/// Figures a second, and what is now.
#[derive(Debug, Serialize)]
pub(super) struct Socket {
    pub(super) peers: u64,
    pub(super) peers_up: u64,
    pub(super) received: f64,
    pub(super) received_bytes: f64,
    pub(super) sent: f64,
    pub(super) sent_bytes: f64,
    pub(super) queued: f64,
    pub(super) dropped: f64,
    pub(super) lost: f64,
    pub(super) retries: f64,
}

/// As `Socket`, for one peer.
#[derive(Debug, Serialize)]
pub(super) struct Peer {
    pub(super) peer: String,
    pub(super) address: String,
    pub(super) fabric: String,
    pub(super) provider: String,
    pub(super) device: String,
    pub(super) up: bool,
    pub(super) received: f64,
    pub(super) sent: f64,
    pub(super) queued: f64,
    pub(super) dropped: f64,
    pub(super) lost: f64,
}

impl Scrape {
    /// What of `samples` is about sockets.
    pub(super) fn new(samples: Vec<Sample>, at: Instant) -> Self {
        let of_sockets = samples.into_iter().filter(|sample| {
            ["fabric_socket_", "fabric_peer_"].iter().any(|start| sample.name.starts_with(start))
        });
        let keyed = of_sockets.map(|sample| ((sample.name.clone(), place(&sample)), sample));
        Self { at, samples: keyed.collect() }
    }

    /// Whether there is nothing about sockets.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// What happened since an earlier look.
    pub(super) fn since(&self, before: &Self) -> Rows {
        let step = Step { before, now: self, time: self.at.saturating_duration_since(before.at) };
        // Peers that have gone would only fill the screen.
        let places = |name: &str| self.places(name).into_iter();
        let peers =
            places("fabric_peer_up").filter(|place| step.now("fabric_peer_up", place) > 0.0);
        Rows {
            sockets: places("fabric_socket_peers").map(|place| step.socket(place)).collect(),
            peers: peers.filter_map(|place| step.peer(place)).collect(),
        }
    }

    fn places(&self, name: &str) -> BTreeSet<&Place> {
        let named = self.samples.keys().filter(|(found, _)| found == name);
        named.map(|(_, place)| place).collect()
    }

    fn get(&self, name: &str, place: &Place) -> Option<&Sample> {
        self.samples.get(&(name.to_owned(), place.clone()))
    }
}

fn place(sample: &Sample) -> Place {
    let label = |name: &str| sample.labels.get(name).cloned().unwrap_or_default();
    let peer = format!("{} {}", label("peer"), label("address"));
    (label("socket"), label("socket_type"), peer)
}

/// Two looks.
struct Step<'a> {
    before: &'a Scrape,
    now: &'a Scrape,
    time: Duration,
}

impl Step<'_> {
    fn socket(&self, place: &Place) -> Row<Socket> {
        let rate = |name: &str| self.rate(&format!("fabric_socket_{name}_total"), place);
        let now = |name: &str| self.now(&format!("fabric_socket_{name}"), place);
        let figures = Socket {
            peers: now("peers") as u64,
            peers_up: now("peers_up") as u64,
            received: rate("messages_received"),
            received_bytes: rate("received_bytes"),
            sent: rate("messages_sent"),
            sent_bytes: rate("sent_bytes"),
            queued: now("messages_queued"),
            dropped: rate("messages_dropped"),
            lost: rate("messages_lost"),
            retries: rate("connect_retries"),
        };
        Row { socket: place.0.clone(), socket_type: place.1.clone(), figures }
    }

    fn peer(&self, place: &Place) -> Option<Row<Peer>> {
        let labels = &self.now.get("fabric_peer_up", place)?.labels;
        let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
        let rate = |name: &str| self.rate(&format!("fabric_peer_messages_{name}_total"), place);
        let figures = Peer {
            peer: label("peer"),
            address: label("address"),
            fabric: label("fabric"),
            provider: label("provider"),
            device: label("device"),
            up: true,
            received: rate("received"),
            sent: rate("sent"),
            queued: self.now("fabric_peer_messages_queued", place),
            dropped: rate("dropped"),
            lost: rate("lost"),
        };
        Some(Row { socket: place.0.clone(), socket_type: place.1.clone(), figures })
    }

    fn now(&self, name: &str, place: &Place) -> f64 {
        self.now.get(name, place).map_or(0.0, |sample| sample.value)
    }

    /// How much a counter grows in a second. One that is smaller than before began anew.
    fn rate(&self, name: &str, place: &Place) -> f64 {
        let now = self.now(name, place);
        let before = self.before.get(name, place).map_or(0.0, |sample| sample.value);
        let grown = if now < before { now } else { now - before };
        if self.time.is_zero() { 0.0 } else { grown / self.time.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::parse;
    use super::*;

    const LABELS: &str = "socket_type=\"PUB\",socket=\"ticks\"";
    const LINK: &str =
        "peer=\"0\",address=\"tcp://h:1\",fabric=\"tcp\",provider=\"tcp\",device=\"lo\"";

    fn scrape(sent: u64, up: u64, at: Instant) -> Scrape {
        let text = format!(
            "fabric_socket_peers{{{LABELS}}} 2\nfabric_socket_peers_up{{{LABELS}}} 1\n\
             fabric_socket_messages_sent_total{{{LABELS}}} {sent}\n\
             fabric_peer_up{{{LABELS},{LINK}}} {up}\n\
             fabric_peer_messages_sent_total{{{LABELS},{LINK}}} {sent}\n\
             fabric_peer_messages_queued{{{LABELS},{LINK}}} 7\nother_total 5\n"
        );
        Scrape::new(parse(&text).unwrap(), at)
    }

    fn rows(before: u64, now: u64, up: u64) -> Rows {
        let start = Instant::now();
        scrape(now, up, start + Duration::from_secs(2)).since(&scrape(before, 1, start))
    }

    #[test]
    fn counters_become_rates() {
        let rows = rows(100, 300, 1);
        let [socket] = &rows.sockets[..] else { panic!("{rows:?}") };
        assert_eq!((socket.socket.as_str(), socket.socket_type.as_str()), ("ticks", "PUB"));
        assert_eq!((socket.figures.sent, socket.figures.received), (100.0, 0.0));
        assert_eq!((socket.figures.peers, socket.figures.peers_up), (2, 1));
        let [peer] = &rows.peers[..] else { panic!("{rows:?}") };
        assert_eq!((peer.figures.sent, peer.figures.queued), (100.0, 7.0));
        assert_eq!(
            (peer.figures.address.as_str(), peer.figures.device.as_str()),
            ("tcp://h:1", "lo")
        );
    }

    #[test]
    fn a_counter_that_began_anew_counts_from_zero() {
        assert_eq!(rows(100, 10, 1).sockets[0].figures.sent, 5.0);
    }

    #[test]
    fn peers_that_have_gone_are_not_shown() {
        assert!(rows(1, 1, 0).peers.is_empty());
    }
}
