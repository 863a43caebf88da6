//! Listening, connecting, closing, going away.

use std::collections::BTreeSet;
use std::iter;
use std::thread;

use fabric_core::{Addr, Domain, EpId, Error, ErrorKind, Event};

use crate::Harness;
use crate::node::{Node, ep_of, until};
use crate::pair::{Pair, check_error, join, listen, pattern};

/// Connects and gives the reason why that failed.
fn refusal<H: Harness>(harness: &H, node: &mut Node<H::Domain>, addr: &Addr) -> Error {
    let ep = node.domain.connect(addr).expect("a connection can be started");
    let why = until(harness.polls_max(), "the connection is refused", [&mut *node], |[node]| {
        node.closed_of(ep)
    });
    assert!(node.connected().is_none(), "it ended in Connected and in Closed");
    why
}

pub(crate) fn connecting_is_reported_on_both_sides<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.settle();
    assert!(pair.server.accepted().is_none() && pair.client.connected().is_none(), "once each");
    pair.check_alive();
}

pub(crate) fn connecting_to_nobody_is_refused<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let why = refusal(harness, &mut node, &harness.unreachable_addr());
    check_error(&why, ErrorKind::Refused);
}

pub(crate) fn listening_fills_in_the_port<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let (one, two) = (listen(&mut node, harness), listen(&mut node, harness));
    for listener in [&one, &two] {
        assert!(listener.addr.port().is_some_and(|port| port != 0), "{}", listener.addr);
        assert_eq!(listener.addr.scheme(), harness.listen_addr().scheme());
    }
    assert_ne!(one.addr, two.addr, "an open port is another one each time");
    assert_ne!(one.id, two.id);
}

pub(crate) fn a_second_listener_finds_the_address_in_use<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let mut other = Node::new(harness.domain());
    let listener = listen(&mut node, harness);
    for domain in [&mut node.domain, &mut other.domain] {
        let taken = domain.listen(&listener.addr).expect_err("somebody listens there");
        check_error(&taken, ErrorKind::AddrInUse);
    }
}

pub(crate) fn unlisten_stops_accepting<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.domain.unlisten(pair.listener.id).expect("it listens");
    let ep = pair.client.domain.connect(&pair.listener.addr).expect("a connection can be started");
    let why = pair.until("the connection is refused", |server, client| {
        assert!(server.accepted().is_none(), "accepted after unlisten");
        client.closed_of(ep)
    });
    check_error(&why, ErrorKind::Refused);
}

pub(crate) fn unlisten_frees_the_address_at_once<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    for _ in 0..5 {
        pair.check_alive();
        pair.server.domain.unlisten(pair.listener.id).expect("it listens");
        let again = pair.server.domain.listen(&pair.listener.addr);
        pair.listener = again.expect("the address is free as soon as unlisten returns");
        (pair.at_server, pair.at_client) = pair.connect();
    }
}

pub(crate) fn accepted_endpoints_outlive_their_listener<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.domain.unlisten(pair.listener.id).expect("it listens");
    pair.check_alive();
}

pub(crate) fn the_peer_learns_of_a_close<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.domain.close(pair.at_client);
    check_error(&pair.server_closed(), ErrorKind::Closed);
    let mut pair = Pair::new(harness);
    pair.server.domain.close(pair.at_server);
    check_error(&pair.client_closed(), ErrorKind::Closed);
}

pub(crate) fn closing_is_reported_here_as_flushed<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.domain.close(pair.at_client);
    check_error(&pair.client_closed(), ErrorKind::Flushed);
}

pub(crate) fn messages_handed_over_before_a_close_still_arrive<H: Harness>(harness: &H) {
    const COUNT: usize = 10;
    let mut pair = Pair::new(harness);
    pair.server.offer(COUNT);
    for i in 0..COUNT {
        pair.client.send(pair.at_client, &pattern(i, 500));
        assert!(pair.sent_by_client().result.is_ok());
    }
    pair.client.domain.close(pair.at_client);
    pair.client_closed();
    for i in 0..COUNT {
        assert_eq!(pair.received_by_server().slot.filled(), pattern(i, 500), "message {i}");
    }
    check_error(&pair.server_closed(), ErrorKind::Closed);
}

/// Checks that nothing about `ep` was reported after its one `Closed`.
fn check_closed_is_last(seen: &[Event], of: EpId) {
    let about: Vec<&Event> = seen.iter().filter(|event| ep_of(event) == Some(of)).collect();
    let closes = about.iter().filter(|event| matches!(event, Event::Closed { .. })).count();
    assert_eq!(closes, 1, "an endpoint closes once: {about:?}");
    assert!(matches!(about.last(), Some(Event::Closed { .. })), "Closed is last: {about:?}");
}

pub(crate) fn nothing_follows_closed<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(4);
    pair.client.offer(4);
    for i in 0..6 {
        pair.client.send(pair.at_client, &pattern(i, 50));
        pair.server.send(pair.at_server, &pattern(i, 50));
    }
    pair.server.turn();
    pair.client.domain.close(pair.at_client);
    pair.server.offer(6);
    pair.until_both_closed();
    pair.settle();
    check_closed_is_last(pair.client.seen.make_contiguous(), pair.at_client);
    check_closed_is_last(pair.server.seen.make_contiguous(), pair.at_server);
}

pub(crate) fn closing_twice_does_nothing<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (other_at_server, other_at_client) = pair.connect();
    pair.client.domain.close(pair.at_client);
    pair.client.domain.close(pair.at_client);
    pair.client_closed();
    pair.server_closed();
    pair.client.domain.close(pair.at_client);
    pair.settle();
    assert!(pair.client.closed().is_none() && pair.server.closed().is_none(), "closed twice");
    (pair.at_server, pair.at_client) = (other_at_server, other_at_client);
    pair.check_alive();
}

pub(crate) fn closing_both_sides_at_once_ends_both<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.domain.close(pair.at_client);
    pair.server.domain.close(pair.at_server);
    check_error(&pair.client_closed(), ErrorKind::Flushed);
    check_error(&pair.server_closed(), ErrorKind::Flushed);
    pair.settle();
    assert!(pair.client.closed().is_none() && pair.server.closed().is_none(), "closed twice");
}

pub(crate) fn closing_one_endpoint_leaves_the_others<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let (_, doomed) = pair.connect();
    pair.client.domain.close(doomed);
    pair.until("the other endpoint closes", |server, _| server.closed());
    pair.check_alive();
}

pub(crate) fn closing_before_connected_ends_in_one_closed<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let ep = pair.client.domain.connect(&pair.listener.addr).expect("it can be started");
    pair.client.domain.close(ep);
    let why = pair.until("it closes", |_, client| client.closed_of(ep));
    check_error(&why, ErrorKind::Flushed);
    pair.settle();
    assert!(pair.client.seen.is_empty(), "nothing follows: {:?}", pair.client.seen);
    // The server may have seen it come, and then sees it go.
    if let Some((accepted, _)) = pair.server.accepted() {
        pair.until("the server's end closes", |server, _| server.closed_of(accepted));
    }
}

pub(crate) fn connecting_both_ways_at_once_makes_two_connections<H: Harness>(harness: &H) {
    let mut nodes = [Node::new(harness.domain()), Node::new(harness.domain())];
    let addrs = [listen(&mut nodes[0], harness).addr, listen(&mut nodes[1], harness).addr];
    let dialed = [0, 1].map(|i| nodes[i].domain.connect(&addrs[1 - i]).expect("it starts"));
    let [one, two] = &mut nodes;
    let mut ends = [(None, None), (None, None)];
    until(harness.polls_max(), "both connect", [one, two], |nodes| {
        for (node, (accepted, connected)) in nodes.iter_mut().zip(&mut ends) {
            *accepted = accepted.or_else(|| node.accepted());
            *connected = connected.or_else(|| node.connected());
        }
        ends.iter()
            .all(|(accepted, connected)| accepted.is_some() && connected.is_some())
            .then_some(())
    });
    for ((accepted, connected), dialed) in ends.into_iter().zip(dialed) {
        assert_eq!(connected, Some(dialed));
        assert_ne!(accepted.map(|(ep, _)| ep), Some(dialed), "two connections, not one");
    }
}

pub(crate) fn many_connect_at_once<H: Harness>(harness: &H) {
    const COUNT: usize = 100;
    let mut pair = Pair::new(harness);
    let dialed: BTreeSet<EpId> = (0..COUNT)
        .map(|_| pair.client.domain.connect(&pair.listener.addr).expect("it can be started"))
        .collect();
    assert_eq!(dialed.len(), COUNT);
    let (mut accepted, mut connected) = (BTreeSet::new(), BTreeSet::new());
    pair.until("all connect", |server, client| {
        accepted.extend(iter::from_fn(|| server.accepted()).map(|(ep, _)| ep));
        connected.extend(iter::from_fn(|| client.connected()));
        (accepted.len() == COUNT && connected.len() == COUNT).then_some(())
    });
    assert_eq!(connected, dialed);
    pair.check_alive();
}

pub(crate) fn thousands_of_connections_come_and_go<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    for round in 0..40 {
        let lanes: Vec<EpId> = (0..50)
            .map(|_| pair.client.domain.connect(&pair.listener.addr).expect("it can be started"))
            .collect();
        let (mut open, mut gone) = (0, 0);
        pair.until(&format!("round {round} comes and goes"), |server, client| {
            while server.accepted().is_some() {
                open += 1;
            }
            while let Some(ep) = client.connected() {
                client.domain.close(ep);
            }
            while server.closed().is_some() {
                gone += 1;
            }
            (open == lanes.len() && gone == lanes.len()).then_some(())
        });
        for ep in lanes {
            pair.until("the client's end closes", |_, client| client.closed_of(ep));
        }
    }
    pair.check_alive();
}

pub(crate) fn endpoints_are_never_named_twice<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mut names = vec![(pair.at_server, pair.at_client)];
    for _ in 0..30 {
        pair.client.domain.close(pair.at_client);
        pair.client_closed();
        pair.server_closed();
        (pair.at_server, pair.at_client) = pair.connect();
        names.push((pair.at_server, pair.at_client));
    }
    let servers: BTreeSet<_> = names.iter().map(|(at_server, _)| at_server).collect();
    let clients: BTreeSet<_> = names.iter().map(|(_, at_client)| at_client).collect();
    assert_eq!((servers.len(), clients.len()), (names.len(), names.len()), "{names:?}");
}

pub(crate) fn a_dropped_domain_resets_its_peers<H: Harness>(harness: &H) {
    let Pair { server, mut client, at_client, polls_max, .. } = Pair::new(harness);
    let posted = client.send(at_client, b"too late");
    drop(server);
    let (mut back, why) = until(polls_max, "the endpoint closes", [&mut client], |[client]| {
        client.closed_of(at_client).map(|why| (client.sent(), why))
    });
    check_error(&why, ErrorKind::Reset);
    assert_eq!(back.take().map(|sent| sent.op), Some(posted), "the send comes back");
}

pub(crate) fn a_dropped_domain_frees_its_address<H: Harness>(harness: &H) {
    let Pair { server, mut client, listener, at_client, polls_max, .. } = Pair::new(harness);
    drop(server);
    let why = refusal(harness, &mut client, &listener.addr);
    check_error(&why, ErrorKind::Refused);
    until(polls_max, "the old endpoint closes", [&mut client], |[node]| node.closed_of(at_client));
    client.domain.listen(&listener.addr).expect("the address is free");
}

pub(crate) fn a_domain_can_move_to_another_thread<H: Harness>(harness: &H) {
    let mut server = Node::new(harness.domain());
    let mut client = Node::new(harness.domain());
    let listener = listen(&mut server, harness);
    let polls_max = harness.polls_max();
    let (_, at_client) = join(polls_max, &mut server, &mut client, &listener);
    server.offer(1);
    let sender = thread::spawn(move || {
        client.send(at_client, b"from afar");
        until(polls_max, "the send comes back", [&mut client], |[client]| client.sent());
        client
    });
    let received = until(polls_max, "the message arrives", [&mut server], |[node]| node.received());
    assert_eq!(received.slot.filled(), b"from afar");
    let mut client = sender.join().expect("the sender ends");
    client.domain.close(at_client);
    until(polls_max, "the server sees it go", [&mut server, &mut client], |[server, _]| {
        server.closed()
    });
}
