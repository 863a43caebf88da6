//! One endpoint of a domain, with its events one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use msg_patterns::fabric_core::{Caps, Domain, EpId, ErrorKind, Event, Pool, SendBuf, Slot};

use super::check;
use crate::Error;
use crate::control::PATIENCE;
use crate::plan::Task;
use crate::serve::Part;
use crate::session::Run;

/// Events taken from the domain at once.
const EVENTS_MAX: usize = 64;

/// Longest sleep before looking whether patience is over.
const NAP: Duration = Duration::from_secs(1);

/// Empty polls between two looks at the clock where nobody sleeps.
const POLLS_PER_LOOK: u32 = 4096;

/// Most memory for buffers of one direction, in bytes.
const POOL_BYTES_MAX: usize = 64 << 20;

/// A domain with one peer.
pub(super) struct Link {
    pub(super) domain: Box<dyn Domain>,
    pub(super) ep: EpId,
    busy: bool,
    /// Set when the run is given up.
    over: Arc<AtomicBool>,
    /// What happened, the last first.
    events: Vec<Event>,
}

impl Link {
    /// Connects, with `receives` posted before the peer can send.
    ///
    /// # Errors
    /// When the fabric refuses, or cannot do what is asked for.
    pub(super) fn connect(run: &Run<'_>, receives: usize) -> Result<Self, Error> {
        let domain = run.context.open_domain(&run.addr)?;
        let mut link = Self::new(domain, &run.task, run.over.clone(), receives)?;
        link.ep = link.domain.connect(&run.addr)?;
        match link.next()? {
            Event::Connected { .. } => Ok(link),
            other => Err(unexpected(&other)),
        }
    }

    /// Listens, and takes the first peer.
    ///
    /// # Errors
    /// As `connect`.
    pub(super) fn accept(part: &Part, receives: usize) -> Result<Self, Error> {
        let domain = part.context.open_domain(&part.addr)?;
        let mut link = Self::new(domain, &part.task, part.over.clone(), receives)?;
        let listener = link.domain.listen(&part.addr)?;
        part.ready(&listener.addr);
        match link.next()? {
            Event::Accepted { ep, .. } => link.ep = ep,
            other => return Err(unexpected(&other)),
        }
        Ok(link)
    }

    fn new(
        domain: Box<dyn Domain>,
        task: &Task,
        over: Arc<AtomicBool>,
        receives: usize,
    ) -> Result<Self, Error> {
        check(task, domain.caps())?;
        let busy = task.settings.busy_poll;
        let events = Vec::with_capacity(EVENTS_MAX);
        let mut link = Self { domain, ep: EpId(u64::MAX), busy, over, events };
        for slot in link.slots(task, receives)? {
            link.domain.post_recv(slot)?;
        }
        Ok(link)
    }

    /// Registered buffers for messages of the run; `wanted` of them if memory allows.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn slots(&mut self, task: &Task, wanted: usize) -> Result<Vec<Slot>, Error> {
        let slot_bytes = task.size.max(SMALLEST_SLOT_BYTES);
        let slots = wanted.min(POOL_BYTES_MAX / slot_bytes).max(1);
        let pool = Pool::new(slot_bytes, slots).map_err(|error| Error::Host(error.to_string()))?;
        self.domain.register(&pool)?;
        Ok((0..slots).filter_map(|_| pool.take()).collect())
    }

    /// The next event.
    ///
    /// # Errors
    /// `Peer` when the endpoint closed, `TimedOut` when nothing happens.
    pub(super) fn next(&mut self) -> Result<Event, Error> {
        match self.next_or_end()? {
            Some(event) => Ok(event),
            None => Err(Error::Peer("it left in the middle of the run".into())),
        }
    }

    /// The next event, or nothing when the peer closed in order.
    ///
    /// # Errors
    /// As `next`.
    pub(super) fn next_or_end(&mut self) -> Result<Option<Event>, Error> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => self.wait()?,
        };
        match event {
            Event::Closed { why, .. } if why.kind() == ErrorKind::Closed => Ok(None),
            Event::Closed { why, .. } => Err(Error::Peer(why.to_string())),
            Event::Sent { result: Err(why), .. } | Event::RmaDone { result: Err(why), .. } => {
                Err(why.into())
            }
            Event::AcceptFailed { error, .. } => Err(error.into()),
            event => Ok(Some(event)),
        }
    }

    fn wait(&mut self) -> Result<Event, Error> {
        let mut since = None;
        let mut polls = 0_u32;
        loop {
            if self.has_event()
                && let Some(event) = self.events.pop()
            {
                return Ok(event);
            }
            polls = polls.wrapping_add(1);
            if !self.busy {
                self.domain.wait(Some(NAP))?;
            }
            if !self.busy || polls.is_multiple_of(POLLS_PER_LOOK) {
                self.bear(*since.get_or_insert_with(Instant::now))?;
            }
        }
    }

    fn bear(&self, since: Instant) -> Result<(), Error> {
        if self.over.load(Ordering::Relaxed) {
            return Err(Error::Peer("the run was given up".into()));
        }
        if since.elapsed() > PATIENCE {
            return Err(Error::TimedOut("nothing arrived for a minute".into()));
        }
        Ok(())
    }

    /// Whether an event is there without waiting.
    pub(super) fn has_event(&mut self) -> bool {
        if self.events.is_empty() {
            self.domain.poll(&mut self.events, EVENTS_MAX);
            self.events.reverse();
        }
        !self.events.is_empty()
    }

    /// Limits and abilities.
    pub(super) fn caps(&self) -> &Caps {
        self.domain.caps()
    }

    /// Closes the endpoint, and waits until everything posted is back.
    pub(super) fn close(mut self) {
        self.domain.close(self.ep);
        while !matches!(self.next_or_end(), Ok(None) | Err(_)) {}
    }
}

/// Notes such as keys fit every buffer.
const SMALLEST_SLOT_BYTES: usize = 64;

/// A message of the size that was agreed on.
pub(super) fn filled(mut slot: Slot, task: &Task) -> SendBuf {
    slot.set_len(task.size);
    SendBuf::from(slot)
}

pub(super) fn unexpected(event: &Event) -> Error {
    let text = format!("{event:?}");
    let name = text.split([' ', '{']).next().unwrap_or_default().to_owned();
    Error::Peer(format!("it does something that does not belong here ({name})"))
}

/// Every message must have the size that was agreed on.
pub(super) fn check_len(slot: &Slot, task: &Task) -> Result<(), Error> {
    let (len, size) = (slot.len(), task.size);
    if len == size { Ok(()) } else { Err(Error::Wrong(format!("{len} bytes came, not {size}"))) }
}
