//! Sleeping until something happens, and being woken.

use std::time::Duration;

use fabric_core::{Domain, ErrorKind};

use crate::Harness;
use crate::node::{Node, settle, until};
use crate::pair::{Pair, check_error, listen};
use crate::wake::{arm_until_idle, becomes_readable, watched, watched_with, would_wake};

/// Waits without limit on another thread, again and again, until `ready` has something. Gives
/// the node back, as dropping it would be news for its peer.
fn sleep_until<D: Domain + 'static, T: Send + 'static>(
    naps_max: u32,
    what: &str,
    mut node: Node<D>,
    mut ready: impl FnMut(&mut Node<D>) -> Option<T> + Send + 'static,
    meanwhile: impl FnOnce(),
) -> (T, Node<D>) {
    let job = move || loop {
        node.turn();
        if let Some(found) = ready(&mut node) {
            return (found, node);
        }
        node.domain.wait(None).expect("a healthy domain can wait");
    };
    watched(naps_max, what, job, meanwhile)
}

pub(crate) fn wait_returns_after_its_timeout<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let naps_max = harness.polls_max();
    let job = move || {
        for timeout_ms in [0, 1, 20] {
            let timeout = Some(Duration::from_millis(timeout_ms));
            node.domain.wait(timeout).expect("a healthy domain can wait");
        }
    };
    watched(naps_max, "wait returns though nothing happens", job, || {});
}

pub(crate) fn wait_ends_when_a_message_arrives<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(1);
    pair.settle();
    let Pair { server, mut client, at_client, polls_max, .. } = pair;
    let receive = |server: &mut Node<H::Domain>| server.received();
    let (received, _server) =
        sleep_until(polls_max, "a message ends wait", server, receive, || {
            client.nap();
            client.send(at_client, b"wake up");
            client.domain.flush();
        });
    assert_eq!(received.slot.filled(), b"wake up");
}

pub(crate) fn wait_ends_when_a_peer_connects<H: Harness>(harness: &H) {
    let mut server = Node::new(harness.domain());
    let mut client = Node::new(harness.domain());
    let listener = listen(&mut server, harness);
    let naps_max = harness.polls_max();
    let accept = |server: &mut Node<H::Domain>| server.accepted();
    let _server = sleep_until(naps_max, "a peer ends wait", server, accept, || {
        client.domain.connect(&listener.addr).expect("a connection can be started");
        // Some fabrics shake hands, for which both sides must poll.
        until(naps_max, "the connection stands", [&mut client], |[node]| node.connected());
    });
}

pub(crate) fn wait_ends_when_the_peer_closes<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.settle();
    let Pair { server, mut client, at_client, polls_max, .. } = pair;
    let end = |server: &mut Node<H::Domain>| server.closed();
    let _server = sleep_until(polls_max, "the peer's close ends wait", server, end, || {
        client.nap();
        client.domain.close(at_client);
        settle([&mut client]);
    });
}

pub(crate) fn wait_ends_when_a_connection_is_refused<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    node.domain.connect(&harness.unreachable_addr()).expect("a connection can be started");
    let end = |node: &mut Node<H::Domain>| node.closed();
    let naps_max = harness.polls_max();
    let ((_, why), _) = sleep_until(naps_max, "the refusal ends wait", node, end, || {});
    check_error(&why, ErrorKind::Refused);
}

pub(crate) fn wait_does_not_sleep_on_events_left_over<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(8);
    for i in 0..8 {
        pair.client.send(pair.at_client, &[i]);
    }
    pair.client.turn();
    settle([&mut pair.client]);
    let Pair { server: Node { mut domain, .. }, client: _client, polls_max, .. } = pair;
    let job = move || {
        let mut events = Vec::new();
        while events.len() < 8 {
            domain.poll(&mut events, 1);
            if events.len() < 8 {
                domain.wait(None).expect("a healthy domain can wait");
            }
        }
    };
    watched(polls_max, "wait sees what poll left over", job, || {});
}

pub(crate) fn the_waker_ends_wait<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let waker = node.domain.waker();
    // The first wait may end early for reasons of its own; the waker must end all of them.
    let job = move || {
        for _ in 0..3 {
            node.domain.wait(None).expect("a healthy domain can wait");
        }
    };
    watched_with(harness.polls_max(), "the waker ends wait", job, || waker.wake());
}

pub(crate) fn a_wake_before_wait_counts<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.settle();
    let Pair { mut server, client: _client, polls_max, .. } = pair;
    let job = move || {
        arm_until_idle(polls_max, &mut server);
        server.domain.waker().wake();
        server.domain.wait(None).expect("a healthy domain can wait");
    };
    watched(polls_max, "a wake before wait counts", job, || {});
}

pub(crate) fn the_waker_outlives_its_domain<H: Harness>(harness: &H) {
    let node = Node::new(harness.domain());
    let waker = node.domain.waker();
    drop(node);
    waker.wake();
    waker.clone().wake();
}

pub(crate) fn the_descriptor_tells_of_a_message_after_arm<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(3);
    pair.settle();
    for i in 0..3 {
        arm_until_idle(pair.polls_max, &mut pair.server);
        pair.client.send(pair.at_client, &[i]);
        pair.client.domain.flush();
        let readable = becomes_readable(pair.polls_max, pair.server.domain.wait_fd());
        assert!(readable, "the descriptor stays silent though message {i} came");
        assert_eq!(pair.received_by_server().slot.filled(), [i]);
    }
}

pub(crate) fn the_descriptor_tells_of_the_waker<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    arm_until_idle(harness.polls_max(), &mut node);
    node.domain.waker().wake();
    let readable = becomes_readable(harness.polls_max(), node.domain.wait_fd());
    assert!(readable, "the descriptor stays silent though the waker was called");
}

pub(crate) fn nothing_is_missed_between_poll_and_arm<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.offer(2);
    pair.settle();
    pair.client.send(pair.at_client, b"one");
    pair.client.send(pair.at_client, b"two");
    pair.client.domain.flush();
    // Whether it arrived before or after the arming, and whether poll took it in or left it.
    assert!(would_wake(pair.polls_max, &mut pair.server), "the first message is missed");
    poll_one(pair.polls_max, &mut pair.server);
    assert!(would_wake(pair.polls_max, &mut pair.server), "the second message is missed");
}

/// Takes one event and leaves the others where they are.
fn poll_one<D: Domain>(polls_max: u32, node: &mut Node<D>) {
    let mut events = Vec::new();
    for _ in 0..polls_max {
        if node.domain.poll(&mut events, 1) > 0 {
            return;
        }
        node.nap();
    }
    panic!("waited for {polls_max} polls in vain: one event");
}

pub(crate) fn time_does_not_go_back<H: Harness>(harness: &H) {
    let mut node = Node::new(harness.domain());
    let mut last = node.domain.now();
    for _ in 0..50 {
        node.turn();
        let now = node.domain.now();
        assert!(now >= last, "time went back by {:?}", last - now);
        last = now;
    }
}
