//! SUB: what is received, and how subscriptions reach every publisher.

use std::time::Duration;

use msg_patterns::{Builder, ErrorKind, Message, Pub, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::pubsub::{END, next, numbered, publisher, subscriber, upto_end};
use crate::support::{LONG, Raw, wait_until};

rules! {
    fn sub_02_a_subscriber_starts_deaf(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let deaf = subscriber(net, Sub::builder(), &addr, &[]);
        let other = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        publisher.send("x").unwrap();
        assert_eq!(next(&other), "x");
        assert_eq!((publisher.counters().sent, deaf.counters().received), (1, 0));
    }

    // rules: SUB-02
    fn a_deaf_subscriber_does_not_trust_its_publisher(net) {
        let (mut raw, addr) = Raw::listen(net);
        let deaf = subscriber(net, Sub::builder(), &addr, &[]);
        raw.accept(SocketType::Pub);
        raw.send(&[Frame::Part { more: false, body: b"x" }]);
        wait_until("it was discarded", || deaf.counters().discarded == 1);
        assert_eq!(deaf.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn sub_03_the_empty_topic_is_all(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        let messages = ["a", "", "\0"].map(|first| Message::from_parts([first, "body"]));
        messages.iter().chain([&Message::from("")]).for_each(|m| publisher.send(m).unwrap());
        messages.iter().for_each(|m| assert_eq!(sub.recv_timeout(LONG).unwrap(), *m));
        assert_eq!(sub.recv_timeout(LONG).unwrap(), Message::from(""));
    }

    fn sub_04_topics_are_binary_prefixes(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &[END]);
        sub.subscribe([0, 0xff]).unwrap();
        wait_until("both topics", || publisher.topics() == 2);
        let wanted: [&[u8]; 3] = [&[0, 0xff], &[0, 0xff, 0], &[0, 0xff, 0xc3, 0x28]];
        let unwanted: [&[u8]; 5] = [&[], &[0], &[0, 0xfe], &[1, 0xff], &[0xff, 0]];
        for subject in wanted.iter().chain(&unwanted) {
            publisher.send(*subject).unwrap();
        }
        publisher.send(END).unwrap();
        wanted.iter().for_each(|m| assert_eq!(sub.recv_timeout(LONG).unwrap().first(), m));
        assert_eq!(next(&sub), END);
    }

    fn sub_05_subscriptions_add_up_and_a_message_comes_once(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &["a", "ab", "c", END]);
        publisher.wait_matching(END, 1, LONG).unwrap();
        let send = |text: &str| publisher.send(text).unwrap();
        ["abc", "b", "a", "c", END].into_iter().for_each(send);
        assert_eq!(upto_end(&sub), ["abc", "a", "c"]);
        sub.subscribe("").unwrap();
        publisher.wait_matching("b", 1, LONG).unwrap();
        ["abc", "b", "a", "c", END].into_iter().for_each(send);
        assert_eq!(upto_end(&sub), ["abc", "b", "a", "c"]);
    }

    fn sub_06_subscriptions_are_counted(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &["a", "a", END]);
        publisher.wait_matching(END, 1, LONG).unwrap();
        sub.unsubscribe("a").unwrap();
        sub.subscribe("sync").unwrap();
        publisher.wait_matching("sync", 1, LONG).unwrap();
        ["a 1", END].into_iter().for_each(|text| publisher.send(text).unwrap());
        assert_eq!(upto_end(&sub), ["a 1"]);
        sub.unsubscribe("a").unwrap();
        wait_until("the cancel came", || publisher.matching("a") == 0);
        ["a 2", END].into_iter().for_each(|text| publisher.send(text).unwrap());
        assert_eq!(upto_end(&sub), [""; 0]);
    }

    fn sub_07_cancelling_the_unknown_is_harmless(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, Sub::builder(), &addr, &["ab"]);
        publisher.wait_matching("ab", 1, LONG).unwrap();
        ["", "a", "abc", "x"].into_iter().for_each(|topic| sub.unsubscribe(topic).unwrap());
        sub.subscribe("sync").unwrap();
        publisher.wait_matching("sync", 1, LONG).unwrap();
        publisher.send("abc").unwrap();
        assert_eq!((next(&sub), publisher.topics()), ("abc".into(), 2));
        assert_eq!(sub.counters().disconnects, 0);
    }

    // rules: SUB-07
    fn a_cancel_of_the_unknown_does_not_disturb_a_publisher(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        raw.send(&[Frame::Cancel { topic: b"x" }, Frame::Subscribe { history: false, topic: b"a" }]);
        publisher.wait_matching("a", 1, LONG).unwrap();
        publisher.send("a").unwrap();
        raw.expect("a part", |frame| matches!(frame, Frame::Part { body: b"a", .. }));
    }

    fn sub_08_publishers_are_served_in_turn(net) {
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        let publishers = [(); 3].map(|()| publisher(net, Pub::builder()));
        for (i, (publisher, addr)) in publishers.iter().enumerate() {
            sub.connect(addr).unwrap();
            publisher.wait_matching("", 1, LONG).unwrap();
            let count = if i == 0 { 900 } else { 10 };
            (0..count).for_each(|_| publisher.send(numbered(i, 1)).unwrap());
        }
        wait_until("all came", || sub.counters().received == 920);
        for _ in 0..10 {
            let mut turn = [next(&sub), next(&sub), next(&sub)];
            turn.sort();
            assert_eq!(turn, ["0", "1", "2"]);
        }
    }

    fn sub_09_what_one_publisher_sends_too_much_is_dropped(net) {
        let sub = Sub::builder().recv_hwm(10).build(net.context()).unwrap();
        sub.subscribe("").unwrap();
        let (flood, addr) = publisher(net, Pub::builder().send_hwm(5));
        sub.connect(&addr).unwrap();
        let (calm, addr) = publisher(net, Pub::builder().send_hwm(5));
        sub.connect(&addr).unwrap();
        [&flood, &calm].into_iter().for_each(|publisher| publisher.wait_matching("", 1, LONG).unwrap());
        (0..1000).for_each(|_| flood.send("flood").unwrap());
        (0..10).for_each(|_| calm.send("calm").unwrap());
        wait_until("both came", || sub.counters().received == 20);
        let got: Vec<_> = (0..25).map(|_| next(&sub)).collect();
        assert_eq!(got.iter().filter(|text| *text == "calm").count(), 10);
        assert_eq!((flood.counters().dropped, calm.counters().dropped), (985, 0));
    }

    fn sub_10_subscriptions_reach_every_publisher(net) {
        let sub = Sub::new(net.context()).unwrap();
        let bound = sub.bind(net.any()).unwrap().to_string();
        sub.subscribe("before").unwrap();
        let (present, addr) = publisher(net, Pub::builder());
        sub.connect(&addr).unwrap();
        let joins = Pub::new(net.context()).unwrap();
        joins.connect(&bound).unwrap();
        [&present, &joins].into_iter().for_each(|publisher| publisher.wait_matching("before", 1, LONG).unwrap());
        sub.subscribe("after").unwrap();
        let (later, addr) = publisher(net, Pub::builder());
        sub.connect(&addr).unwrap();
        for publisher in [&present, &joins, &later] {
            for topic in ["before", "after"] {
                publisher.wait_matching(topic, 1, LONG).unwrap();
                publisher.send(topic).unwrap();
                assert_eq!(next(&sub), topic);
            }
        }
    }

    fn sub_11_subscriptions_are_active_again_after_a_restart(net) {
        let (before, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, quick(), &addr, &["a", "a", "b", "c"]);
        before.wait_matching("c", 1, LONG).unwrap();
        sub.unsubscribe("b").unwrap();
        before.close();
        wait_until("it is gone", || sub.peers().iter().all(|peer| !peer.up));
        sub.unsubscribe("c").unwrap();
        sub.subscribe("d").unwrap();
        let after = Pub::new(net.context()).unwrap();
        after.bind(&addr).unwrap();
        after.wait_matching("d", 1, LONG).unwrap();
        assert_eq!((after.topics(), after.matching("a")), (2, 1));
        after.send("a").unwrap();
        assert_eq!(next(&sub), "a");
        sub.unsubscribe("a").unwrap();
        sub.unsubscribe("a").unwrap();
        wait_until("the last cancel came", || after.topics() == 1);
    }

    fn sub_12_what_was_under_way_when_it_was_cancelled_is_not_delivered(net) {
        let (mut raw, addr) = Raw::listen(net);
        let sub = subscriber(net, Sub::builder(), &addr, &["a", "b"]);
        raw.accept(SocketType::Pub);
        let part = |body| Frame::Part { more: false, body };
        raw.send(&[part(b"a 1"), part(b"b 1"), part(b"a 2")]);
        wait_until("they wait here", || sub.counters().received == 3);
        sub.unsubscribe("a").unwrap();
        raw.send(&[part(b"a 3"), part(b"b 2")]);
        assert_eq!((next(&sub), next(&sub)), ("b 1".into(), "b 2".into()));
        let counters = sub.counters();
        assert_eq!((counters.delivered, counters.discarded), (2, 3));
    }

    fn dev_01_all_5000_subscriptions_are_active_after_a_restart(net) {
        let (before, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, quick(), &addr, &[]);
        wait_until("it is connected", || sub.peers()[0].up);
        (0..5000).for_each(|i| sub.subscribe(i.to_string()).unwrap());
        wait_until("all are known", || before.topics() == 5000);
        before.close();
        let after = Pub::new(net.context()).unwrap();
        after.bind(&addr).unwrap();
        wait_until("all are known again", || after.topics() == 5000);
        assert_eq!(sub.counters().dropped, 0);
    }

    fn dev_02_a_first_burst_of_5000_subscriptions_arrives_whole(net) {
        let (first, addr) = publisher(net, Pub::builder());
        let sub = subscriber(net, quick(), &addr, &[]);
        (0..5000).for_each(|i| sub.subscribe(i.to_string()).unwrap());
        wait_until("all are known", || first.topics() == 5000);
        assert_eq!(sub.counters().disconnects, 0);
        let (second, addr) = publisher(net, Pub::builder());
        sub.connect(&addr).unwrap();
        wait_until("all are known there too", || second.topics() == 5000);
    }

    fn dev_03_subscriptions_come_back_while_their_owner_is_elsewhere(net) {
        let addr = net.nobody();
        let before = Pub::new(net.context()).unwrap();
        before.bind(&addr).unwrap();
        std::thread::scope(|scope| {
            let (done, waits) = std::sync::mpsc::channel::<()>();
            scope.spawn(|| {
                let sub = subscriber(net, quick(), &addr, &[]);
                (0..500).for_each(|i| sub.subscribe(i.to_string()).unwrap());
                // Its owner does not enter it again until the test is over.
                waits.into_iter().for_each(drop);
            });
            wait_until("all are known", || before.topics() == 500);
            before.close();
            let after = Pub::new(net.context()).unwrap();
            after.bind(&addr).unwrap();
            wait_until("all are known again", || after.topics() == 500);
            drop(done);
        });
    }
}

/// A subscriber that reconnects soon and hardly queues.
fn quick() -> Builder<Sub> {
    Sub::builder().reconnect_interval(Some(Duration::from_millis(5))).send_hwm(10)
}
