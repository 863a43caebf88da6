//! What the steady state allocates: nothing for each message sent, and at most once for each slot
//! received. Both ends run in one thread, whose allocations alone are counted.

use std::time::Duration;

use allocation_counter::measure;
use msg_patterns::{
    Bytes, Context, Dealer, Message, Pub, Pull, Push, Rep, Req, Router, Sub, Upstream, XPub, XSub,
};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const ANYWHERE: &str = "tcp://127.0.0.1:0";
/// Messages at a time: fewer than the credit that a receiver renews.
const BATCH: u64 = 300;
const TURNS: u64 = 20;
/// Turns after which all memory is there.
const WARM: u64 = 10;
/// Allocations by which tables of the engine may still grow, however many messages there are.
const GROWTH_MAX: u64 = 20;

/// Allocations of this thread while it runs `work`.
fn allocations(work: impl FnMut()) -> u64 {
    measure(work).count_total
}

fn body() -> Bytes {
    Bytes::from(vec![7; 64])
}

fn pipe(context: &Context) -> (Push, Pull) {
    let pull = Pull::new(context).unwrap();
    let addr = pull.bind(ANYWHERE).unwrap().to_string();
    let push = Push::new(context).unwrap();
    push.connect(&addr).unwrap();
    (push, pull)
}

/// Allocations for sending and for receiving `TURNS` batches, once warm.
fn steady(mut send: impl FnMut(), mut recv: impl FnMut()) -> (u64, u64) {
    for _ in 0..WARM {
        send();
        recv();
    }
    let (mut sending, mut receiving) = (0, 0);
    for _ in 0..TURNS {
        sending += allocations(&mut send);
        receiving += allocations(&mut recv);
    }
    (sending, receiving)
}

fn none_each(sending: u64) {
    assert!(sending <= GROWTH_MAX, "{sending} allocations for {} messages", TURNS * BATCH);
}

/// Received slots cannot be counted from outside. Each was at least one post of its sender.
fn at_most_one_each(receiving: u64, posts: u64) {
    let most = posts + GROWTH_MAX;
    assert!(receiving <= most, "{receiving} allocations for {posts} slots");
}

#[test]
fn a_pushed_message_allocates_nothing_and_a_received_slot_once() {
    let (push, pull) = pipe(&Context::new());
    let body = body();
    let send = || (0..BATCH).for_each(|_| push.send(body.clone()).unwrap());
    let recv = || (0..BATCH).for_each(|_| drop(pull.recv_timeout(LONG).unwrap()));
    let (sending, receiving) = steady(send, recv);
    none_each(sending);
    at_most_one_each(receiving, push.counters().posts);
}

#[test]
fn a_dealt_message_allocates_nothing_and_a_received_slot_once() {
    let context = Context::new();
    let [dealer, other] = [(); 2].map(|()| Dealer::new(&context).unwrap());
    dealer.connect(&other.bind(ANYWHERE).unwrap().to_string()).unwrap();
    let body = body();
    let send = || (0..BATCH).for_each(|_| dealer.send(body.clone()).unwrap());
    let recv = || (0..BATCH).for_each(|_| drop(other.recv_timeout(LONG).unwrap()));
    let (sending, receiving) = steady(send, recv);
    none_each(sending);
    at_most_one_each(receiving, dealer.counters().posts);
}

#[test]
fn a_routed_message_allocates_nothing_and_a_received_slot_once() {
    let context = Context::new();
    let router = Router::new(&context).unwrap();
    let addr = router.bind(ANYWHERE).unwrap().to_string();
    let dealer = Dealer::new(&context).unwrap();
    dealer.connect(&addr).unwrap();
    let body = body();
    dealer.send(body.clone()).unwrap();
    let (id, _) = router.recv_timeout(LONG).unwrap();
    let send = || (0..BATCH).for_each(|_| router.send_to(&id, body.clone()).unwrap());
    let recv = || (0..BATCH).for_each(|_| drop(dealer.recv_timeout(LONG).unwrap()));
    let (sending, receiving) = steady(send, recv);
    none_each(sending);
    at_most_one_each(receiving, router.counters().posts);
    let before = dealer.counters().posts;
    let send = || (0..BATCH).for_each(|_| dealer.send(body.clone()).unwrap());
    let recv = || (0..BATCH).for_each(|_| drop(router.recv_timeout(LONG).unwrap()));
    let (sending, receiving) = steady(send, recv);
    none_each(sending);
    at_most_one_each(receiving, dealer.counters().posts - before);
}

#[test]
fn many_at_once_allocate_no_more() {
    let (push, pull) = pipe(&Context::new());
    let body = body();
    let mut messages: Vec<Message> = Vec::with_capacity(BATCH as usize);
    let send = || push.send_many((0..BATCH).map(|_| body.clone())).unwrap();
    let recv = || {
        while messages.len() < BATCH as usize {
            let missing = BATCH as usize - messages.len();
            pull.recv_many_timeout(&mut messages, missing, LONG).unwrap();
        }
        messages.clear();
    };
    let (sending, receiving) = steady(send, recv);
    none_each(sending);
    at_most_one_each(receiving, push.counters().posts);
}

#[test]
fn a_published_message_allocates_nothing_for_each_subscriber() {
    const SUBSCRIBERS: usize = 8;
    let context = Context::new();
    let publisher = Pub::new(&context).unwrap();
    let addr = publisher.bind(ANYWHERE).unwrap().to_string();
    let subs: Vec<Sub> = (0..SUBSCRIBERS).map(|_| Sub::new(&context).unwrap()).collect();
    for sub in &subs {
        sub.connect(&addr).unwrap();
        sub.subscribe("").unwrap();
    }
    publisher.wait_matching("", SUBSCRIBERS, LONG).unwrap();
    let body = body();
    let before = publisher.counters().posts;
    let send = || (0..BATCH).for_each(|_| publisher.send(body.clone()).unwrap());
    let recv = || {
        for sub in &subs {
            (0..BATCH).for_each(|_| drop(sub.recv_timeout(LONG).unwrap()));
        }
    };
    let (sending, receiving) = steady(send, recv);
    // A slot that several share is frozen once.
    let posts = publisher.counters().posts - before;
    let most = posts / SUBSCRIBERS as u64 + GROWTH_MAX;
    assert!(sending <= most, "{sending} allocations for {posts} posts");
    at_most_one_each(receiving, posts);
}

#[test]
fn a_message_sent_up_to_publishers_allocates_nothing_and_a_received_slot_once() {
    let context = Context::new();
    let publishers = [(); 2].map(|()| XPub::new(&context).unwrap());
    let sub = XSub::new(&context).unwrap();
    for publisher in &publishers {
        sub.connect(&publisher.bind(ANYWHERE).unwrap().to_string()).unwrap();
    }
    sub.subscribe("").unwrap();
    for publisher in &publishers {
        assert!(matches!(publisher.recv_timeout(LONG), Ok(Upstream::Subscription(_))));
    }
    let body = body();
    let before = sub.counters().posts;
    let send = || (0..BATCH).for_each(|_| sub.send(body.clone()).unwrap());
    let recv = || {
        for publisher in &publishers {
            (0..BATCH).for_each(|_| drop(publisher.recv_timeout(LONG).unwrap()));
        }
    };
    let (sending, receiving) = steady(send, recv);
    let posts = sub.counters().posts - before;
    let most = posts / publishers.len() as u64 + GROWTH_MAX;
    assert!(sending <= most, "{sending} allocations for {posts} posts");
    at_most_one_each(receiving, posts);
}

#[test]
fn a_round_trip_allocates_once_for_each_received_message() {
    let context = Context::new();
    let rep = Rep::new(&context).unwrap();
    let addr = rep.bind(ANYWHERE).unwrap().to_string();
    let req = Req::new(&context).unwrap();
    req.connect(&addr).unwrap();
    let body = body();
    let round_trip = || {
        req.send(body.clone()).unwrap();
        rep.send(rep.recv_timeout(LONG).unwrap()).unwrap();
        req.recv_timeout(LONG).unwrap();
    };
    (0..50).for_each(|_| round_trip());
    let count = allocations(|| (0..100).for_each(|_| round_trip()));
    assert!(count <= 200, "{count} allocations for 100 round trips");
}
