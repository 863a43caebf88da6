//! What happens to a socket's connections, as events and as counters.

mod trace;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fabric_core::Addr;
use msg_proto::fault::Fault;

use crate::driver::EventSource;

pub(crate) use trace::TARGET;

/// Names one peer of a socket: a `connect` for its whole life, or an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub(crate) u32);

/// Something that happened to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// The socket listens there.
    Listening {
        /// Address with its real port.
        addr: Addr,
    },
    /// The socket does not listen there any more.
    Unbound {
        /// Address with its real port.
        addr: Addr,
    },
    /// A connection attempt has begun.
    ConnectDelayed {
        /// Whereto.
        addr: Addr,
    },
    /// A connection attempt failed, or a connection that never became usable broke.
    ConnectFailed {
        /// Whereto.
        addr: Addr,
        /// Why, in one line.
        why: String,
    },
    /// The next attempt comes after this wait.
    ConnectRetried {
        /// Whereto.
        addr: Addr,
        /// The wait.
        interval: Duration,
    },
    /// There will be no further attempt.
    ConnectStopped {
        /// Whereto.
        addr: Addr,
        /// Why, in one line.
        why: String,
    },
    /// A connection that this side asked for is there; the greeting comes next.
    Connected {
        /// The peer.
        peer: PeerId,
        /// Its address.
        addr: Addr,
        /// The provider that carries it.
        provider: &'static str,
        /// The device that it goes through, as the provider names it.
        device: String,
    },
    /// A connection was accepted; the greeting comes next.
    Accepted {
        /// The peer.
        peer: PeerId,
        /// Its address.
        addr: Addr,
        /// The provider that carries it.
        provider: &'static str,
        /// The device that it goes through, as the provider names it.
        device: String,
    },
    /// Something tried to connect that is no peer of ours, such as another protocol.
    AcceptFailed {
        /// Why, in one line.
        why: String,
    },
    /// The greeting succeeded: messages may flow.
    HandshakeSucceeded {
        /// The peer.
        peer: PeerId,
        /// The name it gave itself, maybe empty.
        identity: bytes::Bytes,
    },
    /// This side or the peer refused to go on.
    Refused {
        /// The peer.
        peer: PeerId,
        /// Why.
        fault: Fault,
        /// Who said so: the peer, or this side.
        by_peer: bool,
    },
    /// A connection that had been usable is gone.
    Disconnected {
        /// The peer.
        peer: PeerId,
        /// Why, in one line.
        why: String,
        /// Messages dropped with its queue.
        dropped: u64,
    },
    /// A router dropped a message: nobody has that name, or the peer has no room.
    Undelivered {
        /// Whom it was for.
        name: bytes::Bytes,
        /// Why, in one line.
        why: &'static str,
    },
    /// The socket was closed; nothing follows.
    Stopped,
}

/// Most events waiting for a monitor; further ones are counted and lost.
const EVENTS_MAX: usize = 4096;

/// The events of one socket since the monitor was made, as an iterator that ends with
/// [`MonitorEvent::Stopped`].
pub struct Monitor {
    events: Receiver<MonitorEvent>,
    lost: Arc<AtomicU64>,
    pub(crate) socket: Weak<dyn EventSource>,
}

impl Monitor {
    /// The next event; `None` when the socket is gone.
    pub fn next_event(&self) -> Option<MonitorEvent> {
        self.events.recv().ok()
    }

    /// The next event that comes within `timeout`.
    pub fn next_timeout(&self, timeout: Duration) -> Option<MonitorEvent> {
        self.events.recv_timeout(timeout).ok()
    }

    /// The next event if it is already there.
    pub fn try_next(&self) -> Option<MonitorEvent> {
        self.events.try_recv().ok()
    }

    pub(crate) fn take_event(&self) -> Result<MonitorEvent, TryRecvError> {
        self.events.try_recv()
    }

    /// Events that were lost because nobody took them from this monitor.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

impl Iterator for Monitor {
    type Item = MonitorEvent;

    fn next(&mut self) -> Option<MonitorEvent> {
        self.next_event()
    }
}

/// The monitors of a socket.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    senders: Vec<(SyncSender<MonitorEvent>, Arc<AtomicU64>)>,
    ended: bool,
    /// How many events were told.
    told: u64,
}

impl Monitors {
    pub(crate) fn add(&mut self, socket: Weak<dyn EventSource>) -> Monitor {
        let (sender, events) = sync_channel(EVENTS_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        self.senders.push((sender, lost.clone()));
        if self.ended {
            self.tell(&MonitorEvent::Stopped);
            self.senders.clear();
        }
        Monitor { events, lost, socket }
    }

    /// How many events were told until now.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Nothing follows, for monitors that are there and for those that come.
    pub(crate) fn end(&mut self) {
        self.senders.clear();
        self.ended = true;
    }

    pub(crate) fn tell(&mut self, event: &MonitorEvent) {
        self.told += 1;
        self.senders.retain(|(sender, lost)| match sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                lost.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        });
    }
}

/// Counters of a socket since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Messages accepted by `send` and its kin, once however many peers get them.
    pub accepted: u64,
    /// Messages handed to the fabric, once a peer.
    pub sent: u64,
    /// Bytes of these over all parts.
    pub sent_bytes: u64,
    /// Messages that arrived whole.
    pub received: u64,
    /// Bytes of these over all parts.
    pub received_bytes: u64,
    /// Messages given to the application.
    pub delivered: u64,
    /// Messages dropped here: at a high-water mark, for a newer one (`conflate`), with the queue of
    /// a peer that left, or unsent or unread when the socket was disconnected or closed.
    pub dropped: u64,
    /// Messages that publishers said they dropped for this subscriber.
    pub lost: u64,
    /// Messages sent again to another peer because the first one left or did not answer.
    pub redelivered: u64,
    /// Messages that were discarded on arrival: unsubscribed, stale replies, malformed requests.
    pub discarded: u64,
    /// Fabric messages posted; each carries many small messages when the socket is busy.
    pub posts: u64,
    /// Connections that became usable.
    pub connects: u64,
    /// Usable connections that ended.
    pub disconnects: u64,
    /// Peers refused for what they sent, here or by the fabric.
    pub refused: u64,
}

/// One peer as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStats {
    /// Its name here.
    pub peer: PeerId,
    /// Its address.
    pub addr: Addr,
    /// The name it gave itself, maybe empty.
    pub identity: bytes::Bytes,
    /// The provider that carries it.
    pub provider: &'static str,
    /// The device that it goes through, as the provider names it.
    pub device: String,
    /// Whether messages may flow.
    pub up: bool,
    /// Messages queued for it here.
    pub queued: u64,
    /// Messages sent to it.
    pub sent: u64,
    /// Messages that arrived from it.
    pub received: u64,
    /// Messages dropped here for it.
    pub dropped: u64,
    /// Messages that it said it dropped for this socket.
    pub lost: u64,
}
