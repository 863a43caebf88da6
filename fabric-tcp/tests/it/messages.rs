//! Messages between two domains.

use crate::support::{Node, pair, pair_with, pump};
use fabric_core::{Domain, ErrorKind, Event};
use fabric_tcp::TcpOptions;

#[test]
fn a_message_arrives_whole_and_its_buffer_comes_back() {
    let (mut client, mut server, to, _) = pair();
    server.post_recvs(1, 64);
    client.send(to, &b"hello"[..]);
    assert_eq!(client.sent(), Ok(()));
    assert_eq!(server.received(), b"hello");
}

#[test]
fn an_empty_message_arrives() {
    let (mut client, mut server, to, _) = pair();
    server.post_recvs(2, 64);
    client.send(to, &b""[..]);
    client.send(to, &b"x"[..]);
    client.step();
    assert_eq!(server.received(), b"");
    assert_eq!(server.received(), b"x");
}

fn pattern(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// Sends messages of the given sizes and checks that they arrive in order.
fn check_stream(options: TcpOptions, sizes: &[usize], slots: usize) {
    let (mut client, mut server, to, _) = pair_with(options);
    let slot_bytes = sizes.iter().copied().max().unwrap().max(1);
    let is_received = |event: &Event| matches!(event, Event::Received { .. });
    let (mut sent, mut got) = (0, 0);
    server.post_recvs(slots, slot_bytes);
    while got < sizes.len() {
        while sent < sizes.len() && sent - got < 32 {
            client.send(to, pattern(sent, sizes[sent]));
            sent += 1;
        }
        pump(&mut client, &mut server, |_, server| server.count(is_received) > 0);
        while server.count(is_received) > 0 {
            assert_eq!(server.received(), pattern(got, sizes[got]), "message {got}");
            server.post_recvs(1, slot_bytes);
            got += 1;
        }
        client.events.clear();
    }
}

#[test]
fn messages_of_all_sizes_stay_in_order() {
    let sizes: Vec<_> = (0..300).map(|i| [0, 1, 15, 16, 17, 900, 5000, 65536][i % 8]).collect();
    check_stream(TcpOptions::default(), &sizes, 40);
}

#[test]
fn one_posted_slot_is_enough_for_many_messages() {
    let sizes: Vec<_> = (0..200).map(|i| i * 13 % 700).collect();
    check_stream(TcpOptions::default(), &sizes, 1);
}

#[test]
fn partial_writes_and_reads_with_tiny_socket_buffers_lose_nothing() {
    let options = TcpOptions {
        send_buffer_bytes: Some(1),
        recv_buffer_bytes: Some(1),
        ..TcpOptions::default()
    };
    check_stream(options, &[65536, 3, 40000, 0, 65536, 1], 2);
}

#[test]
fn without_slots_nothing_is_lost_and_nothing_is_delivered() {
    let (mut client, mut server, to, from) = pair();
    for number in 0..5 {
        client.send(to, vec![number; 100]);
    }
    pump(&mut client, &mut server, |client, _| {
        client.count(|event| matches!(event, Event::Sent { .. })) == 5
    });
    server.step();
    assert!(server.events.is_empty());
    server.send(from, &b"still writes"[..]);
    client.post_recvs(1, 64);
    server.step();
    assert_eq!(client.received(), b"still writes");
    for number in 0..5 {
        server.post_recvs(1, 100);
        assert_eq!(server.received(), vec![number; 100]);
    }
}

#[test]
fn a_message_longer_than_the_slot_closes_both_sides_and_names_both_sizes() {
    let (mut client, mut server, to, from) = pair();
    server.post_recvs(1, 8);
    client.send(to, vec![0; 9]);
    client.step();
    let (ep, kind, text) = server.closed();
    assert_eq!((ep, kind), (from, ErrorKind::NoReceive));
    assert!(text.contains("9 bytes") && text.contains('8'), "{text}");
    let (ep, kind, _) = client.closed();
    assert_eq!((ep, kind), (to, ErrorKind::NoReceive));
}

#[test]
fn messages_before_an_orderly_close_still_arrive() {
    let (mut client, mut server, to, from) = pair();
    // Unread input would turn a careless close into a reset.
    server.send(from, vec![1; 60000]);
    server.step();
    for number in 0..20 {
        client.send(to, vec![number; 60000]);
    }
    client.step();
    client.domain.close(to);
    let mut accepted = 0;
    while client.take(|e| matches!(e, Event::Closed { .. }).then_some(())).is_none() {
        client.step();
    }
    while let Some(ok) = client.take(|e| match e {
        Event::Sent { result, .. } => Some(result.is_ok()),
        _ => None,
    }) {
        accepted += usize::from(ok);
    }
    assert!(accepted > 0);
    server.post_recvs(20, 60000);
    for number in 0..accepted {
        pump(&mut client, &mut server, |_, server| {
            server.count(|event| matches!(event, Event::Received { .. })) > 0
        });
        assert_eq!(server.received(), vec![number as u8; 60000]);
    }
    pump(&mut client, &mut server, |_, server| {
        server.count(|event| matches!(event, Event::Closed { .. })) > 0
    });
    assert_eq!(server.closed().1, ErrorKind::Closed);
    assert_eq!(server.count(|event| matches!(event, Event::Received { .. })), 0);
}

#[test]
fn a_dead_endpoint_is_misuse_and_hands_the_buffer_back() {
    let mut node = Node::new();
    let buf = bytes::Bytes::from_static(b"x").into();
    let rejected = node.domain.post_send(fabric_core::EpId(7), buf).unwrap_err();
    assert_eq!(rejected.error.kind(), ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), b"x");
}
