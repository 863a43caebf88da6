//! PUB: what is sent to whom, and what is not.

use std::time::Duration;

use msg_patterns::{ErrorKind, Message, MonitorEvent, Pub, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::pubsub::{
    END, granting, next, next_part, numbered, numbers, publisher, stream, subscriber, upto_end,
};
use crate::support::{LONG, Raw, wait_until};

rules! {
    fn hwm_13_a_burst_up_to_the_limit_arrives_unread(net) {
        for hwm in [1000, 100] {
            let (publisher, addr) = publisher(net, Pub::builder().send_hwm(hwm));
            let sub = subscriber(net, Sub::builder().recv_hwm(hwm), &addr, &[""]);
            publisher.wait_matching("", 1, LONG).unwrap();
            (0..hwm).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
            assert_eq!((0..hwm).map(|_| next(&sub)).collect::<Vec<_>>(), numbers(0..hwm));
            assert_eq!(publisher.counters().dropped, 0);
        }
    }

    // rules: HWM-13
    fn both_limits_together_are_delivered_and_the_rest_is_counted(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(100));
        let sub = subscriber(net, Sub::builder().recv_hwm(50), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..250).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        assert_eq!((0..150).map(|_| next(&sub)).collect::<Vec<_>>(), numbers(0..150));
        publisher.send(END).unwrap();
        assert_eq!((upto_end(&sub), sub.lost()), (vec![], 100));
    }

    fn hwm_14_a_further_burst_arrives_after_drain(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(11_024));
        let sub = subscriber(net, Sub::builder().recv_hwm(11_024), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        for burst in [9999, 1100] {
            (0..burst).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
            assert_eq!((0..burst).map(|_| next(&sub)).collect::<Vec<_>>(), numbers(0..burst));
        }
    }

    // rules: HWM-14
    fn a_burst_arrives_after_one_that_was_too_large(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(20));
        let sub = subscriber(net, Sub::builder().recv_hwm(20), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        let mut got = 0;
        for round in 1..=5 {
            (0..100).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
            wait_until("each is received or counted", || {
                got += u64::from(sub.try_recv().is_ok());
                got + sub.lost() == 100 * round
            });
            (0..20).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
            (0..20).for_each(|i| assert_eq!(next(&sub), i.to_string()));
        }
        assert!(sub.lost() > 0, "nothing was too much");
    }

    fn pub_02_one_queue_per_subscriber(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(5));
        let _slow = granting(net, &addr, 0);
        publisher.wait_matching("", 1, LONG).unwrap();
        let fast = subscriber(net, Sub::builder().recv_hwm(2), &addr, &[""]);
        publisher.wait_matching("", 2, LONG).unwrap();
        for i in 0..100 {
            publisher.send(numbered(i, 1)).unwrap();
            assert_eq!(next(&fast), i.to_string());
        }
        let queues: Vec<_> = publisher.peers().iter().map(|p| (p.queued, p.dropped)).collect();
        assert_eq!(queues, [(5, 95), (0, 0)]);
    }

    // rules: PUB-02
    fn subscribers_that_read_nothing_do_not_starve_the_others(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(1));
        let topics = 0..30_u8;
        let stalled = topics.clone().map(|topic| {
            let mut raw = Raw::greet(net, &addr, SocketType::Sub);
            raw.send(&[Frame::Subscribe { history: false, topic: &[topic] }, Frame::Settled]);
            publisher.wait_matching([topic], 1, LONG).unwrap();
            raw
        });
        let _stalled: Vec<Raw> = stalled.collect();
        let fast = subscriber(net, Sub::builder(), &addr, &["fast"]);
        publisher.wait_matching("fast", 1, LONG).unwrap();
        // More than the memory of the publisher and of the connections together.
        for _ in 0..90 {
            topics.clone().for_each(|topic| publisher.send(vec![topic; 60_000]).unwrap());
        }
        for _ in 0..20 {
            publisher.send("fast").unwrap();
            assert_eq!(next(&fast), "fast");
        }
    }

    fn pub_03_a_queue_exists_while_connecting(net) {
        let addr = net.nobody();
        let publisher = Pub::new(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        for subject in ["a 1", "b 1", "c 1", "a 2", "b 2"] {
            publisher.send(subject).unwrap();
        }
        let sub = Sub::new(net.context()).unwrap();
        ["b", "a", END].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
        sub.bind(&addr).unwrap();
        publisher.wait_matching(END, 1, LONG).unwrap();
        publisher.send("a 3").unwrap();
        publisher.send(END).unwrap();
        assert_eq!(upto_end(&sub), ["a 1", "b 1", "a 2", "b 2", "a 3"]);
    }

    // rules: PUB-03
    fn the_queue_while_connecting_has_its_limit_and_tells_what_it_drops(net) {
        let addr = net.nobody();
        let publisher = Pub::builder().send_hwm(2).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        (0..5).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        assert_eq!(publisher.peers()[0].dropped, 3);
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.bind(&addr).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send(END).unwrap();
        assert_eq!((upto_end(&sub), sub.lost()), (numbers(0..2), 3));
    }

    // rules: PUB-03
    fn an_immediate_publisher_keeps_nothing_for_a_peer_that_is_not_there(net) {
        let addr = net.nobody();
        let publisher = Pub::builder().immediate(true).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        publisher.send("past").unwrap();
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.bind(&addr).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("now").unwrap();
        assert_eq!((next(&sub), publisher.counters().dropped), ("now".into(), 0));
    }

    // rules: PUB-03
    fn what_is_published_while_a_peer_names_its_topics_arrives_once_and_in_order(net) {
        let publisher = Pub::new(net.context()).unwrap();
        let (mut raw, addr) = Raw::listen(net);
        publisher.connect(&addr).unwrap();
        raw.accept(SocketType::Sub);
        wait_until("up", || publisher.peers()[0].up);
        publisher.send("b 1").unwrap();
        raw.send(&[Frame::Subscribe { history: false, topic: b"a" }]);
        wait_until("the first topic came", || publisher.topics() == 1);
        publisher.send("a 2").unwrap();
        raw.send(&[Frame::Subscribe { history: false, topic: b"b" }, Frame::Settled]);
        publisher.wait_matching("b", 1, LONG).unwrap();
        publisher.send("a 3").unwrap();
        let got: Vec<_> = (0..3).map(|_| next_part(&mut raw)).collect();
        assert_eq!(got, [b"b 1", b"a 2", b"a 3"]);
    }

    // rules: PUB-03
    fn what_is_published_while_a_connection_is_broken_arrives_after_it(net) {
        let publisher = Pub::builder().reconnect_interval(Some(Duration::from_millis(1)));
        let publisher = publisher.build(net.context()).unwrap();
        let (mut raw, addr) = Raw::listen(net);
        publisher.connect(&addr).unwrap();
        let topics = [Frame::Subscribe { history: false, topic: b"" }, Frame::Settled];
        raw.accept(SocketType::Sub);
        raw.send(&topics);
        publisher.wait_matching("", 1, LONG).unwrap();
        raw.vanish();
        wait_until("down", || publisher.matching("") == 0);
        publisher.send("while down").unwrap();
        raw.accept(SocketType::Sub);
        wait_until("up", || publisher.peers()[0].up);
        publisher.send("while naming").unwrap();
        raw.send(&topics);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("after").unwrap();
        let got: Vec<_> = (0..3).map(|_| next_part(&mut raw)).collect();
        assert_eq!(got, [&b"while down"[..], b"while naming", b"after"]);
    }

    fn pub_04_the_queue_of_a_subscriber_that_left_is_dropped(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let mut stalled = granting(net, &addr, 0);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..3).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        assert_eq!(publisher.peers()[0].queued, 3);
        stalled.vanish();
        wait_until("its peer is gone", || publisher.peers().is_empty());
        assert_eq!((publisher.counters().dropped, publisher.topics()), (3, 0));
        let mut back = granting(net, &addr, 10);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("new").unwrap();
        assert_eq!(next_part(&mut back), b"new");
    }

    fn pub_05_data_from_a_subscriber_is_ignored(net) {
        let (publisher, addr) = publisher(net, Pub::builder().recv_hwm(2));
        let mut raw = granting(net, &addr, 10);
        for i in 1..=10 {
            raw.send(&[Frame::Part { more: false, body: b"unasked" }]);
            wait_until("it came", || publisher.counters().discarded == i);
        }
        publisher.send("still here").unwrap();
        assert_eq!(next_part(&mut raw), b"still here");
        assert_eq!((publisher.counters().delivered, publisher.counters().refused), (0, 0));
    }

    fn pub_06_send_never_blocks(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(1));
        let _stalled = [granting(net, &addr, 0), granting(net, &addr, 3)];
        publisher.wait_matching("", 2, LONG).unwrap();
        let sending = publisher.clone();
        let sender =
            std::thread::spawn(move || (0..5000).for_each(|i| sending.send(numbered(i, 2)).unwrap()));
        wait_until("all were taken", || sender.is_finished());
        sender.join().unwrap();
        assert_eq!(publisher.counters().dropped, 4999 + 4996);
    }

    fn pub_07_only_the_full_subscriber_misses_the_message(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(1));
        let full = subscriber(net, Sub::builder().recv_hwm(1), &addr, &[""]);
        let others = [(); 2].map(|()| subscriber(net, Sub::builder(), &addr, &[""]));
        publisher.wait_matching("", 3, LONG).unwrap();
        for i in 0..20 {
            publisher.send(numbered(i, 1)).unwrap();
            others.iter().for_each(|sub| assert_eq!(next(sub), i.to_string()));
        }
        assert_eq!((next(&full), next(&full)), ("0".into(), "1".into()));
        assert_eq!(full.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn pub_08_a_multipart_is_dropped_as_a_whole(net) {
        let (publisher, addr) = publisher(net, Pub::builder().send_hwm(2).send_hwm_bytes(400_000));
        let sub = subscriber(net, Sub::builder().recv_hwm(3), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        for i in 0..40 {
            let large = i.to_string().repeat(if i % 3 == 0 { 100_000 } else { 1 });
            publisher.send(numbered(i, 2).with(large).with(i.to_string())).unwrap();
        }
        let mut got = 0;
        wait_until("each is received or counted", || {
            got += u64::from(sub.try_recv().is_ok_and(|message| is_whole(&message)));
            got + sub.lost() == 40
        });
        assert!(sub.lost() > 0, "nothing was dropped");
    }

    fn pub_09_the_beginning_of_the_first_part_is_compared(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &["ab", END]);
        publisher.wait_matching(END, 1, LONG).unwrap();
        for parts in [["ab", "1"], ["x", "ab"], ["a", "b"], ["abc", "2"], [" ab", ""], ["AB", ""]] {
            publisher.send(Message::from_parts(parts)).unwrap();
        }
        publisher.send(END).unwrap();
        assert_eq!(upto_end(&sub), ["ab", "abc"]);
    }

    fn pub_10_without_subscribers_a_message_is_gone(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        (0..100).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        let sub = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("now").unwrap();
        assert_eq!(next(&sub), "now");
        let counters = publisher.counters();
        assert_eq!((counters.accepted, counters.sent, counters.dropped), (101, 1, 0));
    }

    fn pub_11_subscriptions_are_no_messages(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &["a", "b"]);
        publisher.wait_matching("b", 1, LONG).unwrap();
        sub.unsubscribe("a").unwrap();
        wait_until("the cancel came", || publisher.matching("a") == 0);
        let counters = publisher.counters();
        assert_eq!((counters.received, counters.delivered, counters.discarded), (0, 0, 0));
    }

    fn pub_12_what_nobody_wants_does_not_cross_the_wire(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        raw.send(&[Frame::Subscribe { history: false, topic: b"a" }, Frame::Settled]);
        publisher.wait_matching("a", 1, LONG).unwrap();
        ["b 1", "", "b 2", "a 1"].into_iter().for_each(|text| publisher.send(text).unwrap());
        assert_eq!(next_part(&mut raw), b"a 1");
        assert_eq!(publisher.counters().sent, 1);
    }

    fn pub_13_a_late_joiner_misses_the_past_and_nothing_after(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let _streams = stream(&publisher, |number| numbered(number, 1));
        for round in 1..=5 {
            wait_until("some time", || publisher.counters().accepted > 10 * round);
            let past = publisher.counters().accepted as usize;
            let sub = subscriber(net, Sub::builder(), &addr, &[""]);
            let first: usize = next(&sub).parse().unwrap();
            assert!(first >= past, "{first} is one of the first {past}");
            let rest: Vec<_> = (0..20).map(|_| next(&sub)).collect();
            assert_eq!(rest, numbers(first + 1..first + 21));
        }
    }

    // rules: PUB-13
    fn a_peer_that_wanted_nothing_yet_misses_the_past_too(net) {
        let sub = Sub::new(net.context()).unwrap();
        let addr = sub.bind(net.any()).unwrap().to_string();
        let publisher = Pub::new(net.context()).unwrap();
        let monitor = publisher.monitor();
        publisher.connect(&addr).unwrap();
        wait_for_handshake(&monitor);
        wait_until("nothing is kept any more", || {
            publisher.send("past").unwrap();
            sub.peers().iter().any(|peer| peer.up)
        });
        sub.subscribe("").unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("now").unwrap();
        assert_eq!(next(&sub), "now");
    }

    fn pub_14_a_late_joiner_starts_at_a_whole_message(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let _streams = stream(&publisher, |number| {
            let large = number.to_string().repeat(if number % 4 == 0 { 30_000 } else { 1 });
            numbered(number, 2).with(large).with(number.to_string())
        });
        for _ in 0..10 {
            let sub = subscriber(net, Sub::builder(), &addr, &[""]);
            (0..5).for_each(|_| assert!(is_whole(&sub.recv_timeout(LONG).unwrap())));
        }
    }

    fn pub_15_inverted_matching_reaches_all_others(net) {
        let (publisher, addr) = publisher(net, Pub::builder().invert_matching(true));
        let subs = [&["a"][..], &["b", "c"], &[]]
            .map(|topics| subscriber(net, Sub::builder().invert_matching(true), &addr, topics));
        publisher.wait_matching("", 3, LONG).unwrap();
        ["a 1", "b 1", "c 1", "d 1", END].into_iter().for_each(|text| publisher.send(text).unwrap());
        let got = subs.each_ref().map(upto_end);
        assert_eq!(got[0], ["b 1", "c 1", "d 1"]);
        assert_eq!(got[1], ["a 1", "d 1"]);
        assert_eq!(got[2], ["a 1", "b 1", "c 1", "d 1"]);
        let counters = publisher.counters();
        assert_eq!(counters.sent, 3 + 2 + 4 + 3);
    }

    // rules: PUB-15, PUB-03
    fn inverted_matching_goes_for_what_was_kept_while_connecting_too(net) {
        let addr = net.nobody();
        let publisher = Pub::builder().invert_matching(true).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        ["a 1", "b 1", "a 2"].into_iter().for_each(|text| publisher.send(text).unwrap());
        let sub = Sub::builder().invert_matching(true).build(net.context()).unwrap();
        sub.subscribe("a").unwrap();
        sub.bind(&addr).unwrap();
        publisher.wait_matching(END, 1, LONG).unwrap();
        publisher.send(END).unwrap();
        assert_eq!(upto_end(&sub), ["b 1"]);
        assert_eq!(publisher.counters().sent, 2);
    }

    fn pub_16_a_conflating_publisher_queues_only_the_newest(net) {
        let (publisher, addr) = publisher(net, Pub::builder().conflate(true).send_hwm(1));
        let mut raw = granting(net, &addr, 1);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..50).for_each(|i| publisher.send(numbered(i, 2)).unwrap());
        raw.send(&[Frame::Credit { messages: 10, bytes: 1 << 31 }]);
        let got: Vec<_> = (0..4).map(|_| next_part(&mut raw)).collect();
        assert_eq!(got, [b"0", b"0", &b"49"[..], b"49"]);
        assert_eq!(publisher.counters().dropped, 48);
    }

    // rules: PUB-16, PUB-03
    fn a_conflating_publisher_keeps_only_the_newest_while_connecting(net) {
        let addr = net.nobody();
        let publisher = Pub::builder().conflate(true).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        ["a 1", "a 2", "b 1"].into_iter().for_each(|text| publisher.send(text).unwrap());
        let sub = Sub::new(net.context()).unwrap();
        ["a", END].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
        sub.bind(&addr).unwrap();
        publisher.wait_matching(END, 1, LONG).unwrap();
        assert_eq!(next(&sub), "a 2");
        publisher.send(END).unwrap();
        assert_eq!((upto_end(&sub), sub.lost()), (vec![], 1));
    }

    // rules: PUB-16
    fn conflating_does_not_tear_a_message_that_has_begun_to_leave(net) {
        let (publisher, addr) = publisher(net, Pub::builder().conflate(true).send_hwm(1));
        let mut raw = granting(net, &addr, 1000);
        publisher.wait_matching("", 1, LONG).unwrap();
        let large = vec![b'x'; 20_000_000];
        publisher.send(large.clone()).unwrap();
        (0..10).for_each(|i| publisher.send(numbered(i, 1)).unwrap());
        let mut arrived = 0;
        while arrived < large.len() {
            let piece = raw.expect("a piece", |frame| {
                matches!(frame, Frame::Fragment { .. } | Frame::Continue { .. })
            });
            match Frame::decode(&piece).unwrap().0 {
                Frame::Fragment { body, .. } | Frame::Continue { body } => arrived += body.len(),
                other => panic!("not a piece: {other:?}"),
            }
        }
        assert_eq!((arrived, next_part(&mut raw)), (large.len(), b"9".to_vec()));
    }

    // rules: PUB-16
    fn a_conflating_subscriber_keeps_only_the_newest(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder().conflate(true).recv_hwm(4), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        (0..50).for_each(|i| publisher.send(numbered(i, 3)).unwrap());
        wait_until("all came", || sub.counters().received == 50);
        assert_eq!(sub.recv_timeout(LONG).unwrap(), numbered(49, 3));
        assert_eq!(sub.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!((sub.counters().dropped, sub.lost()), (49, 0));
    }

    fn pub_17_distinct_topics_are_counted(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let one = subscriber(net, Sub::builder(), &addr, &["a", "ab", "abc", "b"]);
        let other = subscriber(net, Sub::builder(), &addr, &["a", ""]);
        wait_until("all topics", || publisher.topics() == 5);
        one.unsubscribe("a").unwrap();
        one.unsubscribe("ab").unwrap();
        wait_until("one topic less", || publisher.topics() == 4);
        one.subscribe("ab").unwrap();
        wait_until("it is back", || publisher.topics() == 5);
        drop(other);
        wait_until("its only topic is gone", || publisher.topics() == 3);
        drop(one);
        wait_until("no topic left", || publisher.topics() == 0);
    }
}

/// Four parts: a number twice, a repetition of it, and the number again.
fn is_whole(message: &Message) -> bool {
    let [a, b, large, c] = message.parts() else { panic!("torn: {message:?}") };
    assert!(a == b && large.starts_with(a) && a == c, "mixed: {message:?}");
    true
}

fn wait_for_handshake(monitor: &msg_patterns::Monitor) {
    wait_until("the handshake", || {
        matches!(monitor.next_timeout(LONG), Some(MonitorEvent::HandshakeSucceeded { .. }))
    });
}
