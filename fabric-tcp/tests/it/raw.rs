//! Peers that speak the protocol by hand: slowly, in odd pieces, or wrongly.

use std::time::Duration;

use bytes::Bytes;
use fabric_core::{Access, Domain, ErrorKind, Event, Exposure, RemoteKey, SendBuf, Slot};

use socket2::SockRef;

use crate::support::{RawPeer, head, raw_pair, words};

const MESSAGE: u8 = 1;
const READ: u8 = 2;
const READ_DATA: u8 = 3;
const WRITE_DONE: u8 = 6;
const FETCH_ADD: u8 = 8;
const NAK: u8 = 10;
const BYE: u8 = 11;

#[test]
fn frames_may_come_byte_by_byte() {
    let (mut node, _, mut peer) = raw_pair();
    node.post_recvs(3, 16);
    let mut stream = Vec::new();
    for message in [&b"first"[..], b"", b"third"] {
        stream.extend(head(MESSAGE, message.len() as u32, 0, &[]));
        stream.extend(message);
    }
    for byte in stream {
        peer.write(&[byte]);
        node.domain.wait(Some(Duration::from_millis(1))).unwrap();
        node.step();
    }
    assert_eq!(node.received(), b"first");
    assert_eq!(node.received(), b"");
    assert_eq!(node.received(), b"third");
}

#[test]
fn a_peer_that_reads_slowly_gets_everything() {
    let (mut node, ep, mut peer) = raw_pair();
    let message: Vec<u8> = (0..60000).map(|at| at as u8).collect();
    for _ in 0..50 {
        node.send(ep, message.clone());
    }
    node.step();
    for _ in 0..50 {
        assert_eq!(peer.read_header(), (MESSAGE, 0, 60000, 0));
        for piece in message.chunks(7001) {
            assert_eq!(peer.read(piece.len()), piece);
            node.domain.wait(Some(Duration::ZERO)).unwrap();
            node.step();
        }
    }
    assert_eq!(node.count(|event| matches!(event, Event::Sent { result: Ok(()), .. })), 50);
}

#[test]
fn a_blocked_peer_is_still_read() {
    let (mut node, ep, mut peer) = raw_pair();
    node.post_recvs(1, 16);
    while node.domain.post_send(ep, Bytes::from(vec![0; 60000]).into()).is_ok() {
        node.step();
    }
    peer.frame(MESSAGE, 2, 0, &[]);
    peer.write(b"hi");
    assert_eq!(node.received(), b"hi");
    let full = node.domain.post_send(ep, SendBuf::new()).unwrap_err();
    assert_eq!(full.error.kind(), ErrorKind::Full);
}

/// Whatever `bytes` violates, the endpoint ends with `Protocol`, and the peer is told.
fn check_violation(bytes: &[u8], says: &str) {
    let (mut node, ep, mut peer) = raw_pair();
    peer.write(bytes);
    let (closed, kind, text) = node.closed();
    assert_eq!((closed, kind), (ep, ErrorKind::Protocol), "{bytes:?}");
    assert!(text.contains(says), "{text}");
    let (kind, code, ..) = peer.read_header();
    assert_eq!((kind, code), (NAK, 3));
    assert_eq!(peer.read_to_end(), b"");
}

#[test]
fn every_violation_ends_the_endpoint_and_is_explained() {
    check_violation(&head(0, 0, 0, &[]), "kind 0");
    check_violation(&head(99, 0, 0, &[]), "kind 99");
    check_violation(&head(MESSAGE, u32::MAX, 0, &[]), "over the limit");
    check_violation(&head(MESSAGE, 0, 5, &[]), "operation number 5");
    check_violation(&head(READ, 300 << 10, 1, &[0, 1, 2, 3, 0, 1 << 20]), "length");
    check_violation(&head(READ_DATA, 8, 7, &[]), "nobody asked");
    check_violation(&head(6, 0, 7, &[]), "nobody asked");
    check_violation(&head(9, 0, 7, &[0]), "nobody asked");
}

#[test]
fn a_stream_that_ends_without_a_goodbye_is_reset_and_with_one_closed() {
    let (mut node, _, peer) = raw_pair();
    drop(peer);
    assert_eq!(node.closed().1, ErrorKind::Reset);
    let (mut node, _, mut peer) = raw_pair();
    peer.frame(MESSAGE, 100, 0, &[]);
    drop(peer);
    node.post_recvs(1, 100);
    let (_, kind, text) = node.closed();
    assert_eq!(kind, ErrorKind::Reset);
    assert!(text.contains("middle of a frame"), "{text}");
    let (mut node, _, mut peer) = raw_pair();
    peer.frame(BYE, 0, 0, &[]);
    assert_eq!(node.closed().1, ErrorKind::Closed);
}

#[test]
fn writing_shows_that_a_peer_died_while_its_message_waits_for_a_slot() {
    let (mut node, ep, mut peer) = raw_pair();
    peer.frame(MESSAGE, 2, 0, &[]);
    peer.write(b"hi");
    SockRef::from(&peer.0).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    node.step();
    node.send(ep, &b"x"[..]);
    let (closed, kind, _) = node.closed();
    assert_eq!((closed, kind), (ep, ErrorKind::Reset));
    assert_eq!(node.sent(), Err(ErrorKind::Flushed));
}

#[test]
fn a_slot_of_half_a_message_serves_another_peer() {
    let (mut node, _, mut dying) = raw_pair();
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    let mut other = RawPeer::connect(&addr);
    other.write(&crate::support::GREETING);
    node.accepted();
    node.post_recvs(1, 100);
    dying.frame(MESSAGE, 100, 0, &[]);
    dying.write(b"half");
    node.step();
    drop(dying);
    node.closed();
    other.frame(MESSAGE, 5, 0, &[]);
    other.write(b"whole");
    assert_eq!(node.received(), b"whole");
}

#[test]
fn more_requests_than_the_protocol_allows_are_a_violation() {
    let (mut node, ep, mut peer) = raw_pair();
    let memory = Exposure::Slot(Slot::alloc(256 << 10).unwrap());
    let key = node.domain.rma().unwrap().expose(ep, memory, Access::READ).unwrap();
    let mut read = words(&key).to_vec();
    read.extend([0, 256 << 10]);
    // The peer never reads, so answers pile up until the limit.
    for id in 1..200 {
        peer.frame(READ, 256 << 10, id, &read);
    }
    let (_, kind, text) = node.closed();
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("more remote memory at once"), "{text}");
}

#[test]
fn an_atomic_on_half_words_is_refused_and_changes_nothing() {
    let (mut node, ep, mut peer) = raw_pair();
    let memory = Exposure::Slot(Slot::alloc(64).unwrap());
    let key = node.domain.rma().unwrap().expose(ep, memory, Access::ATOMIC).unwrap();
    let mut add = words(&key).to_vec();
    add.extend([4, 1]);
    peer.frame(FETCH_ADD, 0, 9, &add);
    assert_eq!(node.closed().1, ErrorKind::Access);
    assert_eq!(peer.read_header(), (NAK, 1, 0, 9));
    let mut bytes = [1; 64];
    node.domain.rma().unwrap().load(&key, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 64]);
}

#[test]
fn a_write_acknowledged_before_it_left_is_a_violation() {
    let (mut node, ep, mut peer) = raw_pair();
    let key = RemoteKey { addr: 0, len: 64 << 20, key: 0, nonce: 0 };
    let buf = Bytes::from(vec![0; 64 << 20]).into();
    let op = node.domain.rma().unwrap().post_write(ep, key, 0, buf).unwrap();
    node.step();
    peer.frame(WRITE_DONE, 0, op.0, &[]);
    assert_eq!(node.closed().1, ErrorKind::Protocol);
}

#[test]
fn data_that_was_not_asked_for_yet_is_a_violation() {
    const CHUNK: usize = 256 << 10;
    let (mut node, ep, mut peer) = raw_pair();
    let key = RemoteKey { addr: 0, len: 1 << 30, key: 0, nonce: 0 };
    // Sixteen reads use up all answers that a peer may owe.
    let mut read = || {
        let slot = Slot::alloc(4 * CHUNK).unwrap();
        node.domain.rma().unwrap().post_read(ep, key, 0, slot, 4 * CHUNK).unwrap()
    };
    let last = (0..17).map(|_| read()).last().unwrap();
    peer.frame(READ_DATA, CHUNK as u32, last.0, &[]);
    assert_eq!(node.closed().1, ErrorKind::Protocol);
}

#[test]
fn a_closed_endpoint_reads_on_so_that_its_peer_is_not_reset() {
    let (mut node, ep, mut peer) = raw_pair();
    node.send(ep, &b"last"[..]);
    node.step();
    node.domain.close(ep);
    let writer = std::thread::spawn(move || {
        // More than the kernel holds.
        peer.write(&vec![0; 32 << 20]);
        peer.0.shutdown(std::net::Shutdown::Write).unwrap();
        peer.read_to_end()
    });
    while !writer.is_finished() {
        node.domain.wait(Some(Duration::from_millis(1))).unwrap();
        node.step();
    }
    let mut expected = head(MESSAGE, 4, 0, &[]);
    expected.extend(b"last");
    expected.extend(head(BYE, 0, 0, &[]));
    assert_eq!(writer.join().unwrap(), expected);
}
