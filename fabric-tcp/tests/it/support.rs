//! Domains to test with, and the patience to wait for their events.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fabric_core::{
    Addr, Domain, EpId, Error, ErrorKind, Event, Fabric, Listener, ListenerId, SendBuf, Slot,
};
use fabric_tcp::{TcpDomain, TcpFabric, TcpOptions};

/// Nothing here takes this long unless it never ends.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A domain with what it reported and nobody asked for yet.
pub(crate) struct Node {
    pub(crate) domain: TcpDomain,
    pub(crate) events: Vec<Event>,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with(TcpOptions::default())
    }

    pub(crate) fn with(options: TcpOptions) -> Self {
        let domain = TcpFabric::new(options).open().unwrap();
        Self { domain, events: Vec::new() }
    }

    pub(crate) fn listen(&mut self, addr: &str) -> Listener {
        self.domain.listen(&addr.parse().unwrap()).unwrap()
    }

    pub(crate) fn post_recvs(&mut self, count: usize, bytes: usize) {
        for _ in 0..count {
            self.domain.post_recv(Slot::alloc(bytes).unwrap()).unwrap();
        }
    }

    pub(crate) fn send(&mut self, ep: EpId, message: impl Into<Bytes>) {
        self.domain.post_send(ep, SendBuf::from(message.into())).unwrap();
    }

    pub(crate) fn step(&mut self) {
        self.domain.poll(&mut self.events, 64);
    }

    /// Polls and waits until an event passes `pick`, and takes it out.
    pub(crate) fn until<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = self.take(&pick) {
                return found;
            }
            assert!(start.elapsed() < WATCHDOG, "never came; reported: {:?}", self.events);
            self.domain.wait(Some(Duration::from_secs(1))).unwrap();
            self.step();
        }
    }

    /// Takes out an event that passes `pick`, if it was reported already.
    pub(crate) fn take<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let (at, found) =
            self.events.iter().enumerate().find_map(|(at, event)| Some((at, pick(event)?)))?;
        self.events.remove(at);
        Some(found)
    }

    pub(crate) fn connected(&mut self) -> EpId {
        self.until(|event| match event {
            Event::Connected { ep, .. } => Some(*ep),
            _ => None,
        })
    }

    pub(crate) fn accepted(&mut self) -> EpId {
        self.until(|event| match event {
            Event::Accepted { ep, .. } => Some(*ep),
            _ => None,
        })
    }

    pub(crate) fn closed(&mut self) -> (EpId, ErrorKind, String) {
        self.until(|event| match event {
            Event::Closed { ep, why } => Some((*ep, why.kind(), why.to_string())),
            _ => None,
        })
    }

    pub(crate) fn accept_failed(&mut self) -> (ListenerId, ErrorKind, String) {
        self.until(|event| match event {
            Event::AcceptFailed { listener, error } => {
                Some((*listener, error.kind(), error.to_string()))
            }
            _ => None,
        })
    }

    pub(crate) fn received(&mut self) -> Vec<u8> {
        self.until(|event| match event {
            Event::Received { slot, .. } => Some(slot.filled().to_vec()),
            _ => None,
        })
    }

    pub(crate) fn sent(&mut self) -> Result<(), ErrorKind> {
        self.until(|event| match event {
            Event::Sent { result, .. } => Some(result.as_ref().copied().map_err(Error::kind)),
            _ => None,
        })
    }

    pub(crate) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }
}

/// Runs both until `done`.
pub(crate) fn pump(a: &mut Node, b: &mut Node, done: impl Fn(&Node, &Node) -> bool) {
    let start = Instant::now();
    while !done(a, b) {
        assert!(start.elapsed() < WATCHDOG, "never: {:?} and {:?}", a.events, b.events);
        for node in [&mut *a, &mut *b] {
            node.domain.wait(Some(Duration::ZERO)).unwrap();
            node.step();
        }
    }
}

/// Two connected nodes: client, server, and the endpoint of each.
pub(crate) fn pair() -> (Node, Node, EpId, EpId) {
    pair_with(TcpOptions::default())
}

pub(crate) fn pair_with(options: TcpOptions) -> (Node, Node, EpId, EpId) {
    let (mut client, mut server) = (Node::with(options.clone()), Node::with(options));
    let addr = server.listen("tcp://127.0.0.1:0").addr;
    let (to, from) = join(&mut client, &mut server, &addr);
    (client, server, to, from)
}

/// Connects `client` to `server`, which listens at `addr`.
pub(crate) fn join(client: &mut Node, server: &mut Node, addr: &Addr) -> (EpId, EpId) {
    client.domain.connect(addr).unwrap();
    pump(client, server, |client, server| {
        client.count(|event| matches!(event, Event::Connected { .. })) > 0
            && server.count(|event| matches!(event, Event::Accepted { .. })) > 0
    });
    (client.connected(), server.accepted())
}
