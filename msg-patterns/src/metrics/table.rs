//! What is published: names, units and meanings, which stay as they are.

use crate::engine::peer::Peer;
use crate::monitor::Counters;

/// What a metric does over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Is a distribution.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it does over time.
    pub kind: MetricKind,
    /// What it counts.
    pub unit: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says, in one line.
    pub about: &'static str,
}

impl Metric {
    /// All of them, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let sockets = OF_SOCKETS.iter().map(|(metric, _)| metric).chain(OF_EVENTS);
        let peers = OF_PEERS.iter().map(|(metric, _)| metric);
        sockets.chain(GAUGES_OF_SOCKETS).chain(peers).chain(GAUGES_OF_PEERS).chain(HISTOGRAMS)
    }
}

const SOCKET: &[&str] = &["socket_type", "socket"];
const LINK: &[&str] = &["socket_type", "socket", "fabric", "provider", "device"];
const PEER: &[&str] = &["socket_type", "socket", "peer", "address", "fabric", "provider", "device"];

const fn counter(name: &'static str, unit: &'static str, about: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, unit, labels: SOCKET, about }
}

const fn gauge(name: &'static str, unit: &'static str, about: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, unit, labels: SOCKET, about }
}

const fn histogram(name: &'static str, about: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Histogram, unit: "seconds", labels: LINK, about }
}

const fn of_peer(metric: Metric) -> Metric {
    Metric { labels: PEER, ..metric }
}

type OfSocket = (Metric, fn(&Counters) -> u64);
type OfPeer = (Metric, fn(&Peer) -> u64);

/// Counters of sockets, with where they come from.
pub(super) static OF_SOCKETS: &[OfSocket] = &[
    (
        counter(
            "fabric_socket_messages_accepted_total",
            "messages",
            "accepted by `send` and its kin, once however many peers get them",
        ),
        |c| c.accepted,
    ),
    (
        counter(
            "fabric_socket_messages_sent_total",
            "messages",
            "handed to the fabric, once a peer",
        ),
        |c| c.sent,
    ),
    (
        counter(
            "fabric_socket_sent_bytes_total",
            "bytes",
            "in messages handed to the fabric, over all parts",
        ),
        |c| c.sent_bytes,
    ),
    (counter("fabric_socket_messages_received_total", "messages", "arrived whole"), |c| c.received),
    (
        counter(
            "fabric_socket_received_bytes_total",
            "bytes",
            "in messages that arrived, over all parts",
        ),
        |c| c.received_bytes,
    ),
    (
        counter("fabric_socket_messages_delivered_total", "messages", "given to the application"),
        |c| c.delivered,
    ),
    (
        counter(
            "fabric_socket_messages_dropped_total",
            "messages",
            "dropped here: at a high-water mark, for a newer one, or with a queue that ended",
        ),
        |c| c.dropped,
    ),
    (
        counter(
            "fabric_socket_messages_lost_total",
            "messages",
            "that publishers said they dropped for this subscriber",
        ),
        |c| c.lost,
    ),
    (
        counter(
            "fabric_socket_messages_redelivered_total",
            "messages",
            "sent again to another peer",
        ),
        |c| c.redelivered,
    ),
    (
        counter(
            "fabric_socket_messages_discarded_total",
            "messages",
            "discarded on arrival: unsubscribed, stale or malformed",
        ),
        |c| c.discarded,
    ),
    (
        counter(
            "fabric_socket_posts_total",
            "posts",
            "fabric messages posted, each with one or many messages",
        ),
        |c| c.posts,
    ),
    (counter("fabric_socket_connects_total", "connections", "that became usable"), |c| c.connects),
    (
        counter("fabric_socket_disconnects_total", "connections", "that had been usable and ended"),
        |c| c.disconnects,
    ),
    (
        counter(
            "fabric_socket_refused_total",
            "peers",
            "refused for what they sent, here or by the fabric, or that refused this side",
        ),
        |c| c.refused,
    ),
];

/// Counters of sockets that are counted as it happens, which is seldom.
pub(super) static OF_EVENTS: &[Metric] = &[
    counter("fabric_socket_connect_failures_total", "attempts", "to connect that failed"),
    counter(
        "fabric_socket_connect_retries_total",
        "attempts",
        "to connect that follow after a wait",
    ),
];

/// Those above, in their order.
pub(super) const CONNECT_FAILURES: usize = 0;
pub(super) const CONNECT_RETRIES: usize = 1;

/// What sockets are now.
pub(super) static GAUGES_OF_SOCKETS: &[Metric] = &[
    gauge("fabric_socket_peers", "peers", "that there are, connected or not"),
    gauge("fabric_socket_peers_up", "peers", "with which messages may flow"),
    gauge("fabric_socket_messages_queued", "messages", "queued for all peers"),
];

/// Counters of peers, with where they come from.
pub(super) static OF_PEERS: &[OfPeer] = &[
    (of_peer(counter("fabric_peer_messages_sent_total", "messages", "sent to the peer")), |p| {
        p.sent
    }),
    (
        of_peer(counter(
            "fabric_peer_messages_received_total",
            "messages",
            "that arrived from the peer",
        )),
        |p| p.received,
    ),
    (
        of_peer(counter(
            "fabric_peer_messages_dropped_total",
            "messages",
            "dropped here for the peer",
        )),
        |p| p.dropped,
    ),
    (
        of_peer(counter(
            "fabric_peer_messages_lost_total",
            "messages",
            "that the peer said it dropped for this socket",
        )),
        |p| p.lost,
    ),
];

/// Counters of a peer that were published.
pub(crate) type Published = [u64; 4];

const _: () = assert!(OF_PEERS.len() == size_of::<Published>() / size_of::<u64>());

/// What peers are now.
pub(super) static GAUGES_OF_PEERS: &[Metric] = &[
    of_peer(gauge(
        "fabric_peer_messages_queued",
        "messages",
        "queued for the peer; 0 when it has gone",
    )),
    of_peer(gauge("fabric_peer_up", "peers", "1 while messages may flow, else 0")),
];

/// How long things took.
pub(super) static HISTOGRAMS: &[Metric] = &[
    histogram("fabric_handshake_seconds", "from a connection to the end of its greeting"),
    histogram(
        "fabric_connection_seconds",
        "from a connection to its end, of those that became usable",
    ),
];

/// Those above, in their order.
pub(super) const HANDSHAKE: usize = 0;
pub(super) const CONNECTION: usize = 1;

/// Tells the recorder what the names mean.
pub(super) fn describe() {
    for Metric { name, kind, about, unit, .. } in Metric::all() {
        let text = format!("{unit}: {about}");
        match kind {
            MetricKind::Counter => ::metrics::describe_counter!(*name, text),
            MetricKind::Gauge => ::metrics::describe_gauge!(*name, text),
            MetricKind::Histogram => ::metrics::describe_histogram!(*name, text),
        }
    }
}
