//! Peers that connect and then do not greet, or too many of them.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use fabric_core::{Domain, ErrorKind, Event};
use fabric_tcp::TcpOptions;

use crate::support::{GREETING, Node, RawPeer, join};

fn hasty() -> Node {
    let handshake_timeout = Duration::from_millis(50);
    Node::with(TcpOptions { handshake_timeout, ..TcpOptions::default() })
}

#[test]
fn a_silent_client_is_dropped_in_time() {
    let mut node = hasty();
    let listener = node.listen("tcp://127.0.0.1:0");
    let mut peer = RawPeer::connect(&listener.addr);
    peer.write(&GREETING[..3]);
    let (id, kind, text) = node.accept_failed();
    assert_eq!((id, kind), (listener.id, ErrorKind::TimedOut));
    assert!(text.contains("did not greet"), "{text}");
    assert_eq!(peer.read_to_end(), GREETING);
}

#[test]
fn a_silent_server_ends_the_connection_in_time() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut node = hasty();
    let at = listener.local_addr().unwrap();
    let ep = node.domain.connect(&format!("tcp://{at}").parse().unwrap()).unwrap();
    let (closed, kind, _) = node.closed();
    assert_eq!((closed, kind), (ep, ErrorKind::TimedOut));
}

#[test]
fn a_client_that_leaves_before_it_greets_is_reported() {
    let mut node = Node::new();
    let listener = node.listen("tcp://127.0.0.1:0");
    drop(RawPeer::connect(&listener.addr));
    let (id, kind, _) = node.accept_failed();
    assert_eq!((id, kind), (listener.id, ErrorKind::Closed));
}

#[test]
fn a_greeting_may_come_byte_by_byte() {
    let mut node = Node::new();
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    let mut peer = RawPeer::connect(&addr);
    for byte in GREETING {
        assert_eq!(node.count(|event| matches!(event, Event::Accepted { .. })), 0);
        peer.write(&[byte]);
        node.domain.wait(Some(Duration::from_millis(1))).unwrap();
        node.step();
    }
    node.accepted();
}

#[test]
fn of_too_many_silent_clients_the_oldest_are_dropped() {
    let mut node = Node::with(TcpOptions { pending_handshakes_max: 4, ..TcpOptions::default() });
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    let mut peers: Vec<_> = (0..10).map(|_| RawPeer::connect(&addr)).collect();
    for _ in 0..6 {
        let (_, kind, text) = node.accept_failed();
        assert_eq!(kind, ErrorKind::Full);
        assert!(text.contains("pending_handshakes_max"), "{text}");
    }
    assert_eq!(peers[5].read_to_end(), GREETING);
    // The youngest are still welcome.
    peers[6].greet();
    node.accepted();
}

#[test]
fn clients_that_have_not_greeted_end_with_their_listener() {
    let mut node = Node::new();
    let listener = node.listen("tcp://127.0.0.1:0");
    let mut early = RawPeer::connect(&listener.addr);
    early.0.set_nonblocking(true).unwrap();
    while early.0.peek(&mut [0]).is_err() {
        node.domain.wait(Some(Duration::from_millis(1))).unwrap();
        node.step();
    }
    early.0.set_nonblocking(false).unwrap();
    node.domain.unlisten(listener.id).unwrap();
    node.step();
    assert_eq!(early.read_to_end(), GREETING);
    assert!(node.events.is_empty());
}

#[test]
fn a_thousand_connections_work_at_once() {
    const COUNT: usize = 1000;
    let (mut client, mut server) = (Node::new(), Node::new());
    let addr = server.listen("tcp://127.0.0.1:0").addr;
    let ends: Vec<_> = (0..COUNT).map(|_| join(&mut client, &mut server, &addr)).collect();
    server.post_recvs(COUNT, 16);
    for (number, (to, _)) in ends.iter().enumerate() {
        client.send(*to, number.to_le_bytes().to_vec());
    }
    client.step();
    let mut seen = vec![false; COUNT];
    for _ in 0..COUNT {
        let (ep, message) = server.until(|event| match event {
            Event::Received { ep, slot, .. } => Some((*ep, slot.filled().to_vec())),
            _ => None,
        });
        let number = usize::from_le_bytes(message.try_into().unwrap());
        assert_eq!(ends[number].1, ep);
        assert!(!std::mem::replace(&mut seen[number], true));
    }
}
