//! A domain under test, with what it has reported so far.

use std::collections::VecDeque;
use std::time::Duration;

use fabric_core::{
    Domain, EpId, Error, Event, GroupId, ListenerId, OpId, Pool, Returned, SendBuf, Slot,
};

/// Bytes of the slots in a node's pool.
pub(crate) const SLOT_BYTES: usize = 4096;
/// Slots in a node's pool.
pub(crate) const SLOTS: usize = 256;
/// More events than any case has at once.
const EVENTS_MAX: usize = 1024;
/// The longest sleep between two polls.
const NAP: Duration = Duration::from_millis(1);

pub(crate) struct Node<D> {
    pub(crate) domain: D,
    pub(crate) pool: Pool,
    /// Events that nobody took yet, in the order they were reported.
    pub(crate) seen: VecDeque<Event>,
}

/// A `Received` event.
pub(crate) struct Received {
    pub(crate) ep: EpId,
    pub(crate) op: OpId,
    pub(crate) slot: Slot,
    pub(crate) imm: Option<u32>,
}

/// A `Sent` event.
pub(crate) struct Sent {
    pub(crate) ep: EpId,
    pub(crate) op: OpId,
    pub(crate) buf: SendBuf,
    pub(crate) result: Result<(), Error>,
}

/// A `Multicast` event.
pub(crate) struct Heard {
    pub(crate) group: GroupId,
    pub(crate) op: OpId,
    pub(crate) slot: Slot,
}

/// An `RmaDone` event.
pub(crate) struct Done {
    pub(crate) ep: EpId,
    pub(crate) op: OpId,
    pub(crate) returned: Returned,
    pub(crate) result: Result<(), Error>,
}

impl<D: Domain> Node<D> {
    pub(crate) fn new(mut domain: D) -> Self {
        let pool = Pool::new(SLOT_BYTES, SLOTS).expect("a small pool");
        domain.register(&pool).expect("a small pool can be registered");
        Self { domain, pool, seen: VecDeque::new() }
    }

    /// Polls once and says whether anything came.
    pub(crate) fn turn(&mut self) -> bool {
        let mut events = Vec::new();
        let count = self.domain.poll(&mut events, EVENTS_MAX);
        assert_eq!(count, events.len(), "poll must say how many events it appended");
        self.seen.extend(events);
        count > 0
    }

    /// Sleeps a moment, unless there is something to do.
    pub(crate) fn nap(&mut self) {
        self.domain.wait(Some(NAP)).expect("a healthy domain can wait");
    }

    /// A slot of the pool.
    pub(crate) fn slot(&self) -> Slot {
        self.pool.take().expect("a case that takes no more slots than there are")
    }

    /// A slot of the pool that holds `bytes`.
    pub(crate) fn filled(&self, bytes: &[u8]) -> Slot {
        let mut slot = self.slot();
        assert!(slot.append(bytes), "a message that fits a slot");
        slot
    }

    /// Posts `count` receives.
    pub(crate) fn offer(&mut self, count: usize) -> Vec<OpId> {
        (0..count).map(|_| self.offer_slot(self.slot())).collect()
    }

    pub(crate) fn offer_slot(&mut self, slot: Slot) -> OpId {
        self.domain.post_recv(slot).expect("a receive within the depth")
    }

    /// Posts a message.
    pub(crate) fn send(&mut self, ep: EpId, bytes: &[u8]) -> OpId {
        let slot = self.filled(bytes);
        self.send_buf(ep, slot.into())
    }

    pub(crate) fn send_buf(&mut self, ep: EpId, buf: SendBuf) -> OpId {
        self.domain.post_send(ep, buf).expect("a send within the limits")
    }

    /// Takes the first event that `wanted` makes something of.
    pub(crate) fn pick<T>(
        &mut self,
        wanted: impl Fn(&Event) -> bool,
        make: impl Fn(Event) -> Option<T>,
    ) -> Option<T> {
        let at = self.seen.iter().position(wanted)?;
        make(self.seen.remove(at)?)
    }

    pub(crate) fn connected(&mut self) -> Option<EpId> {
        let wanted = |event: &Event| matches!(event, Event::Connected { .. });
        self.pick(wanted, |event| match event {
            Event::Connected { ep, .. } => Some(ep),
            _ => None,
        })
    }

    pub(crate) fn accepted(&mut self) -> Option<(EpId, ListenerId)> {
        let wanted = |event: &Event| matches!(event, Event::Accepted { .. });
        self.pick(wanted, |event| match event {
            Event::Accepted { ep, listener, .. } => Some((ep, listener)),
            _ => None,
        })
    }

    pub(crate) fn received(&mut self) -> Option<Received> {
        let wanted = |event: &Event| matches!(event, Event::Received { .. });
        self.pick(wanted, |event| match event {
            Event::Received { ep, op, slot, imm } => Some(Received { ep, op, slot, imm }),
            _ => None,
        })
    }

    pub(crate) fn sent(&mut self) -> Option<Sent> {
        let wanted = |event: &Event| matches!(event, Event::Sent { .. });
        self.pick(wanted, |event| match event {
            Event::Sent { ep, op, buf, result } => Some(Sent { ep, op, buf, result }),
            _ => None,
        })
    }

    pub(crate) fn done(&mut self) -> Option<Done> {
        let wanted = |event: &Event| matches!(event, Event::RmaDone { .. });
        self.pick(wanted, |event| match event {
            Event::RmaDone { ep, op, returned, result } => Some(Done { ep, op, returned, result }),
            _ => None,
        })
    }

    pub(crate) fn heard(&mut self) -> Option<Heard> {
        let wanted = |event: &Event| matches!(event, Event::Multicast { .. });
        self.pick(wanted, |event| match event {
            Event::Multicast { group, op, slot } => Some(Heard { group, op, slot }),
            _ => None,
        })
    }

    pub(crate) fn closed(&mut self) -> Option<(EpId, Error)> {
        let wanted = |event: &Event| matches!(event, Event::Closed { .. });
        self.pick(wanted, |event| match event {
            Event::Closed { ep, why } => Some((ep, why)),
            _ => None,
        })
    }

    /// Whether an endpoint was reported as closed, without taking the event.
    pub(crate) fn has_closed(&self, of: EpId) -> bool {
        self.seen.iter().any(|event| matches!(event, Event::Closed { ep, .. } if *ep == of))
    }

    /// Takes the close of one endpoint.
    pub(crate) fn closed_of(&mut self, ep: EpId) -> Option<Error> {
        let wanted = |event: &Event| matches!(event, Event::Closed { ep: of, .. } if *of == ep);
        self.pick(wanted, |event| match event {
            Event::Closed { why, .. } => Some(why),
            _ => None,
        })
    }
}

/// The endpoint an event is about.
pub(crate) fn ep_of(event: &Event) -> Option<EpId> {
    match event {
        Event::Connected { ep, .. }
        | Event::Accepted { ep, .. }
        | Event::Sent { ep, .. }
        | Event::Received { ep, .. }
        | Event::RmaDone { ep, .. }
        | Event::Closed { ep, .. } => Some(*ep),
        Event::AcceptFailed { .. } | Event::Multicast { .. } => None,
    }
}

/// Polls `nodes` until `ready` has something, and panics when that takes too many polls.
pub(crate) fn until<D: Domain, T, const N: usize>(
    polls_max: u32,
    what: &str,
    mut nodes: [&mut Node<D>; N],
    mut ready: impl FnMut(&mut [&mut Node<D>; N]) -> Option<T>,
) -> T {
    let mut idle = 0;
    loop {
        if let Some(found) = ready(&mut nodes) {
            return found;
        }
        if step(&mut nodes, idle) {
            idle = 0;
        } else {
            idle += 1;
        }
        assert!(idle <= polls_max, "waited for {polls_max} polls in vain: {what}");
    }
}

/// Polls `nodes` until nothing has come for a while.
pub(crate) fn settle<D: Domain, const N: usize>(mut nodes: [&mut Node<D>; N]) {
    let mut idle = 0;
    while idle < 30 {
        idle = if step(&mut nodes, idle) { 0 } else { idle + 1 };
    }
}

/// Polls each node; if nothing came, one of them naps.
fn step<D: Domain, const N: usize>(nodes: &mut [&mut Node<D>; N], turn: u32) -> bool {
    let mut came = false;
    for node in nodes.iter_mut() {
        came |= node.turn();
    }
    if !came {
        nodes[turn as usize % N].nap();
    }
    came
}
