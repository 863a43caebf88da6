//! Messages arrive whole, once, in order, on their endpoint.

use bytes::Bytes;
use fabric_core::{Domain, EpId, ErrorKind, Pool, Segment, SendBuf, Slot};

use crate::Harness;
use crate::node::{Node, SLOT_BYTES, until};
use crate::pair::{Pair, join, listen, pattern};
use crate::wake::watched;

/// Sends `count` numbered messages from client to server while both are polled, with few receives
/// at a time, and gives what arrived.
fn exchange<D: Domain>(pair: &mut Pair<D>, count: usize) -> Vec<Vec<u8>> {
    let ep = pair.at_client;
    let (mut posted, mut arrived) = (0, Vec::new());
    pair.server.offer(4);
    pair.until("all messages arrive", |server, client| {
        while client.sent().is_some() {}
        while posted < count && post_numbered(client, ep, posted) {
            posted += 1;
        }
        while let Some(received) = server.received() {
            arrived.push(received.slot.filled().to_vec());
            server.offer(1);
        }
        (arrived.len() >= count).then_some(())
    });
    arrived
}

fn post_numbered<D: Domain>(client: &mut Node<D>, ep: EpId, number: usize) -> bool {
    let slot = client.filled(&numbered(number));
    client.domain.post_send(ep, slot.into()).is_ok()
}

fn numbered(number: usize) -> Vec<u8> {
    pattern(number, 8 + number % 50).into_iter().chain((number as u32).to_le_bytes()).collect()
}

fn number_of(message: &[u8]) -> usize {
    let tail = message.last_chunk::<4>().expect("a message that ends in its number");
    u32::from_le_bytes(*tail) as usize
}

pub(crate) fn a_message_arrives_as_it_was_sent<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let message = pattern(1, 1000);
    pair.server.offer(1);
    pair.client.send(pair.at_client, &message);
    let received = pair.received_by_server();
    assert_eq!(received.slot.filled(), message, "the bytes are those that were sent");
    assert_eq!(received.ep, pair.at_server, "on the endpoint they were sent to");
    assert_eq!(received.imm, None, "a plain message has no immediate value");
    assert!(pair.sent_by_client().result.is_ok());
}

pub(crate) fn messages_arrive_in_order<H: Harness>(harness: &H) {
    let arrived = exchange(&mut Pair::new(harness), 300);
    let numbers: Vec<usize> = arrived.iter().map(|message| number_of(message)).collect();
    assert!(numbers.is_sorted(), "messages overtake each other: {numbers:?}");
}

pub(crate) fn every_message_arrives_exactly_once<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mut numbers: Vec<usize> =
        exchange(&mut pair, 300).iter().map(|message| number_of(message)).collect();
    pair.settle();
    numbers.extend(pair.server.received().map(|extra| number_of(extra.slot.filled())));
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
}

pub(crate) fn an_empty_message_arrives<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(3);
    pair.client.send_buf(pair.at_client, SendBuf::new());
    pair.client.send(pair.at_client, b"");
    pair.client.send(pair.at_client, b"behind");
    for expected in [&b""[..], b"", b"behind"] {
        assert_eq!(pair.received_by_server().slot.filled(), expected);
    }
}

pub(crate) fn the_largest_message_arrives_whole<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let max = pair.client.domain.caps().message_bytes_max;
    let message = pattern(7, max);
    for _ in 0..3 {
        pair.server.offer_slot(Slot::alloc(max).expect("memory for a message"));
        pair.client.send_buf(pair.at_client, Bytes::from(message.clone()).into());
    }
    for _ in 0..3 {
        let received = pair.received_by_server();
        assert!(received.slot.filled() == message, "the largest message changed on its way");
    }
}

pub(crate) fn segments_arrive_as_one_message<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let count = pair.client.domain.caps().segments_max.min(100);
    let mut buf = SendBuf::new();
    for i in 0..count {
        let bytes = pattern(i, i % 40);
        buf.push(match i % 2 {
            0 => Segment::Slot(pair.client.filled(&bytes)),
            _ => Segment::Bytes(bytes.into()),
        });
    }
    let whole = buf.to_vec();
    pair.server.offer(1);
    pair.client.send_buf(pair.at_client, buf);
    assert_eq!(pair.received_by_server().slot.filled(), whole);
}

pub(crate) fn empty_segments_add_nothing<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    if pair.client.domain.caps().segments_max < 3 {
        return;
    }
    let mut buf = SendBuf::new();
    for piece in [&b""[..], b"text", b""] {
        buf.push(Segment::Bytes(Bytes::from_static(piece)));
    }
    pair.server.offer(2);
    pair.client.send_buf(pair.at_client, buf);
    pair.client.send(pair.at_client, b"next");
    assert_eq!(pair.received_by_server().slot.filled(), b"text");
    assert_eq!(pair.received_by_server().slot.filled(), b"next");
}

pub(crate) fn messages_of_all_sizes_keep_their_bounds<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    for len in [1, 7, 8, 63, 64, 65, 255, 256, 1000, 1023, 1024, 1025, 4000, SLOT_BYTES] {
        let (one, two) = (pattern(len, len), pattern(len + 1, len));
        pair.server.offer(2);
        pair.client.send(pair.at_client, &one);
        pair.client.send(pair.at_client, &two);
        assert_eq!(pair.received_by_server().slot.filled(), one, "{len} bytes");
        assert_eq!(pair.received_by_server().slot.filled(), two, "{len} bytes again");
    }
}

pub(crate) fn both_directions_flow_at_once<H: Harness>(harness: &H) {
    const COUNT: usize = 100;
    let mut pair = Pair::new(harness);
    let (at_server, at_client) = (pair.at_server, pair.at_client);
    let (mut to_server, mut to_client) = (Flow::new(at_client), Flow::new(at_server));
    pair.server.offer(8);
    pair.client.offer(8);
    pair.until("both flows end", |server, client| {
        to_server.step(client, server);
        to_client.step(server, client);
        (to_server.arrived.len() == COUNT && to_client.arrived.len() == COUNT).then_some(())
    });
    assert_eq!(to_server.arrived, (0..COUNT).collect::<Vec<_>>());
    assert_eq!(to_client.arrived, (0..COUNT).collect::<Vec<_>>());
}

/// A hundred numbered messages one way.
struct Flow {
    ep: EpId,
    posted: usize,
    arrived: Vec<usize>,
}

impl Flow {
    fn new(ep: EpId) -> Self {
        Self { ep, posted: 0, arrived: Vec::new() }
    }

    fn step<D: Domain>(&mut self, from: &mut Node<D>, to: &mut Node<D>) {
        while from.sent().is_some() {}
        while self.posted < 100 && post_numbered(from, self.ep, self.posted) {
            self.posted += 1;
        }
        while let Some(received) = to.received() {
            self.arrived.push(number_of(received.slot.filled()));
            to.offer(1);
        }
    }
}

pub(crate) fn an_accepted_endpoint_may_send_first<H: Harness>(harness: &H) {
    let mut server = Node::new(harness.domain());
    let mut client = Node::new(harness.domain());
    let listener = listen(&mut server, harness);
    client.offer(1);
    let ep = client.domain.connect(&listener.addr).expect("a connection can be started");
    let mut greeted = false;
    let received =
        until(harness.polls_max(), "the greeting arrives", [&mut server, &mut client], |nodes| {
            if let Some((at_server, _)) = nodes[0].accepted() {
                nodes[0].send(at_server, b"welcome");
                greeted = true;
            }
            nodes[1].received()
        });
    assert!(greeted && received.slot.filled() == b"welcome");
    assert_eq!(received.ep, ep);
    assert_eq!(client.connected(), Some(ep), "Connected comes before the first message");
}

pub(crate) fn endpoints_do_not_mix<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mut lanes = vec![(pair.at_server, pair.at_client)];
    lanes.extend((0..4).map(|_| pair.connect()));
    pair.server.offer(100);
    for number in 0..20 {
        for (lane, (_, at_client)) in lanes.iter().enumerate() {
            pair.client.send(*at_client, &[lane as u8, number]);
        }
        for _ in 0..lanes.len() {
            pair.sent_by_client();
        }
    }
    let mut next = vec![0; lanes.len()];
    for _ in 0..100 {
        let received = pair.received_by_server();
        let (lane, number) = (received.slot.filled()[0] as usize, received.slot.filled()[1]);
        assert_eq!(received.ep, lanes[lane].0, "a message came in on another endpoint");
        assert_eq!(number, next[lane], "lane {lane} is out of order");
        next[lane] += 1;
    }
}

pub(crate) fn receives_are_shared_by_endpoints<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (other_at_server, other_at_client) = pair.connect();
    let posted = pair.server.offer(4);
    let (first, second) = (pair.at_client, other_at_client);
    for ep in [first, second, second, first] {
        pair.client.send(ep, b"shared");
    }
    let received: Vec<_> = (0..4).map(|_| pair.received_by_server()).collect();
    let of_other = received.iter().filter(|r| r.ep == other_at_server).count();
    assert_eq!(of_other, 2, "both endpoints take from the same receives");
    assert!(received.iter().all(|r| posted.contains(&r.op)), "each took a posted receive");
}

pub(crate) fn each_message_consumes_one_receive<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(3);
    for i in 0..5u8 {
        pair.client.send(pair.at_client, &[i]);
    }
    let first: Vec<u8> = (0..3).map(|_| pair.received_by_server().slot.filled()[0]).collect();
    pair.settle();
    assert!(pair.server.received().is_none(), "three receives took a fourth message");
    pair.server.offer(2);
    let rest: Vec<u8> = (0..2).map(|_| pair.received_by_server().slot.filled()[0]).collect();
    assert_eq!((first, rest), (vec![0, 1, 2], vec![3, 4]));
}

pub(crate) fn a_message_waits_for_a_receive<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.send(pair.at_client, b"patient");
    pair.settle();
    assert!(pair.server.received().is_none(), "there was no receive to put it in");
    pair.server.offer(1);
    assert_eq!(pair.received_by_server().slot.filled(), b"patient");
}

pub(crate) fn a_message_too_long_for_its_receive_is_not_cut<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer_slot(Slot::alloc(16).expect("memory for a slot"));
    pair.client.send(pair.at_client, &pattern(3, 17));
    let why = pair.server_closed();
    assert_eq!(why.kind(), ErrorKind::NoReceive, "{why}");
    pair.client_closed();
    assert!(pair.server.received().is_none(), "part of a message was delivered");
}

pub(crate) fn shared_bytes_go_to_many_endpoints<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (_, other_at_client) = pair.connect();
    let message = pair.client.filled(&pattern(9, 2000)).freeze();
    pair.server.offer(2);
    for ep in [pair.at_client, other_at_client] {
        pair.client.send_buf(ep, message.clone().into());
    }
    for _ in 0..2 {
        assert_eq!(pair.received_by_server().slot.filled(), message);
    }
}

pub(crate) fn slots_of_unregistered_memory_can_be_posted<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let unknown = Pool::new(512, 2).expect("a small pool");
    pair.server.offer_slot(unknown.take().expect("a free slot"));
    let mut slot = unknown.take().expect("a free slot");
    assert!(slot.append(b"from elsewhere"));
    pair.client.send_buf(pair.at_client, slot.into());
    assert_eq!(pair.received_by_server().slot.filled(), b"from elsewhere");
}

pub(crate) fn a_flush_is_enough_to_send<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.settle();
    pair.server.offer(1);
    pair.client.send(pair.at_client, b"flushed");
    pair.client.domain.flush();
    let received =
        until(pair.polls_max, "a flushed message arrives", [&mut pair.server], |nodes| {
            nodes[0].received()
        });
    assert_eq!(received.slot.filled(), b"flushed");
}

pub(crate) fn a_domain_can_talk_to_itself<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let listener = listen(&mut node, harness);
    let dialed = node.domain.connect(&listener.addr).expect("a connection can be started");
    let (mut accepted, mut connected) = (None, None);
    let at_server = until(harness.polls_max(), "both ends connect", [&mut node], |[node]| {
        accepted = accepted.or_else(|| node.accepted());
        connected = connected.or_else(|| node.connected());
        connected.and(accepted)
    });
    node.offer(1);
    node.send(dialed, b"echo");
    let received =
        until(harness.polls_max(), "the message arrives", [&mut node], |[node]| node.received());
    assert_eq!((received.ep, received.slot.filled()), (at_server.0, &b"echo"[..]));
}

pub(crate) fn two_threads_exchange_messages<H: Harness>(harness: &H) {
    const COUNT: usize = 500;
    let mut server = Node::new(harness.domain());
    let mut client = Node::new(harness.domain());
    let listener = listen(&mut server, harness);
    let polls_max = harness.polls_max();
    let (at_server, at_client) = join(polls_max, &mut server, &mut client, &listener);
    let echo = move || {
        server.offer(8);
        for _ in 0..COUNT {
            let received = until(polls_max, "a request", [&mut server], |[node]| node.received());
            let text = received.slot.filled().to_vec();
            server.offer(1);
            server.send(at_server, &text);
            until(polls_max, "the answer leaves", [&mut server], |[node]| node.sent());
        }
        server
    };
    let ask = move || {
        client.offer(8);
        for number in 0..COUNT {
            client.send(at_client, &numbered(number));
            let answer = until(polls_max, "an answer", [&mut client], |[node]| node.received());
            assert_eq!(answer.slot.filled(), numbered(number));
            client.offer(1);
            until(polls_max, "the request leaves", [&mut client], |[node]| node.sent());
        }
    };
    watched(polls_max, "the echo ends", echo, ask);
}
