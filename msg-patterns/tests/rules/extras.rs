//! What goes beyond the patterns' RFCs: backpressure by choice, matching, history, counted losses.

use std::time::Duration;

use msg_patterns::{Builder, ErrorKind, Linger, OnFull, Pub, Pull, Push, Req, SendError, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::pubsub::{
    END, granting, next, next_part, numbered, numbers, publisher, subscriber, upto_end,
};
use crate::support::{LONG, NEVER, Raw, wait_until};

rules! {
    fn new_01_a_publisher_chooses_to_drop_or_to_block(net) {
        let (blocks, addr) = publisher(net, blocking().send_hwm(2));
        let mut full = granting(net, &addr, 1);
        let fast = subscriber(net, Sub::builder(), &addr, &[""]);
        blocks.wait_matching("", 2, LONG).unwrap();
        (0..3).for_each(|i| blocks.try_send(numbered(i, 1)).unwrap());
        assert_eq!(kind(blocks.try_send("3")), ErrorKind::WouldBlock);
        assert_eq!(kind(blocks.send_timeout("3", NEVER)), ErrorKind::TimedOut);
        full.send(&[Frame::Credit { messages: 10, bytes: 1 << 31 }]);
        blocks.send_timeout("3", LONG).unwrap();
        (0..4).for_each(|i| assert_eq!(next(&fast), i.to_string()));
        (0..4).for_each(|i| assert_eq!(next_part(&mut full), i.to_string().into_bytes()));
        assert_eq!(blocks.counters().dropped, 0);

        let (drops, addr) = publisher(net, Pub::builder().send_hwm(2));
        let _full = granting(net, &addr, 1);
        drops.wait_matching("", 1, LONG).unwrap();
        (0..10).for_each(|i| drops.try_send(numbered(i, 1)).unwrap());
        assert_eq!(drops.counters().dropped, 7);
    }

    // rules: NEW-01
    fn a_blocking_publisher_loses_nothing_however_slow_a_subscriber_is(net) {
        let (publisher, addr) = publisher(net, blocking().send_hwm(1));
        let subs = [1, 7].map(|hwm| subscriber(net, Sub::builder().recv_hwm(hwm), &addr, &[""]));
        publisher.wait_matching("", 2, LONG).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..300).for_each(|i| publisher.send_timeout(numbered(i, 1), LONG).unwrap());
            });
            for sub in &subs {
                scope.spawn(|| (0..300).for_each(|i| assert_eq!(next(sub), i.to_string())));
            }
        });
        assert_eq!(publisher.counters().dropped, 0);
    }

    // rules: NEW-01
    fn a_blocked_publisher_goes_on_when_the_full_subscriber_leaves(net) {
        let (publisher, addr) = publisher(net, blocking().send_hwm(1));
        let mut full = granting(net, &addr, 0);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("fills").unwrap();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| publisher.send_timeout("waits", LONG));
            full.vanish();
            sender.join().unwrap().unwrap();
        });
    }

    // rules: NEW-01, PUB-03
    fn a_blocking_publisher_waits_for_a_peer_that_it_connects_to(net) {
        let addr = net.nobody();
        let publisher = blocking().send_hwm(2).linger(Linger::No).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        (0..2).for_each(|i| publisher.try_send(numbered(i, 1)).unwrap());
        assert_eq!(kind(publisher.try_send("2")), ErrorKind::WouldBlock);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| publisher.send_timeout("2", LONG));
            let sub = Sub::new(net.context()).unwrap();
            sub.subscribe("").unwrap();
            sub.bind(&addr).unwrap();
            (0..3).for_each(|i| assert_eq!(next(&sub), i.to_string()));
            sender.join().unwrap().unwrap();
        });
    }

    fn new_02_a_listener_hears_whether_anybody_matches(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let mut listener = publisher.matching_listener("a 1");
        assert_eq!((listener.seen(), publisher.matching("a 1")), (0, 0));
        assert_eq!(listener.next_change(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
        let one = subscriber(net, Sub::builder(), &addr, &["b", "a"]);
        assert_eq!(listener.next_change(LONG).unwrap(), 1);
        let other = subscriber(net, Sub::builder(), &addr, &["", "a 1"]);
        assert_eq!(listener.next_change(LONG).unwrap(), 2);
        one.unsubscribe("a").unwrap();
        assert_eq!(listener.next_change(LONG).unwrap(), 1);
        assert_eq!((publisher.matching("b"), publisher.matching("c")), (2, 1));
        other.close();
        assert_eq!((listener.next_change(LONG).unwrap(), listener.seen()), (0, 0));
        publisher.close();
        assert_eq!(listener.next_change(LONG).unwrap_err().kind(), ErrorKind::Terminated);
    }

    // rules: NEW-02
    fn waiting_for_subscribers_ends_when_they_came_or_in_time(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let few = publisher.wait_matching("a", 1, NEVER).unwrap_err();
        assert_eq!(few.kind(), ErrorKind::TimedOut);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| publisher.wait_matching("a", 2, LONG));
            let _subs = [(); 2].map(|()| subscriber(net, Sub::builder(), &addr, &["a"]));
            waits.join().unwrap().unwrap();
        });
    }

    fn new_03_the_last_messages_go_to_a_late_joiner(net) {
        let (publisher, addr) = publisher(net, Pub::builder().history(5));
        let early = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..20).for_each(|i| publisher.send(numbered(i, 2)).unwrap());
        let late = subscriber(net, Sub::builder(), &addr, &[""]);
        let picky = subscriber(net, Sub::builder(), &addr, &["16", "1", "19", END]);
        publisher.wait_matching("", 2, LONG).unwrap();
        publisher.wait_matching(END, 3, LONG).unwrap();
        publisher.send(END).unwrap();
        assert_eq!(upto_end(&early), numbers(0..20));
        assert_eq!(upto_end(&late), numbers(15..20));
        let mut picked = upto_end(&picky);
        picked.sort();
        assert_eq!(picked, numbers(15..20));
    }

    // rules: NEW-03
    fn history_is_not_repeated_after_a_broken_connection(net) {
        let (publisher, addr) = publisher(net, Pub::builder().history(5));
        publisher.send("past").unwrap();
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        // A subscriber that was here before says so by not asking for history.
        raw.send(&[Frame::Subscribe { history: false, topic: b"" }, Frame::Settled]);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("now").unwrap();
        assert_eq!(next_part(&mut raw), b"now");

        let sub = Sub::builder().reconnect_interval(Some(Duration::from_millis(1)));
        let (mut raw, addr) = Raw::listen(net);
        let _sub = subscriber(net, sub, &addr, &["a"]);
        for asked in [true, false] {
            raw.accept(SocketType::Pub);
            raw.expect("its topic", |frame| {
                matches!(frame, Frame::Subscribe { history, topic: b"a" } if *history == asked)
            });
            raw.vanish();
        }
    }

    // rules: NEW-03, PUB-03
    fn a_connecting_publisher_gives_its_history_too_and_nothing_twice(net) {
        let addr = net.nobody();
        let publisher = Pub::builder().history(4).build(net.context()).unwrap();
        (0..6).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        publisher.connect(&addr).unwrap();
        (6..9).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.bind(&addr).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send(END).unwrap();
        assert_eq!(upto_end(&sub), numbers(5..9));
    }

    fn new_05_a_refusal_says_why(net) {
        let push = Push::builder().send_hwm(1).message_bytes_max(100).linger(Linger::No);
        let push = push.build(net.context()).unwrap();
        push.bind(net.any()).unwrap();
        assert_eq!(kind(push.try_send("no peer")), ErrorKind::NoPeer);
        assert_eq!(kind(push.send_timeout("no peer", NEVER)), ErrorKind::TimedOut);
        push.connect(&net.nobody()).unwrap();
        push.try_send("fills").unwrap();
        assert_eq!(kind(push.try_send("full")), ErrorKind::WouldBlock);
        assert_eq!(kind(push.send_timeout("full", NEVER)), ErrorKind::TimedOut);
        assert_eq!(kind(push.try_send(vec![0; 101])), ErrorKind::TooLong);
        push.clone().close();
        assert_eq!(kind(push.try_send("closed")), ErrorKind::Terminated);
    }

    // rules: NEW-05
    fn a_message_over_the_limit_of_the_only_peer_is_refused_with_that_reason(net) {
        let pull = Pull::builder().message_bytes_max(100).build(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        push.send("warm").unwrap();
        pull.recv_timeout(LONG).unwrap();
        assert_eq!(kind(push.try_send(vec![0; 101])), ErrorKind::TooLong);
        assert_eq!(kind(push.send_timeout(vec![0; 101], LONG)), ErrorKind::TooLong);
        push.send(vec![0; 100]).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().len(), 100);
    }

    // rules: NEW-05
    fn a_requester_and_a_publisher_say_why_too(net) {
        let req = Req::builder().send_hwm(1).linger(Linger::No).build(net.context()).unwrap();
        assert_eq!(kind(req.try_send("no peer")), ErrorKind::NoPeer);
        let publisher = Pub::builder().message_bytes_max(10).build(net.context()).unwrap();
        assert_eq!(kind(publisher.try_send(vec![0; 11])), ErrorKind::TooLong);
        publisher.clone().close();
        assert_eq!(kind(publisher.send("closed")), ErrorKind::Terminated);
    }

    fn new_07_both_sides_count_what_was_dropped(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(10));
        let sub = subscriber(net, Sub::builder().recv_hwm(10), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        let mut got = 0;
        for burst in 1..=5 {
            (0..100).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
            wait_until("each is received or counted", || {
                got += u64::from(sub.try_recv().is_ok());
                got + sub.lost() == 100 * burst
            });
        }
        let dropped = publisher.counters().dropped;
        assert!(dropped >= 400, "20 of 100 fit: {dropped}");
        assert_eq!((got + dropped, sub.lost(), sub.peers()[0].lost), (500, dropped, dropped));
        assert_eq!(publisher.peers()[0].dropped, dropped);
    }

    // rules: NEW-07
    fn a_message_over_the_limit_of_one_subscriber_is_told_at_once(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let small = subscriber(net, Sub::builder().message_bytes_max(10), &addr, &[""]);
        let large = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 2, LONG).unwrap();
        publisher.send(vec![b'x'; 11]).unwrap();
        assert_eq!(large.recv_timeout(LONG).unwrap().len(), 11);
        wait_until("it is told", || small.lost() == 1);
        assert_eq!((large.lost(), small.counters().disconnects), (0, 0));
    }

    // rules: NEW-07
    fn what_is_unread_or_unsent_in_the_end_is_counted(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..5).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        wait_until("all came", || sub.counters().received == 5);
        sub.disconnect(&addr).unwrap();
        assert_eq!(sub.counters().dropped, 5);
        wait_until("it left", || publisher.matching("") == 0);

        let sub = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..3).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        wait_until("all came", || sub.counters().received == 3);
        sub.clone().close();
        assert_eq!(sub.counters().dropped, 3);

        let push = Push::builder().linger(Linger::No).build(net.context()).unwrap();
        push.connect(&net.nobody()).unwrap();
        (0..4).for_each(|i| push.send(numbered(i, 1)).unwrap());
        push.clone().close();
        assert_eq!(push.counters().dropped, 4);

        let connects = Pub::builder().linger(Linger::No).build(net.context()).unwrap();
        let nobody = [net.nobody(), net.nobody()];
        nobody.iter().for_each(|addr| connects.connect(addr).unwrap());
        (0..2).for_each(|i| connects.send(numbered(i, 1)).unwrap());
        connects.disconnect(&nobody[0]).unwrap();
        assert_eq!(connects.counters().dropped, 2);
        connects.clone().close();
        assert_eq!(connects.counters().dropped, 4);
    }
}

fn blocking() -> Builder<Pub> {
    Pub::builder().on_full(OnFull::Block)
}

fn kind(sent: Result<(), SendError>) -> ErrorKind {
    sent.unwrap_err().kind()
}
