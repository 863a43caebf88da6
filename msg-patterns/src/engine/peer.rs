//! One peer: its connection, what is queued for it and what arrived from it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use fabric_core::{Addr, EpId, RemoteKey, SendBuf};
use msg_proto::link::{Link, PeerInfo};

use super::inbox::{Inbox, Incoming};
use super::queue::Queue;
use crate::Message;

/// Index of a connector.
pub(crate) type ConnectorKey = usize;

/// How a peer came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This side connects: the peer and its queue outlive a broken connection.
    Connector(ConnectorKey),
    /// The peer connected: it ends with its connection.
    Accepted,
}

/// What stands before the parts of a message.
#[derive(Debug, Clone)]
pub(crate) enum Head {
    None,
    Request { id: u64, envelope: Bytes },
    Reply { id: u64, envelope: Bytes },
}

/// A message on its way out.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    pub(crate) head: Head,
    pub(crate) size: u64,
    /// Parts that have left; set while a large message leaves piece by piece.
    pub(crate) parts_done: usize,
    /// Bytes of the next part that have left in fragments.
    pub(crate) part_offset: usize,
    pub(crate) begun: bool,
}

impl Outgoing {
    pub(crate) fn new(message: Message, head: Head) -> Self {
        let size = message.len() as u64;
        Self { message, head, size, parts_done: 0, part_offset: 0, begun: false }
    }
}

/// A part that arrives in fragments.
#[derive(Debug)]
pub(crate) struct Fragments {
    pub(crate) more: bool,
    pub(crate) total: usize,
    pub(crate) bytes: Vec<u8>,
}

/// What arrived of the message that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) message: Option<Incoming>,
    pub(crate) fragments: Option<Fragments>,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) addr: Addr,
    pub(crate) port: usize,
    pub(crate) origin: Origin,
    pub(crate) ep: Option<EpId>,
    pub(crate) link: Option<Link>,
    pub(crate) info: Option<PeerInfo>,
    pub(crate) identity: Bytes,
    /// Counts connections, so that what belongs to an old one is recognised.
    pub(crate) epoch: u32,
    /// The peer said goodbye: what it sent stays, also after the connection ended.
    pub(crate) said_bye: bool,
    /// The owner called `disconnect`: only what is queued still leaves, until then.
    pub(crate) leaving: Option<Option<Duration>>,

    pub(crate) queue: Queue,
    pub(crate) batch: Option<usize>,
    pub(crate) in_flight: usize,
    pub(crate) unposted: VecDeque<SendBuf>,
    pub(crate) offers: HashMap<u64, RemoteKey>,
    pub(crate) offer_next: u64,
    /// Drops that the peer has not been told of.
    pub(crate) dropped_untold: u64,

    pub(crate) inbox: Inbox,
    pub(crate) assembly: Assembly,
    pub(crate) seq_next: u64,

    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    /// When somebody was last told that it is slow.
    pub(crate) slow_told: Option<Duration>,

    /// When its connection came to be, on the socket's clock.
    #[cfg(feature = "metrics")]
    pub(crate) opened: Duration,
    /// What of its counters was published.
    #[cfg(feature = "metrics")]
    pub(crate) published: crate::metrics::Published,
}

impl Peer {
    pub(crate) fn new(addr: Addr, port: usize, origin: Origin) -> Self {
        Self {
            addr,
            port,
            origin,
            ep: None,
            link: None,
            info: None,
            identity: Bytes::new(),
            epoch: 0,
            said_bye: false,
            leaving: None,
            queue: Queue::default(),
            batch: None,
            in_flight: 0,
            unposted: VecDeque::new(),
            offers: HashMap::new(),
            offer_next: 0,
            dropped_untold: 0,
            inbox: Inbox::default(),
            assembly: Assembly::default(),
            seq_next: 0,
            sent: 0,
            received: 0,
            dropped: 0,
            lost: 0,
            slow_told: None,
            #[cfg(feature = "metrics")]
            opened: Duration::ZERO,
            #[cfg(feature = "metrics")]
            published: Default::default(),
        }
    }

    /// Whether messages may flow.
    pub(crate) fn is_up(&self) -> bool {
        self.info.is_some()
    }

    pub(crate) fn is_connector(&self) -> bool {
        matches!(self.origin, Origin::Connector(_))
    }

    /// Whether everything accepted for it has left.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty()
            && self.batch.is_none()
            && self.in_flight == 0
            && self.unposted.is_empty()
            && self.offers.is_empty()
    }

    /// Whether its oldest message can be received.
    pub(crate) fn is_ready(&self) -> bool {
        self.inbox.is_ready()
    }
}
