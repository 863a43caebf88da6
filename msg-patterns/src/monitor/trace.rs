//! What happens to a socket's connections and what it drops, as events of `tracing`. Their names and
//! fields stand in `docs/metrics.md` and stay as they are.

use std::borrow::Cow;
use std::time::Duration;

use fabric_core::Addr;

use super::{MonitorEvent, PeerId};
use crate::engine::Net;

/// The target of all events and spans of sockets.
pub(crate) const TARGET: &str = "msg_patterns::socket";

/// Shortest time between two events about the same slow peer.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);

/// An event with the socket's type and name in front of its own fields.
macro_rules! say {
    ($net:expr, $level:ident, $name:literal $(, $($fields:tt)+)?) => {
        tracing::event!(
            name: $name,
            target: TARGET,
            tracing::Level::$level,
            socket_type = $net.kind.name(),
            socket = %$net.name(),
            $($($fields)+,)?
            $name
        )
    };
}

/// How a peer is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    pub(crate) addr: &'a Addr,
    pub(crate) provider: &'static str,
    pub(crate) device: &'a str,
}

impl Net {
    /// The name of the socket: the one it was given, or its number in this process.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self.options.name.as_str() {
            "" => self.number.to_string().into(),
            name => name.into(),
        }
    }

    /// How a peer that there is, is reached.
    pub(crate) fn path(&self, peer: PeerId) -> Path<'_> {
        let entry = self.peer(peer);
        let caps = self.ports[entry.port].domain.caps();
        Path { addr: &entry.addr, provider: caps.provider, device: &caps.device }
    }

    /// Tells monitors and whoever listens to events.
    pub(crate) fn tell(&mut self, event: &MonitorEvent) {
        self.trace(event);
        #[cfg(feature = "metrics")]
        self.count_event(event);
        self.monitors.tell(event);
    }

    fn trace(&self, event: &MonitorEvent) {
        if !tracing::enabled!(target: TARGET, tracing::Level::WARN) {
            return;
        }
        match event {
            MonitorEvent::Listening { addr } => say!(self, DEBUG, "listening", %addr),
            MonitorEvent::Unbound { addr } => say!(self, DEBUG, "unbound", %addr),
            MonitorEvent::ConnectDelayed { addr } => say!(self, DEBUG, "connecting", %addr),
            MonitorEvent::ConnectFailed { addr, why } => {
                say!(self, DEBUG, "connect_failed", %addr, %why);
            }
            MonitorEvent::ConnectRetried { addr, interval } => {
                say!(self, DEBUG, "connect_retried", %addr, ?interval);
            }
            MonitorEvent::ConnectStopped { addr, why } => {
                say!(self, WARN, "connect_stopped", %addr, %why);
            }
            MonitorEvent::AcceptFailed { why } => say!(self, WARN, "accept_failed", %why),
            MonitorEvent::Undelivered { name, why } => {
                say!(self, DEBUG, "undelivered", ?name, why);
            }
            MonitorEvent::Stopped => say!(self, DEBUG, "stopped"),
            MonitorEvent::Connected { peer, .. }
            | MonitorEvent::Accepted { peer, .. }
            | MonitorEvent::HandshakeSucceeded { peer, .. }
            | MonitorEvent::Refused { peer, .. }
            | MonitorEvent::Disconnected { peer, .. } => self.trace_peer(*peer, event),
        }
    }

    fn trace_peer(&self, id: PeerId, event: &MonitorEvent) {
        let (peer, Path { addr, provider, device }) = (id.0, self.path(id));
        match event {
            MonitorEvent::Connected { .. } => {
                say!(self, DEBUG, "connected", peer, %addr, provider, device);
            }
            MonitorEvent::Accepted { .. } => {
                say!(self, DEBUG, "accepted", peer, %addr, provider, device);
            }
            MonitorEvent::HandshakeSucceeded { identity, .. } => {
                say!(self, DEBUG, "up", peer, %addr, provider, device, ?identity);
            }
            MonitorEvent::Refused { fault, by_peer, .. } => {
                let why = fault.text();
                say!(self, WARN, "refused", peer, %addr, provider, device, why, by_peer);
            }
            MonitorEvent::Disconnected { why, dropped, .. } => {
                say!(self, DEBUG, "disconnected", peer, %addr, provider, device, %why, dropped);
            }
            _ => {}
        }
    }

    /// Says that a subscriber begins to miss messages, for lack of room: now and then, as one that
    /// stays too slow begins anew whenever it took some.
    #[cold]
    pub(crate) fn trace_slow(&mut self, id: PeerId) {
        if !tracing::enabled!(target: TARGET, tracing::Level::WARN) {
            return;
        }
        let now = self.now();
        let entry = self.peer_mut(id);
        if entry.slow_told.is_some_and(|told| now.saturating_sub(told) < SLOW_INTERVAL) {
            return;
        }
        entry.slow_told = Some(now);
        let (peer, Path { addr, provider, device }) = (id.0, self.path(id));
        let queued = self.peer(id).queue.len();
        say!(self, WARN, "slow_peer", peer, %addr, provider, device, queued);
    }

    /// Says that messages for or from a peer were dropped.
    #[cold]
    pub(crate) fn trace_dropped(&self, id: PeerId, count: u64, why: &str) {
        let (peer, Path { addr, provider, device }) = (id.0, self.path(id));
        say!(self, DEBUG, "dropped", peer, %addr, provider, device, count, why);
    }
}
