//! PULL: messages of all peers, in turn; acknowledged where the pusher asks for it.

use std::collections::{HashMap, VecDeque};

use msg_proto::fair_queue::FairQueue;
use msg_proto::link::PeerInfo;
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, abilities};

use super::{Role, next_of_run, next_ready};
use crate::Message;
use crate::engine::Net;
use crate::engine::inbox::Incoming;
use crate::monitor::PeerId;

/// Acknowledgements are put off until so many have come together, or nothing else is to do.
const ACKS_MAX: u64 = 64;

/// A received message that is to be acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unacked {
    peer: PeerId,
    epoch: u32,
    index: u64,
}

/// What was received over one connection and is not acknowledged. Several threads may finish their
/// messages in any order; what is told is how many are finished without a gap.
#[derive(Debug, Default)]
struct Account {
    epoch: u32,
    finished: u64,
    told: u64,
    open: VecDeque<bool>,
}

impl Account {
    fn finish(&mut self, index: u64) {
        let at = usize::try_from(index.saturating_sub(self.finished)).unwrap_or(usize::MAX);
        if let Some(done) = self.open.get_mut(at) {
            *done = true;
        }
        while self.open.front() == Some(&true) {
            self.open.pop_front();
            self.finished += 1;
        }
    }
}

/// The pulling end.
pub(crate) struct Puller {
    ready: FairQueue<PeerId>,
    accounts: HashMap<PeerId, Account>,
    /// Which pusher that asks for acknowledgement was last reached through a peer.
    instances: HashMap<PeerId, u64>,
    untold: bool,
}

impl Puller {
    pub(crate) fn new() -> Self {
        Self {
            ready: FairQueue::new(),
            accounts: HashMap::new(),
            instances: HashMap::new(),
            untold: false,
        }
    }

    /// The next message, if there is one, and what to finish when it was processed.
    pub(crate) fn pull(&mut self, net: &mut Net) -> Option<(Message, Option<Unacked>)> {
        let (peer, message) = next_ready(&mut self.ready, net)?;
        let unacked = self.open(net, peer, message.epoch);
        net.remove_if_read(peer);
        Some((Message::of(message.parts), unacked))
    }

    /// As `pull`, for the plain case: nothing is to be finished.
    #[inline(always)]
    pub(crate) fn pull_at_once(&mut self, net: &mut Net) -> Option<Message> {
        let plain = |info: Option<&PeerInfo>, _: &_| !info.is_some_and(asks_for_acks);
        next_of_run(&mut self.ready, net, plain).map(Message::single)
    }

    fn open(&mut self, net: &Net, peer: PeerId, epoch: u32) -> Option<Unacked> {
        let entry = net.peers.get(peer.0 as usize)?;
        if !entry.info.as_ref().is_some_and(asks_for_acks) || entry.epoch != epoch {
            return None;
        }
        let account = self.accounts.entry(peer).or_default();
        if account.epoch != epoch {
            *account = Account { epoch, ..Account::default() };
        }
        let index = account.finished + account.open.len() as u64;
        account.open.push_back(false);
        Some(Unacked { peer, epoch, index })
    }

    /// A message was processed.
    pub(crate) fn finish(&mut self, net: &mut Net, unacked: Unacked) {
        let Some(account) = self.accounts.get_mut(&unacked.peer) else { return };
        if account.epoch != unacked.epoch {
            return;
        }
        account.finish(unacked.index);
        self.untold = true;
        if account.finished - account.told >= ACKS_MAX {
            self.tell(net);
        }
    }

    /// A message was processed, and its pusher is told at once.
    pub(crate) fn finish_now(&mut self, net: &mut Net, unacked: Unacked) {
        self.finish(net, unacked);
        self.tell(net);
    }

    /// Sends the acknowledgements that were put off.
    fn tell(&mut self, net: &mut Net) {
        self.untold = false;
        for (&peer, account) in &mut self.accounts {
            let current = net
                .peers
                .get(peer.0 as usize)
                .is_some_and(|entry| entry.epoch == account.epoch && entry.is_up());
            if current && account.finished > account.told {
                account.told = account.finished;
                net.control(peer, &Frame::Ack { count: account.finished });
            }
        }
    }
}

fn asks_for_acks(info: &PeerInfo) -> bool {
    info.abilities & abilities::ACKS != 0
}

impl Role for Puller {
    const TYPE: SocketType = SocketType::Pull;

    fn has_incoming(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A pusher that is reached again sends again what was not acknowledged: what is unread of it
    /// here would come twice. One that took its place knows nothing of that.
    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        let Some(info) = net.peer(peer).info.filter(asks_for_acks) else { return };
        if self.instances.insert(peer, info.instance) == Some(info.instance) {
            net.counters.discarded += net.empty_inbox(peer);
        }
    }

    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        self.accounts.remove(&peer);
        if last {
            self.instances.remove(&peer);
        }
        if last && net.peer(peer).inbox.is_empty() {
            self.ready.remove(peer);
        }
    }

    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        true
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, _net: &mut Net, peer: PeerId) {
        self.ready.ready(peer);
    }

    fn on_idle(&mut self, net: &mut Net) {
        if self.untold {
            self.tell(net);
        }
    }
}
