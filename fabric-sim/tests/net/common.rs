//! Two domains stepped by one thread.

use fabric_core::{Addr, Domain, EpId, Event, Fabric, Listener, Slot};
use fabric_sim::{SimFabric, SimNet};

/// More polls than anything here takes.
pub(crate) const POLLS_MAX: usize = 5000;

/// A domain and what it reported.
pub(crate) struct Side<D> {
    pub(crate) domain: D,
    pub(crate) seen: Vec<Event>,
}

impl<D: Domain> Side<D> {
    pub(crate) fn new(domain: D) -> Self {
        Self { domain, seen: Vec::new() }
    }

    /// Polls once and says whether anything came.
    pub(crate) fn turn(&mut self) -> bool {
        self.domain.poll(&mut self.seen, 64) > 0
    }

    /// Posts receives of 64 bytes until one is refused.
    pub(crate) fn offer(&mut self, count: usize) {
        for _ in 0..count {
            let slot = Slot::alloc(64).expect("memory for a test");
            if self.domain.post_recv(slot).is_err() {
                return;
            }
        }
    }

    pub(crate) fn listen(&mut self) -> Listener {
        self.domain.listen(&Addr::new("sim", "here", None)).expect("a free address")
    }

    pub(crate) fn connected(&self) -> Option<EpId> {
        self.seen.iter().find_map(|event| match event {
            Event::Connected { ep, .. } => Some(*ep),
            _ => None,
        })
    }

    pub(crate) fn accepted(&self) -> Option<EpId> {
        self.seen.iter().find_map(|event| match event {
            Event::Accepted { ep, .. } => Some(*ep),
            _ => None,
        })
    }

    /// Why the first endpoint that closed did so.
    pub(crate) fn closed(&self) -> Option<&fabric_core::Error> {
        self.seen.iter().find_map(|event| match event {
            Event::Closed { why, .. } => Some(why),
            _ => None,
        })
    }

    /// The first bytes of all messages, in order.
    pub(crate) fn messages(&self) -> Vec<u8> {
        let first = |event: &Event| match event {
            Event::Received { slot, .. } => slot.filled().first().copied(),
            _ => None,
        };
        self.seen.iter().filter_map(first).collect()
    }
}

/// Opens a server and a client in `net`, each dressed.
pub(crate) fn two<D: Domain>(
    net: &SimNet,
    mut dress: impl FnMut(fabric_sim::SimDomain) -> D,
) -> [Side<D>; 2] {
    let fabric = SimFabric::new(net.clone());
    [0, 1].map(|_| Side::new(dress(fabric.open().expect("a simulated domain"))))
}

/// Polls both until `ready`, and says after how many turns.
pub(crate) fn until<D: Domain>(
    [a, b]: [&mut Side<D>; 2],
    mut ready: impl FnMut(&mut Side<D>, &mut Side<D>) -> bool,
) -> usize {
    for turn in 0..POLLS_MAX {
        if ready(a, b) {
            return turn;
        }
        a.turn();
        b.turn();
    }
    panic!("not within {POLLS_MAX} polls; seen: {:?} and {:?}", a.seen, b.seen);
}

/// Connects the second to the first.
pub(crate) fn join<D: Domain>(server: &mut Side<D>, client: &mut Side<D>) -> (EpId, EpId) {
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    until([server, client], |server, client| {
        server.accepted().is_some() && client.connected().is_some()
    });
    (server.accepted().expect("accepted"), client.connected().expect("connected"))
}

pub(crate) fn send<D: Domain>(side: &mut Side<D>, ep: EpId, byte: u8) -> bool {
    side.domain.post_send(ep, bytes::Bytes::copy_from_slice(&[byte]).into()).is_ok()
}
