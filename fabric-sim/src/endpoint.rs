//! One side of a connection.

use std::collections::{BTreeMap, VecDeque};

use fabric_core::{Addr, EpId, OpId, SendBuf};

use crate::packet::{Due, Packet, Side};
use crate::rma::Transfer;

/// Where an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) dom: u64,
    pub(crate) ep: EpId,
}

pub(crate) struct Endpoint {
    /// Whether `Connected` or `Accepted` was reported.
    pub(crate) open: bool,
    /// The other side, once it accepted.
    pub(crate) peer: Option<At>,
    pub(crate) peer_addr: Addr,
    /// Posted and not handed over yet.
    pub(crate) sends: VecDeque<(OpId, SendBuf)>,
    /// How many of them may go as soon as there is room; the rest waits for a flush.
    pub(crate) flushed: usize,
    /// Remote operations that have not ended.
    pub(crate) transfers: BTreeMap<OpId, Transfer>,
    /// Those of them that were posted and not flushed yet.
    pub(crate) unasked: VecDeque<OpId>,
    /// On its way here.
    pub(crate) inbox: VecDeque<(Due, Packet)>,
    /// Remote memory traffic on its way here.
    pub(crate) side: VecDeque<(Due, Side)>,
}

impl Endpoint {
    pub(crate) fn new(peer: Option<At>, peer_addr: Addr) -> Self {
        Self {
            open: peer.is_some(),
            peer,
            peer_addr,
            sends: VecDeque::new(),
            flushed: 0,
            transfers: BTreeMap::new(),
            unasked: VecDeque::new(),
            inbox: VecDeque::new(),
            side: VecDeque::new(),
        }
    }

    /// Sends and remote operations that have not come back.
    pub(crate) fn in_flight(&self) -> usize {
        self.sends.len() + self.transfers.len()
    }

    /// Whether nothing is queued in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sends.is_empty()
            && self.unasked.is_empty()
            && self.inbox.is_empty()
            && self.side.is_empty()
    }
}
