//! What the suite does not ask for: receivers that take their time, peers that are killed.
//!
//! Without an RDMA device, each test says so and ends, unless `FABRIC_REQUIRE_VERBS=1` is set: then
//! it fails. `FABRIC_VERBS_DEVICE` names the device to use.

mod common;

use std::time::{Duration, Instant};

use common::device;
use fabric_core::{Addr, Domain, EpId, ErrorKind, Event, Fabric, Pool, Slot};
use fabric_verbs::{VerbsDomain, VerbsFabric, VerbsOptions};

/// Longer than anything here takes on the slowest machine.
const WATCHDOG: Duration = Duration::from_secs(120);
/// Longer than the device's own patience with a missing receive.
const LAZY: Duration = Duration::from_secs(6);

struct Node {
    domain: VerbsDomain,
    pool: Pool,
    events: Vec<Event>,
}

impl Node {
    fn new() -> Self {
        // No end may have to wait for this.
        let options = VerbsOptions { linger_timeout: 10 * WATCHDOG, ..common::options() };
        let mut domain = VerbsFabric::new(options).open().unwrap();
        let pool = Pool::new(4096, 256).unwrap();
        domain.register(&pool).unwrap();
        Self { domain, pool, events: Vec::new() }
    }

    fn turn(&mut self) {
        self.domain.poll(&mut self.events, 256);
        self.domain.wait(Some(Duration::from_millis(1))).unwrap();
    }

    fn slot(&self, bytes: &[u8]) -> Slot {
        let mut slot = self.pool.take().unwrap();
        assert!(slot.append(bytes));
        slot
    }

    fn offer(&mut self, count: usize) {
        for _ in 0..count {
            self.domain.post_recv(self.pool.take().unwrap()).unwrap();
        }
    }

    fn take<T>(&mut self, mut want: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        let at = self.events.iter().position(|event| want(event).is_some())?;
        want(&self.events.remove(at))
    }
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WATCHDOG, "gave up waiting: {what}"); // Watchdog: see there.
    }
}

fn pair(device: &str) -> (Node, Node, EpId, EpId) {
    let (mut server, mut client) = (Node::new(), Node::new());
    let listener = server.domain.listen(&Addr::new("verbs", device, Some(0))).unwrap();
    client.domain.connect(&listener.addr).unwrap();
    let (mut at_server, mut at_client) = (None, None);
    until("both connect", || {
        server.turn();
        client.turn();
        at_server = at_server.or_else(|| {
            server.take(|e| if let Event::Accepted { ep, .. } = e { Some(*ep) } else { None })
        });
        at_client = at_client.or_else(|| {
            client.take(|e| if let Event::Connected { ep, .. } = e { Some(*ep) } else { None })
        });
        at_server.is_some() && at_client.is_some()
    });
    (server, client, at_server.unwrap(), at_client.unwrap())
}

#[test]
fn a_receiver_that_posts_nothing_for_seconds_keeps_its_connection_and_its_messages() {
    let Some(device) = device() else { return };
    let (mut server, mut client, _, at_client) = pair(&device);
    let depth = client.domain.caps().send_depth;
    let mut posted = 0u32;
    // Until neither the window nor the queue takes more, and on while time passes.
    let start = Instant::now();
    while start.elapsed() < LAZY {
        while client.pool.free() > 0 && (posted as usize) < 3 * depth {
            let slot = client.slot(&posted.to_le_bytes());
            match client.domain.post_send(at_client, slot.into()) {
                Ok(_) => posted += 1,
                Err(rejected) => {
                    assert_eq!(rejected.error.kind(), ErrorKind::Full);
                    break;
                }
            }
        }
        client.turn();
        client.events.retain(|event| !matches!(event, Event::Sent { .. }));
        assert!(client.events.is_empty(), "{:?}", client.events);
        server.turn();
        assert!(server.events.is_empty(), "{:?}", server.events);
    }
    assert!(posted as usize >= 2 * depth, "window and queue took {posted}");
    server.offer(16);
    let mut next = 0;
    until("all messages arrive in order", || {
        client.turn();
        server.turn();
        while let Some(bytes) = server.take(|event| match event {
            Event::Received { slot, .. } => Some(slot.filled().to_vec()),
            _ => None,
        }) {
            assert_eq!(bytes, u32::to_le_bytes(next));
            next += 1;
            server.offer(1);
        }
        next == posted
    });
}

#[test]
fn messages_reach_a_peer_whose_process_does_not_poll() {
    let Some(device) = device() else { return };
    let (mut server, mut client, _, at_client) = pair(&device);
    client.domain.post_send(at_client, client.slot(b"while you slept").into()).unwrap();
    let mut sent = false;
    until("the message leaves", || {
        client.turn();
        sent |= client
            .take(|e| matches!(e, Event::Sent { result: Ok(()), .. }).then_some(()))
            .is_some();
        sent
    });
    std::thread::sleep(LAZY);
    server.offer(1);
    until("the message arrives", || {
        server.turn();
        server
            .take(|e| {
                matches!(e, Event::Received { slot, .. } if slot.filled() == b"while you slept")
                    .then_some(())
            })
            .is_some()
    });
}

/// Names the listener that a peer in a process of its own sends to.
const PEER_OF: &str = "FABRIC_TEST_PEER_OF";

/// Not a test: what `peers_that_are_killed_in_traffic_cost_nobody_else_anything` starts and kills.
#[test]
fn a_peer_in_a_process_of_its_own() {
    let Ok(addr) = std::env::var(PEER_OF) else { return };
    let mut node = Node::new();
    let ep = node.domain.connect(&addr.parse().unwrap()).unwrap();
    loop {
        node.turn();
        assert!(
            node.take(|e| matches!(e, Event::Closed { .. }).then_some(())).is_none(),
            "it closed"
        );
        node.events.retain(|event| !matches!(event, Event::Sent { .. }));
        while node.pool.free() > 128 {
            let message = bytes::Bytes::from(vec![7; 4096]);
            if node.domain.post_send(ep, message.into()).is_err() {
                break;
            }
        }
    }
}

fn start_peer(of: &Addr) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_peer_in_a_process_of_its_own"]);
    command.env(PEER_OF, of.to_string()).stdout(std::process::Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn peers_that_are_killed_in_traffic_cost_nobody_else_anything() {
    let Some(device) = device() else { return };
    let (mut server, mut client, _, at_client) = pair(&device);
    let listener = server.domain.listen(&Addr::new("verbs", &device, Some(0))).unwrap();
    server.offer(32);
    for round in 0..20 {
        let mut peer = start_peer(&listener.addr);
        let (mut heard, mut killed) = (0, false);
        until("the killed peer is reported as gone", || {
            server.turn();
            while let Some(len) = server.take(|event| match event {
                Event::Received { slot, .. } => Some(slot.len()),
                _ => None,
            }) {
                assert_eq!(len, 4096, "round {round}");
                heard += 1;
                server.offer(1);
            }
            if heard > 20 && !killed {
                peer.kill().unwrap();
                killed = true;
            }
            let end = server.take(|event| match event {
                Event::Closed { why, .. } => Some(why.kind()),
                _ => None,
            });
            assert!(end.is_none_or(|kind| kind == ErrorKind::Reset), "round {round}: {end:?}");
            end.is_some()
        });
        peer.wait().unwrap();
    }
    client.domain.post_send(at_client, client.slot(b"still here").into()).unwrap();
    until("the other connection still works", || {
        client.turn();
        server.turn();
        let is_it =
            |e: &Event| matches!(e, Event::Received { slot, .. } if slot.filled() == b"still here");
        server.take(|event| is_it(event).then_some(())).is_some()
    });
    let posted = 256 - server.pool.free();
    drop(server.domain);
    assert_eq!((posted, server.pool.free()), (31, 256), "receives came back, each once");
}
