//! The network: all domains, the clock, the dice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric_core::{ErrorKind, Event, OpId};
use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};

use crate::connect::{Owner, Place};
use crate::dom::Dom;
use crate::endpoint::{At, Endpoint};
use crate::packet::{Due, Packet, Side};
use crate::{Bug, SimDomain, SimOptions};

/// The usual delay of a packet: up to this many polls of its receiver, or this much virtual time.
const DELAY_POLLS: u64 = 1;
const DELAY: Duration = Duration::from_micros(100);

/// A network in this process. Cheap to clone; clones are the same network.
#[derive(Clone)]
pub struct SimNet(Arc<Mutex<Net>>);

impl SimNet {
    /// A network without faults, in real time.
    pub fn new() -> Self {
        Self::with(SimOptions::default())
    }

    /// A network as `options` say.
    pub fn with(options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(Net::new(options))))
    }

    /// Moves the clock. Does nothing unless the network has virtual time.
    pub fn advance(&self, by: Duration) {
        let mut net = self.lock();
        net.elapsed += by;
        for dom in net.doms.values() {
            dom.bell.ring();
        }
    }

    /// Kills a domain as if its process had died: its endpoints are reset after what they had
    /// handed over, its addresses are free, and it hears nothing any more.
    pub fn kill(&self, domain: &SimDomain) {
        let gone = self.lock().kill(domain.id());
        drop(gone);
    }

    /// Holds everything between two domains back until [`heal`](Self::heal). Nothing is lost.
    pub fn partition(&self, a: &SimDomain, b: &SimDomain) {
        self.lock().cut.extend([(a.id(), b.id()), (b.id(), a.id())]);
    }

    /// Ends all partitions.
    pub fn heal(&self) {
        let mut net = self.lock();
        net.cut.clear();
        for dom in net.doms.values() {
            dom.bell.ring();
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Net> {
        self.0.lock()
    }
}

impl Default for SimNet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimNet")
    }
}

pub(crate) struct Net {
    pub(crate) options: SimOptions,
    pub(crate) rng: Rng,
    pub(crate) doms: BTreeMap<u64, Dom>,
    pub(crate) places: BTreeMap<Place, Owner>,
    /// Pairs of domains, from and to, that do not hear each other.
    pub(crate) cut: BTreeSet<(u64, u64)>,
    /// Messages handed over so far; planted bugs strike every so many.
    pub(crate) carried: u64,
    /// Who joined which group; for a planted bug.
    pub(crate) joined_once: BTreeSet<(u64, IpAddr)>,
    epoch: Instant,
    elapsed: Duration,
    last_id: u64,
}

impl Net {
    fn new(options: SimOptions) -> Self {
        Self {
            rng: Rng::with_seed(options.seed),
            options,
            doms: BTreeMap::new(),
            places: BTreeMap::new(),
            cut: BTreeSet::new(),
            carried: 0,
            joined_once: BTreeSet::new(),
            epoch: Instant::now(),
            elapsed: Duration::ZERO,
            last_id: 0,
        }
    }

    /// A number that was never used before in this network.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn fresh_op(&mut self) -> OpId {
        OpId(self.fresh_id())
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.options.bug == Some(bug)
    }

    /// Throws the dice for a fault.
    pub(crate) fn strikes(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.rng.u16(0..1000) < per_mille
    }

    pub(crate) fn now(&self) -> Instant {
        if self.options.virtual_time { self.epoch + self.elapsed } else { Instant::now() }
    }

    pub(crate) fn ep(&self, at: At) -> Option<&Endpoint> {
        self.doms.get(&at.dom)?.eps.get(&at.ep)
    }

    pub(crate) fn ep_mut(&mut self, at: At) -> Option<&mut Endpoint> {
        self.doms.get_mut(&at.dom)?.eps.get_mut(&at.ep)
    }

    pub(crate) fn report(&mut self, dom: u64, event: Event) {
        if let Some(dom) = self.doms.get_mut(&dom) {
            dom.report(event);
        }
    }

    /// Puts a packet on its way to `to`. One for an endpoint that is gone is lost.
    pub(crate) fn dispatch(&mut self, to: At, packet: Packet) {
        let due = self.draw_due(to.dom);
        if let Some(ep) = self.ep_mut(to) {
            ep.inbox.push_back((due, packet));
            self.touch(to);
        }
    }

    /// As `dispatch`, for remote memory traffic.
    pub(crate) fn dispatch_side(&mut self, to: At, side: Side) {
        let due = self.draw_due(to.dom);
        if let Some(ep) = self.ep_mut(to) {
            ep.side.push_back((due, side));
            self.touch(to);
        }
    }

    /// Tells the endpoint at `to` that it is over.
    pub(crate) fn dismiss(&mut self, to: At, kind: ErrorKind, why: &'static str) {
        self.dispatch(to, Packet::Bye(kind, why));
    }

    /// When something sent now arrives at `dom`.
    pub(crate) fn draw_due(&mut self, dom: u64) -> Due {
        if self.options.virtual_time {
            let delay = DELAY + self.options.faults.delay_max;
            return self.elapsed_ns() + self.rng.u64(0..=delay.as_nanos() as u64);
        }
        let delay = DELAY_POLLS + u64::from(self.options.faults.delay_polls_max);
        self.doms.get(&dom).map_or(0, |dom| dom.polls) + self.rng.u64(0..=delay)
    }

    pub(crate) fn is_due(&self, dom: u64, due: Due) -> bool {
        let now = match self.options.virtual_time {
            true => self.elapsed_ns(),
            false => self.doms.get(&dom).map_or(0, |dom| dom.polls),
        };
        due <= now
    }

    fn touch(&mut self, at: At) {
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.touch(at.ep);
        }
    }

    fn elapsed_ns(&self) -> u64 {
        self.elapsed.as_nanos() as u64
    }
}
