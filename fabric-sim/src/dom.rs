//! What the network keeps for each domain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use fabric_core::{EpId, Event, GroupId, ListenerId, OpId, Slot};

use crate::bell::Bell;
use crate::connect::{Place, Syn};
use crate::endpoint::Endpoint;
use crate::multicast::Member;
use crate::packet::Due;
use crate::region::Region;

pub(crate) struct Dom {
    pub(crate) bell: Arc<Bell>,
    pub(crate) eps: BTreeMap<EpId, Endpoint>,
    /// Endpoints with something queued, so that a thousand idle ones cost nothing.
    pub(crate) busy: BTreeSet<EpId>,
    /// Endpoints that wait for an answer, each until its deadline.
    pub(crate) dialing: BTreeMap<EpId, Instant>,
    pub(crate) listeners: BTreeMap<ListenerId, Place>,
    /// Connection attempts on their way here.
    pub(crate) syns: VecDeque<(Due, Syn)>,
    /// Posted receives, in order.
    pub(crate) recvs: VecDeque<(OpId, Slot)>,
    /// Events that wait for `poll`.
    pub(crate) ready: VecDeque<Event>,
    pub(crate) regions: BTreeMap<u64, Region>,
    pub(crate) groups: BTreeMap<GroupId, Member>,
    pub(crate) polls: u64,
    /// Whether it was killed: it hears and says nothing any more.
    pub(crate) dead: bool,
}

impl Dom {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self {
            bell,
            eps: BTreeMap::new(),
            busy: BTreeSet::new(),
            dialing: BTreeMap::new(),
            listeners: BTreeMap::new(),
            syns: VecDeque::new(),
            recvs: VecDeque::new(),
            ready: VecDeque::new(),
            regions: BTreeMap::new(),
            groups: BTreeMap::new(),
            polls: 0,
            dead: false,
        }
    }

    /// Queues an event for `poll`.
    pub(crate) fn report(&mut self, event: Event) {
        self.ready.push_back(event);
        self.bell.ring();
    }

    /// Says that `ep` has something queued.
    pub(crate) fn touch(&mut self, ep: EpId) {
        self.busy.insert(ep);
        self.bell.ring();
    }
}
