//! Limits are kept, and what is over them comes back.

use bytes::Bytes;
use fabric_core::{Domain, EpId, ErrorKind, OpId, Pool, Rejected, Segment, SendBuf, Slot};

use crate::Harness;
use crate::node::Node;
use crate::pair::{Pair, check_error};

/// Sends of so many bytes tell nothing about the size and much about the number.
const SMALL: &[u8] = b"small";

pub(crate) fn caps_make_sense<H: Harness>(harness: &H) {
    let mut domain = harness.domain();
    let caps = domain.caps().clone();
    assert!(!caps.provider.is_empty() && !caps.device.is_empty(), "{caps:?}");
    assert!(caps.message_bytes_max >= 4096, "a message of a page must be possible: {caps:?}");
    assert!(caps.inline_bytes_max <= caps.message_bytes_max, "{caps:?}");
    assert!(caps.segments_max >= 1 && caps.send_depth >= 1 && caps.recv_depth >= 1, "{caps:?}");
    assert_eq!(domain.rma().is_some(), caps.rma.is_some(), "caps().rma says whether rma() is");
    assert_eq!(domain.atomics().is_some(), caps.atomics, "caps().atomics says it");
    assert_eq!(domain.multicast().is_some(), caps.multicast, "caps().multicast says it");
    assert!(caps.rma.is_none_or(|rma| rma.bytes_max >= 8), "{caps:?}");
    assert_eq!(&caps, domain.caps(), "caps do not change");
}

fn post_small<D: Domain>(node: &mut Node<D>, ep: EpId) -> Result<OpId, Rejected<SendBuf>> {
    node.domain.post_send(ep, Bytes::from_static(SMALL).into())
}

fn fill<D: Domain>(node: &mut Node<D>, ep: EpId) {
    for i in 0..node.domain.caps().send_depth {
        let posted = post_small(node, ep);
        assert!(posted.is_ok(), "send {i} is within the depth: {:?}", posted.err());
    }
}

pub(crate) fn sends_over_the_depth_are_refused_as_full<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    fill(&mut pair.client, pair.at_client);
    let rejected = post_small(&mut pair.client, pair.at_client).expect_err("one over the depth");
    check_error(&rejected.error, ErrorKind::Full);
    assert_eq!(rejected.buf.to_vec(), SMALL, "the buffer comes back untouched");
}

pub(crate) fn a_full_endpoint_recovers<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let ep = pair.at_client;
    let depth = pair.client.domain.caps().send_depth;
    fill(&mut pair.client, ep);
    let (mut back, mut arrived) = (0, 0);
    pair.server.offer(8);
    pair.until("the endpoint drains", |server, client| {
        while client.sent().is_some() {
            back += 1;
        }
        while server.received().is_some() {
            arrived += 1;
            server.offer(1);
        }
        (back == depth && arrived == depth).then_some(())
    });
    fill(&mut pair.client, ep);
}

pub(crate) fn a_full_endpoint_does_not_stop_another<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (other_at_server, other_at_client) = pair.connect();
    fill(&mut pair.client, pair.at_client);
    let posted = post_small(&mut pair.client, other_at_client);
    assert!(posted.is_ok(), "the depth is each endpoint's own: {:?}", posted.err());
    let mut served = 0;
    pair.server.offer(8);
    pair.until("the other endpoint's message arrives", |server, client| {
        while client.sent().is_some() {}
        server.received().and_then(|received| {
            served += 1;
            server.offer(1);
            (received.ep == other_at_server).then_some(())
        })
    });
}

pub(crate) fn receives_over_the_depth_are_refused_as_full<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let depth = pair.server.domain.caps().recv_depth;
    let pool = Pool::new(64, depth + 1).expect("a pool of small slots");
    for i in 0..depth {
        let posted = pair.server.domain.post_recv(pool.take().expect("a free slot"));
        assert!(posted.is_ok(), "receive {i} is within the depth: {:?}", posted.err());
    }
    let mut last = pool.take().expect("a free slot");
    assert!(last.append(b"mine"));
    let rejected = pair.server.domain.post_recv(last).expect_err("one over the depth");
    check_error(&rejected.error, ErrorKind::Full);
    assert_eq!(rejected.buf.filled(), b"mine", "the slot comes back untouched");
    pair.client.send(pair.at_client, SMALL);
    pair.received_by_server();
    assert!(pair.server.domain.post_recv(rejected.buf).is_ok(), "one came back, one may be posted");
}

/// A message of `bytes` bytes that costs no memory until it is read.
fn message_of(bytes: usize) -> SendBuf {
    let mut slot = Slot::alloc(bytes).expect("memory that nobody touches");
    slot.set_len(bytes);
    slot.into()
}

pub(crate) fn a_message_over_the_limit_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let max = pair.client.domain.caps().message_bytes_max;
    let refused = pair.client.domain.post_send(pair.at_client, message_of(max + 1));
    let rejected = refused.expect_err("one byte over the limit");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.len(), max + 1, "the buffer comes back untouched");
    pair.check_alive();
}

pub(crate) fn too_many_segments_are_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let max = pair.client.domain.caps().segments_max;
    let mut buf = SendBuf::new();
    for _ in 0..=max {
        buf.push(Segment::Bytes(Bytes::from_static(b"x")));
    }
    let refused = pair.client.domain.post_send(pair.at_client, buf);
    let rejected = refused.expect_err("one segment over the limit");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.segments().len(), max + 1, "the buffer comes back untouched");
    pair.check_alive();
}

/// Ten messages on their way to a server that does not poll yet.
fn ten_waiting<D: Domain>(pair: &mut Pair<D>) {
    pair.server.offer(10);
    for i in 0..10 {
        pair.client.send(pair.at_client, &[i]);
        pair.client.turn();
    }
}

pub(crate) fn poll_gives_no_more_than_was_asked_for<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    ten_waiting(&mut pair);
    let (mut events, mut idle) = (Vec::new(), 0);
    while events.len() < 10 {
        let before = events.len();
        let count = pair.server.domain.poll(&mut events, 3);
        assert!(count <= 3, "{count} events for 3 asked");
        assert_eq!(events.len() - before, count, "poll appends as many as it says");
        idle = if count > 0 { 0 } else { idle + 1 };
        assert!(idle <= pair.polls_max, "only {} of 10 events came", events.len());
        pair.client.turn();
        if count == 0 {
            pair.server.nap();
        }
    }
}

pub(crate) fn poll_for_nothing_loses_nothing<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    ten_waiting(&mut pair);
    let mut events = Vec::new();
    for _ in 0..20 {
        assert_eq!(pair.server.domain.poll(&mut events, 0), 0);
    }
    assert!(events.is_empty(), "nothing was asked for");
    for i in 0..10 {
        assert_eq!(pair.received_by_server().slot.filled(), [i]);
    }
}
