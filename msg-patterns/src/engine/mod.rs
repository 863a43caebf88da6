//! The engine: peers, their links and queues over any fabric, driven by whoever calls.
//!
//! [`Core`] is one socket: [`Net`] knows peers and bytes, the role knows the pattern. A turn polls
//! the fabrics, feeds links and role, runs what is due and posts what came of it. Nothing here
//! blocks or locks; `driver` decides which thread drives.

mod assembly;
mod batches;
mod drops;
pub(crate) mod endpoints;
pub(crate) mod inbound;
pub(crate) mod inbox;
mod links;
mod outbound;
pub(crate) mod peer;
mod posting;
mod queue;
mod rendezvous;

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fabric_core::{Domain, EpId, Event, ListenerId, OpId, Pool, Slot};
use msg_proto::types::SocketType;
use slab::Slab;

use crate::backend::Backends;
use crate::ids::IdMap;
use crate::monitor::{Counters, Monitors, PeerId};
use crate::options::Options;
use crate::roles::Role;
use crate::{Error, ErrorKind};

use batches::{Batch, Members};
use endpoints::{Bound, Connector};
use inbound::RESERVED_SLOTS;
pub(crate) use outbound::Room;
use peer::Peer;
use rendezvous::Transfer;

/// Bytes of a slot: a 64 KiB message and its frames.
const SLOT_BYTES: usize = (64 << 10) + 1024;
/// Receives kept posted in each domain, at first and at most: most sockets have one peer.
const POSTED_MIN: usize = 4;
const POSTED_MAX: usize = 32;
/// Slots that batches on their way out may use.
const SENDING_SLOTS: usize = 64;
/// Slots that may be lent to the application as received messages.
const LENT_SLOTS: usize = 64;
/// Events taken from a domain at a time.
const EVENTS_MAX: usize = 256;
/// Polls in a row before a deadline is kept although more arrives.
const POLLS_BEFORE_DUE_MAX: usize = 64;

/// Sockets made in this process.
static SOCKETS: AtomicU64 = AtomicU64::new(0);

/// One opened provider.
pub(crate) struct Port {
    pub(crate) domain: Box<dyn Domain>,
    schemes: &'static [&'static str],
    by_ep: IdMap<EpId, PeerId>,
    listeners: HashMap<ListenerId, usize>,
    posted: usize,
    /// Receives kept posted now.
    posted_goal: usize,
}

impl Port {
    /// So much came in at once: where that is much for the receives, there are more from now on.
    fn post_more_than(&mut self, found: usize) {
        if found > self.posted_goal / 2 {
            self.posted_goal = (2 * self.posted_goal).min(POSTED_MAX);
        }
    }
}

/// Peers and bytes of one socket.
pub(crate) struct Net {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    #[cfg(feature = "metrics")]
    pub(crate) published: Counters,
    pub(crate) monitors: Monitors,
    pub(crate) ports: Vec<Port>,
    pub(crate) peers: Slab<Peer>,
    pub(crate) kind: SocketType,
    /// Counts the sockets of this process.
    pub(crate) number: u64,
    one_connect_each: bool,
    abilities: u8,
    instance: u64,
    pub(crate) backends: Backends,
    start: Instant,
    pool: Option<Pool>,
    /// The application holds so many slots that received messages are copied out of theirs.
    pool_short: bool,
    /// Small slots for what is copied out of received ones.
    copies: OnceCell<Option<Pool>>,
    /// A slot that a small message left in, for the next one.
    spare: Option<Slot>,
    /// The version of the role's filter, from 1.
    pub(crate) filter: u64,
    batch_bytes_max: usize,
    batches: Slab<Batch>,
    /// Counts revocations of what batches were allowed to take.
    allowance_issue: u64,
    connectors: Slab<Connector>,
    /// Peers that this side has given up connecting to, until the role has been told.
    stopped: Vec<PeerId>,
    bound: Slab<Bound>,
    last_endpoint: Option<fabric_core::Addr>,
    transfers: IdMap<(usize, OpId), Transfer>,
    transfers_waiting: VecDeque<Transfer>,
    deadline: Option<Duration>,
    epoch_next: u32,
    posted_since_flush: bool,
    /// A message was queued for a peer that could take none.
    queued_since_flush: bool,
    pub(crate) closing: bool,
    /// Something happened that sleeping threads may not have been told of.
    pub(crate) progressed: bool,
    scratch_peers: Vec<PeerId>,
    /// Memory for the members of the next batch.
    spare_members: Members,
    scratch_events: Vec<Event>,
}

/// What a look for what came in brought.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    anything: bool,
    at: Option<Duration>,
}

impl Heard {
    /// When that was. The clock is read for the first who asks: mostly nobody has to know.
    fn at(&mut self, net: &Net) -> Duration {
        *self.at.get_or_insert_with(|| net.now())
    }
}

/// One socket without its lock.
pub(crate) struct Core<R> {
    pub(crate) net: Net,
    pub(crate) role: R,
}

impl Net {
    pub(crate) fn new<R: Role>(options: Options, abilities: u8, backends: Backends) -> Self {
        Self {
            options,
            counters: Counters::default(),
            #[cfg(feature = "metrics")]
            published: Counters::default(),
            monitors: Monitors::default(),
            ports: Vec::new(),
            // Tables grow by four at least, and most sockets have one peer.
            peers: Slab::with_capacity(1),
            kind: R::TYPE,
            number: SOCKETS.fetch_add(1, Ordering::Relaxed) + 1,
            one_connect_each: R::ONE_CONNECT_EACH,
            abilities,
            instance: fastrand::u64(..),
            backends,
            start: Instant::now(),
            pool: None,
            pool_short: false,
            copies: OnceCell::new(),
            spare: None,
            filter: 1,
            batch_bytes_max: 0,
            batches: Slab::with_capacity(1),
            allowance_issue: 0,
            connectors: Slab::with_capacity(1),
            stopped: Vec::new(),
            bound: Slab::new(),
            last_endpoint: None,
            transfers: IdMap::default(),
            transfers_waiting: VecDeque::new(),
            deadline: None,
            epoch_next: 0,
            posted_since_flush: false,
            queued_since_flush: false,
            closing: false,
            progressed: false,
            scratch_peers: Vec::new(),
            spare_members: Members::new(),
            scratch_events: Vec::new(),
        }
    }

    /// Time since the socket was made, on the clock of its fabric.
    pub(crate) fn now(&self) -> Duration {
        let now = self.ports.first().map_or_else(Instant::now, |port| port.domain.now());
        now.saturating_duration_since(self.start)
    }

    pub(crate) fn peer(&self, peer: PeerId) -> &Peer {
        // Invariant: a PeerId is handed out with its peer and taken back from roles in `on_gone`.
        &self.peers[peer.0 as usize]
    }

    pub(crate) fn peer_mut(&mut self, peer: PeerId) -> &mut Peer {
        // Invariant: as in `peer`.
        &mut self.peers[peer.0 as usize]
    }

    pub(crate) fn peer_ids(&self) -> Vec<PeerId> {
        self.peers.iter().map(|(key, _)| PeerId(key as u32)).collect()
    }

    /// The port that serves `addr`, opened if need be: one for each device that addresses mean.
    fn port_for(&mut self, addr: &fabric_core::Addr) -> Result<usize, Error> {
        let fabric = self.backends.find(addr)?.clone();
        let device = fabric.device_for(addr)?;
        let serves = |port: &Port| {
            let on = &port.domain.caps().device;
            port.schemes.contains(&addr.scheme()) && device.as_ref().is_none_or(|name| name == on)
        };
        if let Some(port) = self.ports.iter().position(serves) {
            return Ok(port);
        }
        let domain = fabric.open_boxed_for(addr)?;
        self.add_port(domain, fabric.schemes())
    }

    fn add_port(
        &mut self,
        mut domain: Box<dyn Domain>,
        schemes: &'static [&'static str],
    ) -> Result<usize, Error> {
        let bytes_max = domain.caps().message_bytes_max.min(SLOT_BYTES);
        let pool = self.pool_of(bytes_max)?;
        domain.register(&pool)?;
        if self.ports.is_empty() {
            // Domains count time their own way; the socket's clock starts with its first one.
            self.start = domain.now();
        }
        self.batch_bytes_max = self.batch_bytes_max.min(bytes_max);
        self.ports.reserve_exact(1);
        self.ports.push(Port {
            domain,
            schemes,
            by_ep: IdMap::default(),
            listeners: HashMap::new(),
            posted: 0,
            posted_goal: POSTED_MIN,
        });
        let port = self.ports.len() - 1;
        self.post_receives(port);
        Ok(port)
    }

    fn pool_of(&mut self, slot_bytes: usize) -> Result<Pool, Error> {
        if let Some(pool) = &self.pool {
            return Ok(pool.clone());
        }
        let slots = RESERVED_SLOTS.max(POSTED_MAX) + SENDING_SLOTS + LENT_SLOTS;
        let pool = Pool::new(slot_bytes, slots)
            .map_err(|error| Error::new(ErrorKind::Limit, error.to_string()))?;
        self.batch_bytes_max = slot_bytes;
        self.pool = Some(pool.clone());
        Ok(pool)
    }

    /// While messages come, whoever waits for them goes first: the next poll that finds nothing posts
    /// again what a few used up.
    fn post_receives_if_few(&mut self, port: usize) {
        let Port { posted, posted_goal, .. } = self.ports[port];
        if posted <= posted_goal / 2 {
            self.post_receives(port);
        }
    }

    /// Slots that are neither free nor posted to receive: on their way out, or lent.
    #[cfg(test)]
    pub(crate) fn slots_out(&self) -> usize {
        let pool = self.pool.as_ref();
        let taken = pool.map_or(0, |pool| pool.slots() - pool.free());
        let posted: usize = self.ports.iter().map(|port| port.posted).sum();
        taken - posted - usize::from(self.spare.is_some())
    }

    /// Keeps receives posted as far as the pool goes.
    fn post_receives(&mut self, port: usize) {
        while self.ports[port].posted < self.ports[port].posted_goal {
            let Some(slot) = self.pool.as_ref().and_then(Pool::take) else { return };
            if !self.repost(port, slot) {
                return;
            }
        }
    }

    /// Posts one slot to receive into; says whether it was taken.
    fn repost(&mut self, port: usize, mut slot: Slot) -> bool {
        slot.set_len(0);
        let Some(port) = self.ports.get_mut(port) else { return false };
        let posted = port.domain.post_recv(slot).is_ok();
        port.posted += usize::from(posted);
        posted
    }

    /// Closes all domains.
    pub(crate) fn close_ports(&mut self) {
        self.count_all();
        #[cfg(feature = "metrics")]
        self.publish_close();
        self.batches.clear();
        self.ports.clear();
        self.peers.clear();
        self.spare = None;
        self.pool = None;
        self.copies.take();
    }

    /// Makes sure that `on_timeout` runs by `at`.
    pub(crate) fn note(&mut self, at: Option<Duration>) {
        self.deadline = [self.deadline, at].into_iter().flatten().min();
    }
}

impl<R: Role> Core<R> {
    /// One turn; says whether anything happened. Never blocks.
    pub(crate) fn turn(&mut self) -> bool {
        self.net.flush();
        let mut heard = self.poll_ports();
        let progress = self.run_due(&mut heard) || heard.anything;
        self.after(progress)
    }

    /// As `turn`, of one who has just taken one: everything was flushed, and what is due can wait for
    /// the next.
    pub(crate) fn look(&mut self) -> bool {
        let progress = self.poll_ports().anything;
        self.after(progress)
    }

    /// Takes what a flush has left behind, for those who look for more soon: providers need not ask
    /// anybody for one event that they have.
    pub(crate) fn hear_one(&mut self) -> bool {
        let progress = self.poll_ports_for(1).anything;
        self.after(progress)
    }

    fn after(&mut self, progress: bool) -> bool {
        if progress {
            self.net.flush();
            self.net.progressed = true;
        }
        progress
    }

    /// Takes what came in.
    fn poll_ports(&mut self) -> Heard {
        self.poll_ports_for(EVENTS_MAX)
    }

    fn poll_ports_for(&mut self, events_max: usize) -> Heard {
        let mut heard = Heard::default();
        for port in 0..self.net.ports.len() {
            self.poll_port(port, events_max, &mut heard);
        }
        heard
    }

    fn poll_port(&mut self, port: usize, events_max: usize, heard: &mut Heard) {
        let mut events = std::mem::take(&mut self.net.scratch_events);
        let found = self.net.ports[port].domain.poll(&mut events, events_max);
        if found == 0 {
            self.net.scratch_events = events;
            return self.net.post_receives(port);
        }
        heard.anything = true;
        self.net.ports[port].post_more_than(found);
        for event in events.drain(..) {
            self.on_event(port, event, heard);
        }
        self.net.revoke_allowances();
        self.net.scratch_events = events;
        self.net.post_receives_if_few(port);
    }

    fn on_event(&mut self, port: usize, event: Event, heard: &mut Heard) {
        match event {
            Event::Received { ep, slot, .. } => self.on_slot(port, ep, slot, heard),
            Event::Sent { ep, buf, result, .. } => {
                self.net.reclaim(buf, R::GATHERS);
                self.on_sent(port, ep, result.is_ok());
            }
            Event::RmaDone { ep, op, returned, result } => {
                self.on_read(port, ep, op, returned, result);
            }
            Event::Connected { ep, .. } => self.on_connected(port, ep),
            Event::Accepted { ep, listener, peer } => self.on_accepted(port, ep, listener, peer),
            Event::AcceptFailed { error, .. } => self.net.on_accept_failed(&error),
            Event::Closed { ep, why } => self.on_closed(port, ep, &why),
            Event::Multicast { .. } => {}
        }
    }

    fn on_sent(&mut self, port: usize, ep: EpId, left: bool) {
        let Some(&peer) = self.net.ports[port].by_ep.get(&ep) else { return };
        if !left {
            return self.net.on_broken(peer);
        }
        let entry = self.net.peer_mut(peer);
        entry.in_flight = entry.in_flight.saturating_sub(1);
        self.net.post_waiting(peer);
        self.on_writable(peer);
    }

    /// Credit or a slot came free for `peer`.
    pub(crate) fn on_writable(&mut self, peer: PeerId) {
        self.net.pump(peer);
        self.role.on_writable(&mut self.net, peer);
    }

    /// Runs deadlines that are due. What has arrived counts first: when this side was slow, peers
    /// are not held silent while their words wait to be read.
    fn run_due(&mut self, heard: &mut Heard) -> bool {
        let due = self.next_deadline().is_some_and(|at| at <= heard.at(&self.net));
        if due {
            let mut polls = 0..POLLS_BEFORE_DUE_MAX;
            while polls.next().is_some() && self.poll_ports().anything {}
            self.on_timeout();
        }
        due
    }

    fn on_timeout(&mut self) {
        let now = self.net.now();
        self.net.revoke_allowances();
        self.net.deadline = None;
        self.net.reconnect_due(now);
        self.end_stopped();
        for peer in self.net.peer_ids() {
            if let Some(link) = &mut self.net.peer_mut(peer).link {
                link.on_timeout(now);
            }
            self.drain_link(peer);
            if self.net.peers.contains(peer.0 as usize) {
                self.net.note_deadline(peer);
            }
        }
        self.role.on_timeout(&mut self.net, now);
    }

    /// When the next deadline is due.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        [self.net.deadline, self.role.poll_timeout()].into_iter().flatten().min()
    }
}

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Net")
            .field("kind", &self.kind)
            .field("peers", &self.peers.len())
            .finish_non_exhaustive()
    }
}
