//! Exposures that end while a peer is reaching for them.

use std::time::Duration;

use fabric_core::{Access, Domain, ErrorKind, Event, Exposure, RemoteKey, Returned, Slot};

use fabric_tcp::TcpOptions;

use crate::support::{Node, pair, pair_with, pump, raw_pair, words};

const CHUNK: usize = 256 << 10;
const WRITE: u8 = 4;
const NAK: u8 = 10;

fn expose(node: &mut Node, ep: fabric_core::EpId, bytes: usize, fill: u8) -> RemoteKey {
    let mut slot = Slot::alloc(bytes).unwrap();
    slot.buffer_mut().fill(fill);
    node.domain.rma().unwrap().expose(ep, Exposure::Slot(slot), Access::ALL).unwrap()
}

fn revoke(node: &mut Node, key: &RemoteKey) -> Slot {
    match node.domain.rma().unwrap().revoke(key).unwrap() {
        Exposure::Slot(slot) => slot,
        Exposure::Bytes(_) => panic!("a slot was exposed"),
    }
}

#[test]
fn a_read_cut_by_a_revoke_is_refused_and_hands_its_slot_back() {
    // Less than a chunk fits into the kernel, so that one is half written.
    let options = TcpOptions {
        send_buffer_bytes: Some(16 << 10),
        recv_buffer_bytes: Some(32 << 10),
        ..TcpOptions::default()
    };
    let (mut client, mut server, to, from) = pair_with(options);
    let key = expose(&mut server, from, 64 * CHUNK, 7);
    let into = Slot::alloc(64 * CHUNK).unwrap();
    client.domain.rma().unwrap().post_read(to, key, 0, into, 64 * CHUNK).unwrap();
    client.step();
    // Answers are queued and half written, but the reader does not take them.
    server.domain.wait(Some(Duration::from_secs(1))).unwrap();
    server.step();
    let mut slot = revoke(&mut server, &key);
    slot.buffer_mut().fill(9);
    pump(&mut client, &mut server, |client, server| {
        let closed = |node: &Node| node.count(|event| matches!(event, Event::Closed { .. })) > 0;
        closed(client) && closed(server)
    });
    let (kind, mut slot) = take_read(&mut client);
    assert_eq!(kind, Some(ErrorKind::Access));
    // Nothing written after the revoke was read.
    assert!(slot.buffer_mut().iter().all(|byte| *byte != 9));
    assert_eq!(client.closed().1, ErrorKind::Access);
}

fn take_read(node: &mut Node) -> (Option<ErrorKind>, Slot) {
    let at = node.events.iter().position(|event| matches!(event, Event::RmaDone { .. })).unwrap();
    match node.events.remove(at) {
        Event::RmaDone { returned: Returned::Slot(slot), result, .. } => {
            (result.err().map(|error| error.kind()), slot)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_cut_by_a_revoke_moves_no_further_byte() {
    let (mut node, ep, mut peer) = raw_pair();
    let key = expose(&mut node, ep, 1000, 0);
    let mut at = words(&key).to_vec();
    at.extend([0, 1000]);
    peer.frame(WRITE, 1000, 1, &at);
    peer.write(&[1; 400]);
    let mut first = [0];
    while first == [0] {
        node.domain.wait(Some(Duration::from_millis(1))).unwrap();
        node.step();
        node.domain.rma().unwrap().load(&key, 399, &mut first).unwrap();
    }
    let mut slot = revoke(&mut node, &key);
    peer.write(&[1; 600]);
    let (_, kind, _) = node.closed();
    assert_eq!(kind, ErrorKind::Access);
    assert_eq!(slot.buffer_mut()[..400], [1; 400]);
    assert_eq!(slot.buffer_mut()[400..], [0; 600]);
    assert_eq!(peer.read_header(), (NAK, 1, 0, 1));
}

#[test]
fn a_write_that_would_run_over_the_end_moves_nothing_although_its_first_chunk_fits() {
    let (mut client, mut server, to, from) = pair();
    let key = expose(&mut server, from, CHUNK + 1, 0);
    let buf = bytes::Bytes::from(vec![1; CHUNK + 2]).into();
    client.domain.rma().unwrap().post_write(to, key, 0, buf).unwrap();
    pump(&mut client, &mut server, |client, _| {
        client.count(|event| matches!(event, Event::Closed { .. })) > 0
    });
    assert!(revoke(&mut server, &key).buffer_mut().iter().all(|byte| *byte == 0));
}
