//! Queues and their high-water marks.

use std::time::Duration;

use msg_patterns::{
    Builder, Error, ErrorKind, Linger, Message, Pub, Pull, Push, Rep, Req, SendError, Sub,
};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::support::{LONG, NEVER, Net, Raw, hello};

rules! {
    fn hwm_01_every_queue_out_can_be_limited(net) {
        let push = lone_push(net, Push::builder().send_hwm(3));
        accepts(3, |i, patience| push.send_timeout(&[i], patience));

        let req = Req::builder().send_hwm(2).linger(Linger::No).build(net.context()).unwrap();
        req.connect(&net.nobody()).unwrap();
        accepts(2, |i, patience| req.clone().send_timeout(&[i], patience));

        let publisher = Pub::builder().send_hwm(4).linger(Linger::No).build(net.context()).unwrap();
        let addr = publisher.bind(net.any()).unwrap().to_string();
        let mut deaf = Raw::greet_with(net, &addr, Hello { credit_messages: 0, ..hello(SocketType::Sub) });
        deaf.send(&[Frame::Subscribe { history: false, topic: b"" }]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..10_u8).for_each(|i| publisher.send(&[i]).unwrap());
        let peer = &publisher.peers()[0];
        assert_eq!((peer.queued, peer.dropped), (4, 6));
    }

    // rules: HWM-01
    fn replies_for_an_asker_that_reads_none_are_limited(net) {
        let rep = Rep::builder().send_hwm(2).linger(Linger::No).build(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let mut deaf = Raw::greet_with(net, &addr, Hello { credit_messages: 0, ..hello(SocketType::Req) });
        for id in 0..5 {
            deaf.send(&[Frame::Request { id, envelope: b"" }, Frame::Part { more: false, body: b"?" }]);
            let request = rep.recv_timeout(LONG).unwrap();
            rep.send(request).unwrap();
        }
        assert_eq!((rep.peers()[0].queued, rep.counters().dropped), (2, 3));
    }

    // rules: HWM-01
    fn every_queue_in_can_be_limited(net) {
        let pull = Pull::builder().recv_hwm(3).recv_hwm_bytes(5000).build(net.context()).unwrap();
        assert_eq!(credit(net, &bind(net, |any| pull.bind(any)), SocketType::Push), (3, 5000));
        let sub = Sub::builder().recv_hwm(3).recv_hwm_bytes(5000).build(net.context()).unwrap();
        assert_eq!(credit(net, &bind(net, |any| sub.bind(any)), SocketType::Pub), (3, 5000));
        let req = Req::builder().recv_hwm(3).recv_hwm_bytes(5000).build(net.context()).unwrap();
        assert_eq!(credit(net, &bind(net, |any| req.bind(any)), SocketType::Rep), (3, 5000));
        let rep = Rep::builder().recv_hwm(3).recv_hwm_bytes(5000).build(net.context()).unwrap();
        assert_eq!(credit(net, &bind(net, |any| rep.bind(any)), SocketType::Req), (3, 5000));
    }

    // rules: HWM-01
    fn bytes_are_limited_beside_messages(net) {
        let push = lone_push(net, Push::builder().send_hwm_bytes(10));
        accepts(2, |_, patience| push.send_timeout("four", patience));
        push.try_send("ab").unwrap();
        assert_eq!(push.try_send("c").unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn hwm_02_the_default_is_1000_each_way_per_peer(net) {
        let push = lone_push(net, Push::builder());
        accepts(1000, |i, patience| push.send_timeout(&[i], patience));
        push.connect(&net.nobody()).unwrap();
        accepts(1000, |i, patience| push.send_timeout(&[i], patience));

        let pull = Pull::new(net.context()).unwrap();
        let addr = bind(net, |any| pull.bind(any));
        for _ in 0..2 {
            assert_eq!(credit(net, &addr, SocketType::Push).0, 1000);
        }
    }

    fn hwm_03_zero_means_unlimited(net) {
        let push = lone_push(net, Push::builder().send_hwm(0));
        (0..20_000_u32).for_each(|i| push.try_send(&i.to_le_bytes()).unwrap());

        let (push, pull) = pair(net, Push::builder().send_hwm(1), Pull::builder().recv_hwm(0));
        (0..20_000_u32).for_each(|i| push.send_timeout(&i.to_le_bytes(), LONG).unwrap());
        (0..20_000_u32).for_each(|i| assert_eq!(number(&pull), i));
    }

    fn hwm_07_room_after_drain(net) {
        let (push, pull) = pair(net, Push::builder().send_hwm(1), Pull::builder().recv_hwm(1));
        accepts(2, |i, patience| push.send_timeout(&[i], patience));
        for i in 2..50_u8 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i - 2]);
            push.send_timeout(&[i], LONG).unwrap();
        }
    }

    // rules: HWM-07
    fn what_an_earlier_connection_left_unread_takes_room_only_until_it_is_read(net) {
        let sub = Sub::builder().recv_hwm(8).build(net.context()).unwrap();
        sub.subscribe("").unwrap();
        let (mut publisher, addr) = Raw::listen(net);
        sub.connect(&addr).unwrap();
        publisher.accept(SocketType::Pub);
        publisher.send(&[Frame::Part { more: false, body: b"old" }; 8]);
        publisher.send(&[Frame::Bye]);
        publisher.expect_closed();
        publisher.accept(SocketType::Pub);
        (0..8).for_each(|_| assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "old"));
        publisher.expect("credit for all of its room", |frame| {
            matches!(frame, Frame::Credit { messages: 8, .. })
        });
    }

    fn hwm_08_resume_at_low_water(net) {
        let pull = Pull::builder().recv_hwm(8).build(net.context()).unwrap();
        let addr = bind(net, |any| pull.bind(any));
        let mut push = Raw::greet(net, &addr, SocketType::Push);
        push.send(&[Frame::Part { more: false, body: b"x" }; 8]);
        let mut grants = Vec::new();
        for read in 1..=8_u8 {
            pull.recv_timeout(LONG).unwrap();
            push.send(&[Frame::Ping { ttl_tenths: 0, context: &[read] }]);
            grants.extend(grants_before_pong(&mut push, read).map(|messages| (read, messages)));
        }
        assert_eq!(grants, [(4, 12), (8, 16)]);
    }

    // rules: HWM-08
    fn a_blocked_writer_is_woken_once_half_was_read(net) {
        let (push, pull) = pair(net, Push::builder().send_hwm(1), Pull::builder().recv_hwm(8));
        accepts(9, |i, patience| push.send_timeout(&[i], patience));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| push.send_timeout("woken", LONG));
            (0..4).for_each(|_| drop(pull.recv_timeout(LONG).unwrap()));
            writer.join().unwrap().unwrap();
        });
    }

    fn hwm_09_the_limit_counts_whole_messages(net) {
        let push = Push::builder().send_hwm(1).build(net.context()).unwrap();
        let addr = net.nobody();
        push.connect(&addr).unwrap();
        let message = Message::from_parts(vec!["part"; 5000]);
        push.try_send(&message).unwrap();
        assert_eq!(push.try_send("").unwrap_err().kind(), ErrorKind::WouldBlock);
        let pull = Pull::builder().recv_hwm(1).build(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap(), message);
    }

    fn hwm_10_a_changed_limit_acts_on_existing_queues(net) {
        let push = lone_push(net, Push::builder().send_hwm(4));
        accepts(4, |i, patience| push.send_timeout(&[i], patience));
        push.set_send_hwm(6).unwrap();
        accepts(2, |i, patience| push.send_timeout(&[i], patience));

        let (push, pull) = pair(net, Push::builder().send_hwm(1), Pull::builder().recv_hwm(4));
        accepts(5, |i, patience| push.send_timeout(&[i], patience));
        pull.set_recv_hwm(6).unwrap();
        accepts(2, |i, patience| push.send_timeout(&[i], patience));
    }

    // rules: HWM-10
    fn a_blocked_writer_is_woken_by_a_higher_limit(net) {
        let push = lone_push(net, Push::builder().send_hwm(1));
        push.send("first").unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| push.send_timeout("second", LONG));
            push.set_send_hwm(2).unwrap();
            writer.join().unwrap().unwrap();
        });
    }

    fn hwm_11_a_lower_limit_loses_nothing(net) {
        let push = Push::builder().send_hwm(10).linger(Linger::No).build(net.context()).unwrap();
        let addr = net.nobody();
        push.connect(&addr).unwrap();
        (0..10_u32).for_each(|i| push.try_send(&i.to_le_bytes()).unwrap());
        push.set_send_hwm(2).unwrap();
        assert_eq!(push.try_send("no").unwrap_err().kind(), ErrorKind::WouldBlock);

        let pull = Pull::builder().recv_hwm(10).build(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        crate::support::wait_until("all arrived", || pull.counters().received == 10);
        pull.set_recv_hwm(2).unwrap();
        (0..10).for_each(|i| assert_eq!(number(&pull), i));
        accepts(4, |i, patience| push.send_timeout(&[i], patience));
    }

    fn hwm_12_a_blocked_send_honours_its_time_limit(net) {
        let push = lone_push(net, Push::builder().send_hwm(1));
        push.send("first").unwrap();
        let start = std::time::Instant::now();
        let late = push.send_timeout("second", NEVER).unwrap_err();
        assert!(start.elapsed() >= NEVER);
        assert_eq!((late.kind(), late.message), (ErrorKind::TimedOut, "second".into()));
        let refused = push.try_send("second").unwrap_err();
        assert_eq!((refused.kind(), refused.message), (ErrorKind::WouldBlock, "second".into()));
    }

    fn hwm_15_what_was_queued_before_the_connection_survives_a_close(net) {
        let push = Push::builder().send_hwm(1).build(net.context()).unwrap();
        let addr = net.nobody();
        push.connect(&addr).unwrap();
        push.send("kept").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || push.close());
            let pull = Pull::new(net.context()).unwrap();
            pull.bind(&addr).unwrap();
            assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "kept");
        });
    }

    // rules: DEV-7
    fn dev_07_the_limits_hold_exactly_for_small_and_large_messages(net) {
        for (hwm, bytes) in [(1, 1), (10, 1), (100, 1), (1, 65_536), (10, 65_536), (100, 65_536)] {
            let (push, pull) = pair(net, Push::builder().send_hwm(hwm), Pull::builder().recv_hwm(hwm));
            let message = Message::from(vec![7; bytes]);
            accepts(2 * hwm, |_, patience| push.send_timeout(&message, patience));
            (0..2 * hwm).for_each(|_| assert_eq!(pull.recv_timeout(LONG).unwrap(), message));
        }
    }
}

/// Checks that exactly `count` messages are accepted, and the next one is refused for want of room.
fn accepts(count: usize, mut send: impl FnMut(u8, Duration) -> Result<(), SendError>) {
    (0..count).for_each(|i| send(i as u8, LONG).unwrap());
    assert_eq!(send(0, NEVER).unwrap_err().kind(), ErrorKind::TimedOut, "after {count}");
}

fn bind(net: &Net, bind: impl FnOnce(&str) -> Result<msg_patterns::Addr, Error>) -> String {
    bind(net.any()).unwrap().to_string()
}

/// Messages and bytes that the socket at `addr` grants to a peer of type `kind`.
fn credit(net: &Net, addr: &str, kind: SocketType) -> (u64, u64) {
    let mut raw = Raw::connect(net, addr);
    raw.send(&[Frame::Hello(hello(kind))]);
    let answer = raw.expect("a greeting", |frame| matches!(frame, Frame::Hello(_)));
    match Frame::decode(&answer).unwrap().0 {
        Frame::Hello(hello) => (hello.credit_messages, hello.credit_bytes),
        other => panic!("not a greeting: {other:?}"),
    }
}

/// A pusher with nobody to push to, that drops what it queued in the end.
fn lone_push(net: &Net, push: Builder<Push>) -> Push {
    let push = push.linger(Linger::No).build(net.context()).unwrap();
    push.connect(&net.nobody()).unwrap();
    push
}

/// A connected pair.
fn pair(net: &Net, push: Builder<Push>, pull: Builder<Pull>) -> (Push, Pull) {
    let push = push.linger(Linger::No).build(net.context()).unwrap();
    let pull = pull.build(net.context()).unwrap();
    push.connect(&bind(net, |any| pull.bind(any))).unwrap();
    (push, pull)
}

fn number(pull: &Pull) -> u32 {
    let message = pull.recv_timeout(LONG).unwrap();
    u32::from_le_bytes(message.first()[..].try_into().unwrap())
}

/// The messages granted in all, by each CREDIT that comes before the answer to a ping.
fn grants_before_pong(raw: &mut Raw, context: u8) -> impl Iterator<Item = u64> {
    let mut grants = Vec::new();
    loop {
        let bytes = raw.expect("a grant or the pong", |frame| {
            matches!(frame, Frame::Credit { .. } | Frame::Pong { .. })
        });
        match Frame::decode(&bytes).unwrap().0 {
            Frame::Credit { messages, .. } => grants.push(messages),
            other => {
                assert_eq!(other, Frame::Pong { context: &[context] });
                return grants.into_iter();
            }
        }
    }
}
