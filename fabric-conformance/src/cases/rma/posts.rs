//! Posting remote operations: limits, and buffers that come back.

use std::collections::BTreeSet;

use bytes::Bytes;
use fabric_core::{
    Access, Domain, EpId, ErrorKind, Event, OpId, RemoteKey, Segment, SendBuf, Slot,
};

use super::{NO_EP, expose, memory, post_read, post_write, rma};
use crate::Harness;
use crate::pair::{Pair, check_error, pattern};

pub(crate) fn posting_to_an_unknown_endpoint_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::ALL);
    let client = rma(&mut pair.client);
    let rejected = client.post_read(NO_EP, key, 0, memory(2, 50), 50).expect_err("no endpoint");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.filled(), pattern(2, 50), "the slot comes back untouched");
    let buf = || Bytes::from_static(b"back").into();
    let rejected = client.post_write(NO_EP, key, 0, buf()).expect_err("no endpoint");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), b"back", "the buffer comes back untouched");
    let rejected = client.post_write_imm(NO_EP, key, 0, buf(), 1).expect_err("no endpoint");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), b"back", "the buffer comes back untouched");
    pair.check_alive();
}

pub(crate) fn a_read_larger_than_its_slot_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::READ);
    let client = rma(&mut pair.client);
    let posted = client.post_read(pair.at_client, key, 0, memory(2, 50), 51);
    let rejected = posted.expect_err("it does not fit");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.filled(), pattern(2, 50), "the slot comes back untouched");
    pair.check_alive();
}

pub(crate) fn a_write_over_the_limit_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let max = pair.client.domain.caps().rma.map_or(0, |rma| rma.bytes_max);
    let key = expose(&mut pair, memory(1, 100), Access::WRITE);
    let (buf, len) = longer_than(max);
    let posted = rma(&mut pair.client).post_write(pair.at_client, key, 0, buf);
    let rejected = posted.expect_err("it is over the limit");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.len(), len, "the buffer comes back untouched");
    pair.check_alive();
}

/// More than `max` bytes, most of them the same memory again.
fn longer_than(max: usize) -> (SendBuf, usize) {
    let piece = Bytes::from(vec![0; max.clamp(1, 64 << 20)]);
    let count = max / piece.len() + 1;
    let mut buf = SendBuf::new();
    (0..count).for_each(|_| buf.push(Segment::Bytes(piece.clone())));
    (buf, count * piece.len())
}

pub(crate) fn remote_operations_count_against_the_depth<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let depth = pair.client.domain.caps().send_depth;
    let key = expose(&mut pair, memory(1, 100), Access::ALL);
    for _ in 0..depth {
        post_read(&mut pair, key, 0, 8);
    }
    check_full(&mut pair, key);
    for _ in 0..depth {
        assert!(pair.done_by_client().result.is_ok());
    }
    post_write(&mut pair, key, 0, b"room again");
    assert!(pair.done_by_client().result.is_ok());
}

/// Checks that each kind of post is refused as `Full` and gives its buffer back.
fn check_full<D: Domain>(pair: &mut Pair<D>, key: RemoteKey) {
    let ep = pair.at_client;
    let buf = Bytes::from_static(b"over");
    let sent = pair.client.domain.post_send(ep, buf.clone().into()).expect_err("full");
    let client = rma(&mut pair.client);
    let read = client.post_read(ep, key, 0, memory(2, 8), 8).expect_err("full");
    let write = client.post_write(ep, key, 0, buf.clone().into()).expect_err("full");
    let imm = client.post_write_imm(ep, key, 0, buf.into(), 1).expect_err("full");
    assert_eq!(read.buf.filled(), pattern(2, 8), "the slot comes back untouched");
    for rejected in [&sent, &write, &imm] {
        assert_eq!(rejected.buf.to_vec(), b"over", "the buffer comes back untouched");
        check_error(&rejected.error, ErrorKind::Full);
    }
    check_error(&read.error, ErrorKind::Full);
}

/// Posts reads and writes that have had no chance to leave.
fn stuff<D: Domain>(pair: &mut Pair<D>) -> BTreeSet<OpId> {
    let key = expose(pair, memory(1, 1 << 20), Access::ALL);
    let count = pair.client.domain.caps().send_depth.min(8) / 2;
    let reads: Vec<OpId> = (0..count).map(|_| post_read(pair, key, 0, 1 << 20)).collect();
    let writes = (0..count).map(|_| post_write(pair, key, 0, b"written"));
    reads.into_iter().chain(writes.collect::<Vec<_>>()).collect()
}

/// Checks that all of `posted` came back, each once, before the client's endpoint closed.
fn check_back<D: Domain>(pair: &mut Pair<D>, posted: &BTreeSet<OpId>) {
    let (mut back, mut closed) = (BTreeSet::new(), false);
    let of: EpId = pair.at_client;
    for event in pair.client.seen.drain(..) {
        match event {
            Event::RmaDone { ep, op, returned, .. } if ep == of => {
                assert!(!closed, "an operation ended after Closed");
                assert!(back.insert(op), "an operation ended twice");
                drop(returned);
            }
            Event::Closed { ep, .. } if ep == of => closed = true,
            _ => {}
        }
    }
    assert_eq!((&back, closed), (posted, true), "every posted operation comes back");
}

pub(crate) fn closing_returns_every_remote_operation<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let posted = stuff(&mut pair);
    pair.client.turn();
    pair.client.domain.close(pair.at_client);
    pair.until_both_closed();
    check_back(&mut pair, &posted);
}

pub(crate) fn the_peers_closing_returns_every_remote_operation<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let posted = stuff(&mut pair);
    pair.client.turn();
    pair.server.domain.close(pair.at_server);
    pair.until_both_closed();
    check_back(&mut pair, &posted);
}

/// A slot for a read that stays where it is.
pub(crate) fn dropping_a_domain_returns_slots_of_reads<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::READ);
    let into: Slot = pair.client.slot();
    let posted = rma(&mut pair.client).post_read(pair.at_client, key, 0, into, 100);
    posted.expect("a read within the limits");
    let (pool, before) = (pair.client.pool.clone(), pair.client.pool.slots());
    assert_eq!(pool.free(), before - 1);
    drop(pair);
    assert_eq!(pool.free(), before);
}
