//! Peers that speak something else.

use std::net::{Ipv4Addr, TcpListener};

use fabric_core::{Domain, ErrorKind};

use crate::support::{GREETING, Node, RawPeer};

/// A stranger connects and says `bytes`.
fn accepts(bytes: &[u8]) -> (ErrorKind, String) {
    let mut node = Node::new();
    let listener = node.listen("tcp://127.0.0.1:0");
    let mut peer = RawPeer::connect(&listener.addr);
    peer.write(bytes);
    let (id, kind, text) = node.accept_failed();
    assert_eq!(id, listener.id);
    assert!(!text.contains('\n') && text.contains("127.0.0.1"), "{text}");
    (kind, text)
}

/// The domain connects to a stranger who says `bytes`.
fn dials(bytes: &[u8]) -> (ErrorKind, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut node = Node::new();
    let at = listener.local_addr().unwrap();
    let ep = node.domain.connect(&format!("tcp://{at}").parse().unwrap()).unwrap();
    let mut peer = RawPeer::over(listener.accept().unwrap().0);
    peer.write(bytes);
    let (closed, kind, text) = node.closed();
    assert_eq!(closed, ep);
    (kind, text)
}

#[test]
fn a_web_client_and_a_web_server_are_named() {
    let (kind, text) = accepts(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("speaks HTTP"), "{text}");
    let (kind, text) = dials(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("speaks HTTP"), "{text}");
}

#[test]
fn a_zeromq_peer_is_named() {
    let signature = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3];
    for (kind, text) in [accepts(&signature), dials(&signature)] {
        assert_eq!(kind, ErrorKind::Protocol);
        assert!(text.contains("ZeroMQ"), "{text}");
    }
}

#[test]
fn a_tls_client_is_named() {
    let (kind, text) = accepts(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]);
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("TLS"), "{text}");
}

#[test]
fn unknown_bytes_are_shown_escaped_and_few_of_them() {
    let (kind, text) = accepts(&[b'\n'; 5000]);
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains(r"\n\n") && text.len() < 200, "{text}");
}

#[test]
fn another_version_is_refused_by_name_and_still_hears_ours() {
    let mut node = Node::new();
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    let mut peer = RawPeer::connect(&addr);
    let mut newer = GREETING;
    newer[6] = 2;
    peer.write(&newer);
    let (_, kind, text) = node.accept_failed();
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("version 2"), "{text}");
    assert_eq!(peer.read_to_end(), GREETING);
}
