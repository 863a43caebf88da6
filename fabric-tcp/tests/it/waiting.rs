//! Waking, and a foreign event loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fabric_core::{Armed, Domain, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Node, pair};

fn is_readable(node: &Node) -> bool {
    let fd = node.domain.wait_fd();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[test]
fn a_wait_without_limit_ends_when_woken_from_a_thread() {
    let mut node = Node::new();
    let (waker, called) = (node.domain.waker(), Arc::new(AtomicBool::new(false)));
    let thread = std::thread::spawn({
        let called = called.clone();
        move || {
            std::thread::sleep(Duration::from_millis(20));
            called.store(true, Ordering::SeqCst);
            waker.wake();
        }
    });
    while !called.load(Ordering::SeqCst) {
        node.domain.wait(None).unwrap();
    }
    thread.join().unwrap();
}

#[test]
fn a_wake_survives_polls_and_is_used_up_by_one_wait() {
    let mut node = Node::new();
    for _ in 0..3 {
        node.domain.waker().wake();
    }
    node.step();
    node.step();
    node.domain.wait(None).unwrap();
    assert!(!is_readable(&node));
    assert_eq!(node.domain.arm(), Armed::Idle(None));
}

#[test]
fn the_descriptor_is_quiet_until_something_happens() {
    let (mut client, mut server, to, _) = pair();
    server.post_recvs(1, 8);
    server.step();
    server.step();
    assert!(matches!(server.domain.arm(), Armed::Idle(_)));
    assert!(!is_readable(&server));
    client.send(to, &b"x"[..]);
    client.domain.flush();
    while !is_readable(&server) {
        std::thread::yield_now();
    }
    server.step();
    assert_eq!(server.received(), b"x");
}

#[test]
fn polling_alone_is_enough_also_after_a_wait() {
    let (mut client, mut server, to, _) = pair();
    server.post_recvs(1, 8);
    // Whoever is ready from before has its turn.
    server.step();
    server.step();
    server.domain.wait(Some(Duration::ZERO)).unwrap();
    client.send(to, &b"x"[..]);
    client.domain.flush();
    while server.events.is_empty() {
        server.step();
        std::thread::yield_now();
    }
    assert_eq!(server.received(), b"x");
}

#[test]
fn deadlines_of_the_domain_bound_a_foreign_loop() {
    let mut node = Node::new();
    let addr = node.listen("tcp://127.0.0.1:0").addr;
    assert_eq!(node.domain.arm(), Armed::Idle(None));
    let _silent = crate::support::RawPeer::connect(&addr);
    while !is_readable(&node) {
        std::thread::yield_now();
    }
    node.step();
    let Armed::Idle(Some(left)) = node.domain.arm() else { panic!("no deadline") };
    assert!(left <= Duration::from_secs(5));
}

#[test]
fn who_always_has_something_else_to_take_still_hears_its_peers() {
    let (mut client, mut server, to, from) = pair();
    client.post_recvs(1, 8);
    server.post_recvs(16, 8);
    server.send(from, &b"heard"[..]);
    server.domain.flush();
    let mut is_heard = false;
    for _ in 0..16 {
        client.send(to, &b"x"[..]);
        client.domain.flush();
        // There is the report of what was sent, so this does not sleep.
        client.domain.wait(None).unwrap();
        client.step();
        is_heard |= client.count(|event| matches!(event, Event::Received { .. })) > 0;
    }
    assert!(is_heard, "in 16 turns");
}

#[test]
fn who_polls_without_sleeping_and_has_one_peer_still_takes_another() {
    let (mut first, mut server, _, _) = pair();
    let addr = server.listen("tcp://127.0.0.1:0").addr;
    let mut second = Node::new();
    second.domain.connect(&addr).unwrap();
    let is_accepted = |event: &Event| matches!(event, Event::Accepted { .. });
    let start = Instant::now();
    while server.count(is_accepted) == 0 {
        // Watchdog: generous, for a server that never looks.
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", server.events);
        for node in [&mut first, &mut server, &mut second] {
            node.step();
        }
        std::thread::yield_now();
    }
}
