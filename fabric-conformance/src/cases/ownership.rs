//! Every buffer comes back exactly once.

use std::collections::BTreeSet;

use fabric_core::{Domain, EpId, ErrorKind, Event, OpId, Pool, Segment, SendBuf, Slot};

use crate::Harness;
use crate::node::{Node, SLOTS};
use crate::pair::{Pair, check_error, pattern};

pub(crate) fn every_send_comes_back_once_with_its_buffer<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let count = pair.client.domain.caps().send_depth.min(32);
    pair.server.offer(count);
    let posted: Vec<(OpId, Vec<u8>)> = (0..count)
        .map(|i| (pair.client.send(pair.at_client, &pattern(i, 20 + i)), pattern(i, 20 + i)))
        .collect();
    let mut back = Vec::new();
    for _ in 0..count {
        let sent = pair.sent_by_client();
        assert!(sent.result.is_ok(), "{:?}", sent.result);
        assert_eq!(sent.ep, pair.at_client);
        back.push((sent.op, sent.buf.to_vec()));
    }
    pair.settle();
    assert!(pair.client.sent().is_none(), "a send was reported twice");
    back.sort();
    let mut posted = posted;
    posted.sort();
    assert_eq!(back, posted, "each operation comes back with the buffer that was posted");
}

pub(crate) fn operations_are_never_named_twice<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mut names: Vec<OpId> = Vec::new();
    for _ in 0..50 {
        names.extend(pair.server.offer(1));
        pair.client.send(pair.at_client, b"x");
        pair.received_by_server();
        pair.sent_by_client();
    }
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "a receive was named like an earlier one");
}

pub(crate) fn a_receive_comes_back_with_its_own_slot<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let capacities = [64, 128, 256, 512];
    let posted: Vec<(OpId, usize)> = capacities
        .iter()
        .map(|&bytes| {
            let slot = Pool::new(bytes, 1).expect("a small pool").take().expect("a free slot");
            (pair.server.offer_slot(slot), bytes)
        })
        .collect();
    for _ in capacities {
        pair.client.send(pair.at_client, b"short");
    }
    for _ in capacities {
        let received = pair.received_by_server();
        let found = (received.op, received.slot.capacity());
        assert!(posted.contains(&found), "{found:?} is none of {posted:?}");
    }
}

pub(crate) fn a_sent_buffer_may_be_changed_at_once<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mut slot = pair.client.slot();
    pair.server.offer(20);
    for i in 0..20 {
        slot.set_len(0);
        assert!(slot.append(&pattern(i, 1000)));
        pair.client.send_buf(pair.at_client, slot.into());
        let sent = pair.sent_by_client();
        assert!(sent.result.is_ok());
        slot = only_slot(sent.buf);
        slot.buffer_mut().fill(0);
    }
    for i in 0..20 {
        assert_eq!(pair.received_by_server().slot.filled(), pattern(i, 1000), "message {i}");
    }
}

fn only_slot(buf: SendBuf) -> Slot {
    buf.into_segments()
        .find_map(|segment| match segment {
            Segment::Slot(slot) => Some(slot),
            Segment::Bytes(_) => None,
        })
        .expect("the slot that was posted")
}

/// Posts as many sends as go, without any chance to leave.
fn stuff<D: Domain>(node: &mut Node<D>, ep: EpId) -> BTreeSet<OpId> {
    let count = node.domain.caps().send_depth.min(8);
    (0..count).map(|i| node.send(ep, &pattern(i, 100))).collect()
}

/// The sends that came back before the endpoint closed, and how it closed.
fn back_before_closed(seen: impl IntoIterator<Item = Event>, of: EpId) -> Option<BTreeSet<OpId>> {
    let mut back = BTreeSet::new();
    for event in seen {
        match event {
            Event::Sent { ep, op, .. } if ep == of => assert!(back.insert(op), "twice: {op:?}"),
            Event::Closed { ep, .. } if ep == of => return Some(back),
            _ => {}
        }
    }
    None
}

pub(crate) fn closing_returns_every_posted_send<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let posted = stuff(&mut pair.client, pair.at_client);
    pair.client.domain.close(pair.at_client);
    pair.until_both_closed();
    let free = pair.client.pool.free();
    assert_eq!(free + posted.len(), SLOTS, "buffers are held by their events");
    let back = back_before_closed(pair.client.seen.drain(..), pair.at_client);
    assert_eq!(back, Some(posted), "every posted send comes back before Closed");
    assert_eq!(pair.client.pool.free(), SLOTS);
}

pub(crate) fn the_peers_closing_returns_every_posted_send<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let posted = stuff(&mut pair.client, pair.at_client);
    pair.server.domain.close(pair.at_server);
    pair.until_both_closed();
    let back = back_before_closed(pair.client.seen.drain(..), pair.at_client);
    assert_eq!(back, Some(posted), "every posted send comes back before Closed");
    assert_eq!(pair.client.pool.free(), SLOTS);
}

pub(crate) fn a_refused_send_hands_the_buffer_back<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let buf = pair.client.filled(b"keep me").into();
    let refused = pair.client.domain.post_send(EpId(u64::MAX - 1), buf);
    let rejected = refused.expect_err("no such endpoint");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), b"keep me", "the buffer comes back untouched");
    pair.server.offer(1);
    pair.client.send_buf(pair.at_client, rejected.buf);
    assert_eq!(pair.received_by_server().slot.filled(), b"keep me");
}

pub(crate) fn posted_receives_outlive_an_endpoint<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (_, other_at_client) = pair.connect();
    let posted = pair.server.offer(2);
    pair.client.domain.close(pair.at_client);
    pair.server_closed();
    pair.client.send(other_at_client, b"one");
    pair.client.send(other_at_client, b"two");
    let ops = BTreeSet::from([pair.received_by_server().op, pair.received_by_server().op]);
    assert_eq!(ops, posted.into_iter().collect(), "both receives still serve the other endpoint");
}

pub(crate) fn dropping_a_domain_returns_every_slot<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(10);
    stuff(&mut pair.server, pair.at_server);
    let Pair { server: Node { domain, pool, seen }, .. } = pair;
    assert!(pool.free() < SLOTS);
    drop(domain);
    drop(seen);
    assert_eq!(pool.free(), SLOTS, "slots are missing after the domain is gone");
}

pub(crate) fn dropping_a_domain_in_traffic_returns_every_slot<H: Harness>(harness: &H) {
    for turns in 0..8 {
        let mut pair = Pair::new(harness);
        pair.server.offer(3);
        stuff(&mut pair.client, pair.at_client);
        stuff(&mut pair.server, pair.at_server);
        for _ in 0..turns {
            pair.client.turn();
            pair.server.turn();
        }
        let Pair { server, client, .. } = pair;
        for Node { domain, pool, seen } in [client, server] {
            drop(domain);
            drop(seen);
            assert_eq!(pool.free(), SLOTS, "after {turns} turns");
        }
    }
}
