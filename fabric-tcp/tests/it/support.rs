//! Domains to test with, and the patience to wait for their events.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fabric_core::{
    Addr, Domain, EpId, Error, ErrorKind, Event, Fabric, Listener, ListenerId, RemoteKey, SendBuf,
    Slot,
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
            // Watchdog: generous, for a test that would wait for ever.
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
        // Watchdog: generous, for a test that would wait for ever.
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

/// A peer that speaks by hand. Reads and writes block, with a limit.
pub(crate) struct RawPeer(pub(crate) TcpStream);

/// The greeting of version 1.
pub(crate) const GREETING: [u8; 8] = [0xF5, b'f', b'a', b'b', b't', b'c', 1, 0];

impl RawPeer {
    /// Connects to a listener of the domain.
    pub(crate) fn connect(addr: &Addr) -> Self {
        Self::over(TcpStream::connect((addr.host(), addr.port().unwrap())).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        Self(stream)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Writes a frame without its payload.
    pub(crate) fn frame(&mut self, kind: u8, len: u32, id: u64, words: &[u64]) {
        self.write(&head(kind, len, id, words));
    }

    pub(crate) fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The next frame's kind, code, length and number.
    pub(crate) fn read_header(&mut self) -> (u8, u8, u32, u64) {
        let header = self.read(16);
        let len = u32::from_le_bytes(header[4..8].try_into().unwrap());
        (header[0], header[1], len, u64::from_le_bytes(header[8..].try_into().unwrap()))
    }

    /// Reads until the other side ends the stream, or breaks it.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A reset after the bytes is an end too.
        let _ = self.0.read_to_end(&mut bytes);
        bytes
    }

    pub(crate) fn greet(&mut self) {
        self.write(&GREETING);
        assert_eq!(self.read(8), GREETING);
    }
}

/// A frame without its payload.
pub(crate) fn head(kind: u8, len: u32, id: u64, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(len.to_le_bytes());
    bytes.extend(id.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// The words of a key on the wire.
pub(crate) fn words(key: &RemoteKey) -> [u64; 4] {
    [key.addr, key.len, key.key, key.nonce]
}

/// A node with a raw peer that has greeted.
pub(crate) fn raw_pair() -> (Node, EpId, RawPeer) {
    let mut node = Node::new();
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    let mut peer = RawPeer::connect(&addr);
    peer.write(&GREETING);
    let ep = node.accepted();
    assert_eq!(peer.read(8), GREETING);
    (node, ep, peer)
}
