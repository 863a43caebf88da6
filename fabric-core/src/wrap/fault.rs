//! A domain in which things go wrong by plan.

mod remote;

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use fabric_mem::{Pool, Slot};

use super::dice::Dice;
use crate::{
    Addr, Armed, Atomics, Caps, Domain, EpId, Error, ErrorKind, Event, Listener, ListenerId,
    Multicast, OpId, Rejected, Rma, SendBuf, Waker,
};

/// What goes wrong, and how often. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// All chance comes from this; the same calls in the same order meet the same faults.
    pub seed: u64,
    /// Of 1000 posts, how many are refused as `Full`, with their buffer.
    pub refused_posts_per_mille: u16,
    /// Of 1000 events, how many are held back, and all events behind them.
    pub held_events_per_mille: u16,
    /// For how many polls an event is held back at most.
    pub held_polls_max: u32,
    /// Of 1000 events of endpoints, how many break their endpoint: it closes as `Reset` here and
    /// as `Closed` at the peer.
    pub breaks_per_mille: u16,
    /// Of 1000 calls of `wait` and `arm`, how many end at once without a reason.
    pub spurious_wakes_per_mille: u16,
}

/// Lets things go wrong in the domain inside, as far as the contract allows it.
#[derive(Debug)]
pub struct Fault<D> {
    inner: D,
    plan: FaultPlan,
    dice: Dice,
    /// Events that the inner domain reported and this one did not yet, in order, each with the poll
    /// from which on it may go.
    held: VecDeque<(u64, Event)>,
    polls: u64,
    /// Endpoints that were broken and have not reported `Closed` yet.
    broken: BTreeSet<EpId>,
}

impl<D: Domain> Fault<D> {
    /// Lets things go wrong in `inner` as `plan` says.
    pub fn new(inner: D, plan: FaultPlan) -> Self {
        let dice = Dice::new(plan.seed);
        Self { inner, plan, dice, held: VecDeque::new(), polls: 0, broken: BTreeSet::new() }
    }

    /// The domain inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The domain inside, to call past the faults. Events that are held back stay held back.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// Changes what goes wrong from now on; the seed of the new plan is not used.
    pub fn set_plan(&mut self, plan: FaultPlan) {
        self.plan = plan;
    }

    fn refuses_post(&mut self) -> bool {
        self.dice.strikes(self.plan.refused_posts_per_mille)
    }

    fn must_not_sleep(&mut self) -> bool {
        !self.held.is_empty() || self.dice.strikes(self.plan.spurious_wakes_per_mille)
    }

    /// Takes one event of the inner domain in.
    fn take_in(&mut self, event: Event) {
        let event = self.as_broken(event);
        if let Some(ep) = breakable(&event)
            && self.dice.strikes(self.plan.breaks_per_mille)
            && self.broken.insert(ep)
        {
            self.inner.close(ep);
        }
        let delay = match self.dice.strikes(self.plan.held_events_per_mille) {
            true => self.dice.up_to(self.plan.held_polls_max),
            false => 0,
        };
        self.held.push_back((self.polls + delay, event));
    }

    /// The close of a broken endpoint is no wish of the caller.
    fn as_broken(&mut self, event: Event) -> Event {
        match event {
            Event::Closed { ep, .. } if self.broken.remove(&ep) => {
                let why = Error::new(ErrorKind::Reset, "the connection broke, as planned");
                Event::Closed { ep, why }
            }
            event => event,
        }
    }

    fn let_go(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        let now = self.polls;
        let free = self.held.iter().take(max).take_while(|(due, _)| *due <= now).count();
        events.extend(self.held.drain(..free).map(|(_, event)| event));
        free
    }
}

/// The endpoint that an event shows to be alive.
fn breakable(event: &Event) -> Option<EpId> {
    match event {
        Event::Connected { ep, .. }
        | Event::Accepted { ep, .. }
        | Event::Sent { ep, .. }
        | Event::Received { ep, .. }
        | Event::RmaDone { ep, .. } => Some(*ep),
        Event::Closed { .. } | Event::AcceptFailed { .. } | Event::Multicast { .. } => None,
    }
}

fn refused() -> Error {
    Error::new(ErrorKind::Full, "the queue is full, as planned: poll and try again")
}

impl<D: Domain> Domain for Fault<D> {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        self.inner.register(pool)
    }

    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        self.inner.listen(addr)
    }

    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        self.inner.unlisten(listener)
    }

    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        self.inner.connect(addr)
    }

    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        if self.refuses_post() {
            return Err(Rejected::new(buf, refused()));
        }
        self.inner.post_send(ep, buf)
    }

    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        if self.refuses_post() {
            return Err(Rejected::new(slot, refused()));
        }
        self.inner.post_recv(slot)
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        self.polls += 1;
        // What is held counts, so that no more is held than a caller takes at once.
        let mut fresh = Vec::new();
        self.inner.poll(&mut fresh, max.saturating_sub(self.held.len()));
        fresh.into_iter().for_each(|event| self.take_in(event));
        self.let_go(events, max)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        if self.must_not_sleep() {
            return Ok(());
        }
        self.inner.wait(timeout)
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.inner.wait_fd()
    }

    fn arm(&mut self) -> Armed {
        if self.must_not_sleep() {
            return Armed::Ready;
        }
        self.inner.arm()
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn close(&mut self, ep: EpId) {
        self.inner.close(ep);
    }

    fn rma(&mut self) -> Option<&mut dyn Rma> {
        self.inner.rma()?;
        Some(self)
    }

    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        self.inner.atomics()?;
        Some(self)
    }

    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        self.inner.multicast()?;
        Some(self)
    }
}
