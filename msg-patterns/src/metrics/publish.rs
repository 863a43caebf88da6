//! From what the engine counts to the recorder.

use std::time::Duration;

use ::metrics::{Label, counter, gauge, histogram};

use super::table::{
    CONNECT_FAILURES, CONNECT_RETRIES, CONNECTION, GAUGES_OF_PEERS, GAUGES_OF_SOCKETS, HANDSHAKE,
    HISTOGRAMS, OF_EVENTS, OF_PEERS, OF_SOCKETS,
};
use crate::engine::Net;
use crate::monitor::{MonitorEvent, PeerId};

impl Net {
    /// Hands on what was counted since the last time.
    pub(crate) fn publish_metrics(&mut self) {
        self.count_all();
        let labels = self.labels();
        for (metric, value) in OF_SOCKETS {
            let since = value(&self.counters) - value(&self.published);
            counter!(metric.name, labels.clone()).increment(since);
        }
        self.published = self.counters;
        for metric in OF_EVENTS {
            // It is there from the beginning, so that its first step is seen.
            counter!(metric.name, labels.clone()).increment(0);
        }
        for peer in self.peer_ids() {
            self.publish_peer(peer);
        }
        self.publish_gauges(&labels);
    }

    fn publish_gauges(&self, labels: &[Label]) {
        let peers = || self.peers.iter().map(|(_, peer)| peer);
        let up = peers().filter(|peer| peer.is_up()).count();
        let queued = peers().map(|peer| peer.queue.len()).sum::<u64>();
        let values = [self.peers.len() as f64, up as f64, queued as f64];
        for (metric, value) in GAUGES_OF_SOCKETS.iter().zip(values) {
            gauge!(metric.name, labels.to_vec()).set(value);
        }
    }

    fn publish_peer(&mut self, peer: PeerId) {
        let labels = self.peer_labels(peer);
        let entry = self.peer_mut(peer);
        for ((metric, value), published) in OF_PEERS.iter().zip(entry.published) {
            counter!(metric.name, labels.clone()).increment(value(entry) - published);
        }
        entry.published = [0, 1, 2, 3].map(|i: usize| (OF_PEERS[i].1)(entry));
        set_peer(&labels, entry.queue.len(), entry.is_up());
    }

    /// The socket closes: all its peers go.
    pub(crate) fn publish_close(&mut self) {
        self.publish_metrics();
        for peer in self.peer_ids() {
            self.publish_end(peer);
        }
        for metric in GAUGES_OF_SOCKETS {
            gauge!(metric.name, self.labels()).set(0.0);
        }
    }

    /// A peer goes: what it counted stays counted, and it is nothing any more.
    pub(crate) fn publish_end(&mut self, peer: PeerId) {
        if self.peers.contains(peer.0 as usize) {
            self.count_all();
            self.publish_peer(peer);
            set_peer(&self.peer_labels(peer), 0, false);
        }
    }

    /// Counts what is only told and not counted.
    pub(crate) fn count_event(&self, event: &MonitorEvent) {
        let metric = match event {
            MonitorEvent::ConnectFailed { .. } => &OF_EVENTS[CONNECT_FAILURES],
            MonitorEvent::ConnectRetried { .. } => &OF_EVENTS[CONNECT_RETRIES],
            _ => return,
        };
        counter!(metric.name, self.labels()).increment(1);
    }

    /// The greeting of `peer` has succeeded.
    pub(crate) fn observe_handshake(&self, peer: PeerId) {
        self.observe(HANDSHAKE, peer);
    }

    /// The connection of `peer`, which was usable, has ended.
    pub(crate) fn observe_connection(&self, peer: PeerId) {
        self.observe(CONNECTION, peer);
    }

    fn observe(&self, which: usize, peer: PeerId) {
        let time: Duration = self.now().saturating_sub(self.peer(peer).opened);
        let labels = [self.labels(), self.link_labels(peer)].concat();
        histogram!(HISTOGRAMS[which].name, labels).record(time);
    }

    fn labels(&self) -> Vec<Label> {
        vec![
            Label::from_static_parts("socket_type", self.kind.name()),
            Label::new("socket", self.name().into_owned()),
        ]
    }

    fn link_labels(&self, peer: PeerId) -> Vec<Label> {
        let path = self.path(peer);
        vec![
            Label::new("fabric", path.addr.scheme().to_owned()),
            Label::from_static_parts("provider", path.provider),
            Label::new("device", path.device.to_owned()),
        ]
    }

    fn peer_labels(&self, peer: PeerId) -> Vec<Label> {
        let place = vec![
            Label::new("peer", peer.0.to_string()),
            Label::new("address", self.peer(peer).addr.to_string()),
        ];
        [self.labels(), place, self.link_labels(peer)].concat()
    }
}

fn set_peer(labels: &[Label], queued: u64, up: bool) {
    let values = [queued as f64, f64::from(u8::from(up))];
    for (metric, value) in GAUGES_OF_PEERS.iter().zip(values) {
        gauge!(metric.name, labels.to_vec()).set(value);
    }
}
