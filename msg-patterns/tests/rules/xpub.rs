//! XPUB: what it is told of subscriptions, what it hears, and what it decides.

use std::time::Duration;

use msg_patterns::{
    Builder, ErrorKind, Linger, Message, OnFull, Poller, Sub, Subscription, Upstream, XPub, XSub,
};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::pubsub::{END, granting, next, numbered, numbers, subscriber, upto_end};
use crate::support::{LONG, Net, Raw, wait_until};

/// A bound publisher and its address.
pub(crate) fn xpub(net: &Net, settings: Builder<XPub>) -> (XPub, String) {
    let publisher = settings.linger(Linger::No).build(net.context()).unwrap();
    let addr = publisher.bind(net.any()).unwrap().to_string();
    (publisher, addr)
}

/// A subscriber that sends too.
pub(crate) fn xsub(net: &Net, settings: Builder<XSub>, addr: &str) -> XSub {
    let sub = settings.linger(Linger::No).build(net.context()).unwrap();
    sub.connect(addr).unwrap();
    sub
}

/// It, once its publisher is there.
fn up(sub: XSub) -> XSub {
    wait_until("its publisher is there", || sub.peers()[0].up);
    sub
}

/// What comes next: `+topic`, `-topic`, or a message.
pub(crate) fn seen(publisher: &XPub) -> String {
    match publisher.recv_timeout(LONG).unwrap() {
        Upstream::Subscription(subscription) => shown(&subscription),
        Upstream::Message { message, .. } => text(&message),
    }
}

fn shown(subscription: &Subscription) -> String {
    let sign = if subscription.subscribes() { '+' } else { '-' };
    format!("{sign}{}", String::from_utf8_lossy(subscription.topic()))
}

fn text(message: &Message) -> String {
    let parts: Vec<_> = message.parts().iter().map(|part| String::from_utf8_lossy(part)).collect();
    parts.join("|")
}

/// The next subscription or cancellation.
fn subscription(publisher: &XPub) -> Subscription {
    match publisher.recv_timeout(LONG).unwrap() {
        Upstream::Subscription(subscription) => subscription,
        other => panic!("no subscription: {other:?}"),
    }
}

fn several(publisher: &XPub, count: usize) -> Vec<String> {
    (0..count).map(|_| seen(publisher)).collect()
}

fn subscribe(topic: &[u8]) -> Frame<'_> {
    Frame::Subscribe { history: false, topic }
}

fn manual() -> Builder<XPub> {
    XPub::builder().manual(true)
}

rules! {
    fn xpub_01_subscriptions_and_cancellations_are_received(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let mut poller = Poller::new();
        let key = poller.add_readable(&publisher).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        let sub = subscriber(net, Sub::builder(), &addr, &["a"]);
        assert_eq!(poller.wait(Some(LONG)).unwrap(), [key]);
        let first = subscription(&publisher);
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        assert_eq!((shown(&first), first.to_message()), ("+a".into(), b"\x01a".into()));
        sub.unsubscribe("a").unwrap();
        let second = subscription(&publisher);
        assert_eq!((shown(&second), second.to_message()), ("-a".into(), b"\0a".into()));
        assert_eq!(first.peer(), second.peer());
        assert_eq!(publisher.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
        // Seeing them takes nothing of what a PUB does.
        ["a", END].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
        assert_eq!(several(&publisher, 2), ["+a", "+end"]);
        ["b 1", "a 1", END].into_iter().for_each(|text| publisher.send(text).unwrap());
        assert_eq!((upto_end(&sub), publisher.counters().sent), (vec!["a 1".into()], 2));
        let counters = publisher.counters();
        assert_eq!((counters.received, counters.delivered), (0, 0));
    }

    fn xpub_02_what_comes_up_is_heard_evenly(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let subs: Vec<XSub> = (0..3_u8)
            .map(|i| {
                let sub = up(xsub(net, XSub::builder(), &addr));
                let count = if i == 0 { 90 } else { 5 };
                (0..count).for_each(|_| sub.send(&[b'a' + i]).unwrap());
                sub
            })
            .collect();
        wait_until("all is there", || publisher.counters().received == 100);
        for i in 0..50 {
            subs[0].subscribe(i.to_string()).unwrap();
        }
        wait_until("all topics are there", || publisher.topics() == 50);
        // The subscriptions of one hold up no other.
        for _ in 0..5 {
            let mut round = several(&publisher, 3);
            round.sort_unstable();
            assert_eq!(round, ["a", "b", "c"]);
        }
        assert_eq!(several(&publisher, 85), ["a"; 85]);
        assert_eq!(seen(&publisher), "+0");
    }

    fn xpub_03_only_the_first_subscription_and_the_last_cancellation_are_told(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let one = subscriber(net, Sub::builder(), &addr, &["a"]);
        assert_eq!(seen(&publisher), "+a");
        let other = subscriber(net, Sub::builder(), &addr, &["a", "b"]);
        assert_eq!(seen(&publisher), "+b");
        ["a", "c"].into_iter().for_each(|topic| one.unsubscribe(topic).unwrap());
        one.subscribe("d").unwrap();
        assert_eq!(seen(&publisher), "+d");
        other.unsubscribe("a").unwrap();
        assert_eq!(seen(&publisher), "-a");
    }

    fn xpub_04_verbose_tells_of_every_subscription(net) {
        let (publisher, addr) = xpub(net, XPub::builder().verbose(true));
        let one = xsub(net, XSub::builder().verbose(true), &addr);
        ["a", "a"].into_iter().for_each(|topic| one.subscribe(topic).unwrap());
        assert_eq!(several(&publisher, 2), ["+a", "+a"]);
        let other = subscriber(net, Sub::builder(), &addr, &["a"]);
        assert_eq!(seen(&publisher), "+a");
        (0..2).for_each(|_| one.unsubscribe("a").unwrap());
        wait_until("one is left", || publisher.matching("a") == 1);
        other.unsubscribe("a").unwrap();
        other.subscribe("b").unwrap();
        assert_eq!(several(&publisher, 2), ["-a", "+b"]);
    }

    fn xpub_04_verboser_tells_of_every_cancellation_too(net) {
        let (publisher, addr) = xpub(net, XPub::builder().verboser(true));
        let one = xsub(net, XSub::builder().verbose(true), &addr);
        let other = subscriber(net, Sub::builder(), &addr, &["a"]);
        assert_eq!(seen(&publisher), "+a");
        (0..3).for_each(|_| one.subscribe("a").unwrap());
        assert_eq!(several(&publisher, 3), ["+a"; 3]);
        // The second of these cancels nothing.
        ["a", "x"].into_iter().for_each(|topic| one.unsubscribe(topic).unwrap());
        assert_eq!(seen(&publisher), "-a");
        // Two are left when it goes.
        one.close();
        assert_eq!(several(&publisher, 2), ["-a", "-a"]);
        other.close();
        assert_eq!(seen(&publisher), "-a");
    }

    fn xpub_05_what_a_subscriber_wanted_is_cancelled_when_it_goes(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let stays = subscriber(net, Sub::builder(), &addr, &["b"]);
        assert_eq!(seen(&publisher), "+b");
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        raw.send(&[subscribe(b"a"), subscribe(b"b"), subscribe(b"a"), subscribe(b"c")]);
        assert_eq!(several(&publisher, 2), ["+a", "+c"]);
        raw.vanish();
        assert_eq!(several(&publisher, 2), ["-a", "-c"]);
        stays.close();
        assert_eq!((seen(&publisher), publisher.topics()), ("-b".into(), 0));
    }

    // rules: XPUB-05
    fn a_subscriber_that_comes_back_is_told_of_only_where_it_changed(net) {
        let quick = XPub::builder().reconnect_interval(Some(Duration::from_millis(1)));
        let publisher = quick.linger(Linger::No).build(net.context()).unwrap();
        let (mut raw, addr) = Raw::listen(net);
        publisher.connect(&addr).unwrap();
        raw.accept(SocketType::Sub);
        raw.send(&[subscribe(b"a"), subscribe(b"b"), subscribe(b"b"), Frame::Settled]);
        assert_eq!(several(&publisher, 2), ["+a", "+b"]);
        raw.vanish();
        raw.accept(SocketType::Sub);
        raw.send(&[subscribe(b"b"), subscribe(b"c"), Frame::Settled]);
        assert_eq!(several(&publisher, 2), ["+c", "-a"]);
        raw.send(&[Frame::Cancel { topic: b"b" }, subscribe(b"d")]);
        // It goes for good while what it had told still waits.
        wait_until("all came", || publisher.matching("d") == 1);
        raw.vanish();
        wait_until("it is away", || publisher.matching("d") == 0);
        publisher.disconnect(&addr).unwrap();
        assert_eq!(several(&publisher, 4), ["-b", "+d", "-c", "-d"]);
        assert_eq!(publisher.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn xpub_06_send_never_blocks_and_only_the_full_one_misses(net) {
        let (publisher, addr) = xpub(net, XPub::builder().send_hwm(1));
        let _stalled = granting(net, &addr, 3);
        let reads = subscriber(net, Sub::builder(), &addr, &[""]);
        publisher.wait_matching("", 2, LONG).unwrap();
        for i in 0..500 {
            publisher.send(numbered(i, 2)).unwrap();
            assert_eq!(next(&reads), i.to_string());
        }
        assert_eq!(publisher.counters().dropped, 496);
    }

    fn xpub_07_blocking_drops_nothing(net) {
        let settings = XPub::builder().on_full(OnFull::Block).send_hwm(1000);
        let (publisher, addr) = xpub(net, settings);
        let sub = subscriber(net, Sub::builder().recv_hwm(1000), &addr, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        let (mut refused, mut got) = (0, Vec::new());
        for i in 0..6000 {
            while let Err(error) = publisher.try_send(numbered(i, 1)) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                refused += 1;
                got.push(next(&sub));
            }
        }
        got.extend((got.len()..6000).map(|_| next(&sub)));
        assert!(refused > 0 && got == numbers(0..6000));
    }

    fn xpub_08_the_application_decides_what_a_subscriber_gets(net) {
        let (publisher, addr) = xpub(net, manual());
        let sub = subscriber(net, Sub::builder(), &addr, &["asked", END]);
        let asked = subscription(&publisher);
        assert_eq!((shown(&asked), seen(&publisher)), ("+asked".into(), "+end".into()));
        assert_eq!((publisher.matching("asked"), publisher.topics()), (0, 0));
        // Another topic than it asked for, counted like its own.
        for topic in ["as", "as", END] {
            assert!(publisher.subscribe_for(&asked, topic).unwrap());
        }
        publisher.unsubscribe_for(&asked, "as").unwrap();
        ["as 1", "asked 1", "b 1", END].into_iter().for_each(|text| publisher.send(text).unwrap());
        assert_eq!((upto_end(&sub), publisher.counters().sent), (vec!["asked 1".into()], 3));
        // Equal ones of another subscriber are told too, and a cancellation has no effect of its own.
        let other = subscriber(net, Sub::builder(), &addr, &["asked"]);
        let others = subscription(&publisher);
        assert!(shown(&others) == "+asked" && others.peer() != asked.peer());
        sub.unsubscribe("asked").unwrap();
        assert_eq!((seen(&publisher), publisher.matching("as")), ("-asked".into(), 1));
        assert!(publisher.unsubscribe_for(&asked, "as").unwrap());
        assert_eq!(publisher.matching("as"), 0);
        drop(other);
        // Who does not decide cannot.
        let (plain, _) = xpub(net, XPub::builder());
        assert_eq!(plain.subscribe_for(&asked, "a").unwrap_err().kind(), ErrorKind::Invalid);
    }

    fn xpub_09_decisions_go_with_the_subscriber(net) {
        let (publisher, addr) = xpub(net, manual());
        let sub = subscriber(net, Sub::builder(), &addr, &["a", "b"]);
        let asked = subscription(&publisher);
        assert_eq!(seen(&publisher), "+b");
        publisher.subscribe_for(&asked, "x").unwrap();
        assert_eq!(publisher.topics(), 1);
        sub.close();
        assert_eq!(several(&publisher, 2), ["-a", "-b"]);
        assert_eq!(publisher.topics(), 0);
        // Whoever comes next is not taken for it.
        let next = subscriber(net, Sub::builder(), &addr, &["x"]);
        assert_eq!(seen(&publisher), "+x");
        assert!(!publisher.subscribe_for(&asked, "x").unwrap());
        assert_eq!(publisher.send_to(&asked, "x").unwrap_err().kind(), ErrorKind::NoPeer);
        assert_eq!(publisher.matching("x"), 0);
        drop(next);
    }

    fn xpub_10_a_first_value_goes_to_the_new_subscriber_alone(net) {
        for settings in [XPub::builder(), manual()] {
            let (publisher, addr) = xpub(net, settings.verbose(true));
            let early = subscriber(net, Sub::builder(), &addr, &["", ]);
            let grant = |who: &Subscription| drop(publisher.subscribe_for(who, ""));
            grant(&subscription(&publisher));
            let late = subscriber(net, Sub::builder(), &addr, &[""]);
            let new = subscription(&publisher);
            grant(&new);
            publisher.send_to(&new, "last value").unwrap();
            publisher.send("next").unwrap();
            assert_eq!([next(&late), next(&late)], ["last value", "next"]);
            assert_eq!(next(&early), "next");
        }
    }

    fn xpub_11_a_new_subscriber_is_welcomed_if_it_wants_that(net) {
        let (publisher, addr) = xpub(net, XPub::builder().welcome("w hello".into()));
        let wants = subscriber(net, Sub::builder(), &addr, &["w", "x"]);
        let not = subscriber(net, Sub::builder(), &addr, &["x"]);
        publisher.wait_matching("x", 2, LONG).unwrap();
        assert_eq!(next(&wants), "w hello");
        // It may come to want it later, and gets it once.
        not.subscribe("w").unwrap();
        assert_eq!(next(&not), "w hello");
        for topic in ["", "w h"] {
            not.subscribe(topic).unwrap();
        }
        wait_until("all topics", || publisher.topics() == 4);
        publisher.send("x").unwrap();
        assert_eq!([next(&not), next(&wants)], ["x", "x"]);
    }

    fn xpub_12_messages_come_up_as_they_are_and_in_their_order(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let sub = up(xsub(net, XSub::builder(), &addr));
        sub.send("first").unwrap();
        sub.subscribe("a").unwrap();
        let large = "x".repeat(200_000);
        sub.send(Message::from_parts([large.as_str(), "\u{1}", ""])).unwrap();
        sub.send("").unwrap();
        sub.unsubscribe("a").unwrap();
        let got = several(&publisher, 5);
        assert_eq!(got, ["first", "+a", format!("{large}|\u{1}|").as_str(), "", "-a"]);
        let counters = publisher.counters();
        assert_eq!((counters.received, counters.delivered), (3, 3));
    }

    // rules: XPUB-12, PUB-05
    fn messages_of_a_plain_subscriber_are_ignored(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        raw.send(&[Frame::Part { more: false, body: b"unasked" }, subscribe(b"a")]);
        assert_eq!(seen(&publisher), "+a");
        assert_eq!((publisher.counters().discarded, publisher.counters().delivered), (1, 0));
        let _sub = raw;
    }

    fn xpub_13_long_topics_work(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let sub = xsub(net, XSub::builder(), &addr);
        for bytes in [245, 246, 255, 256, 32 << 10] {
            let topic = "t".repeat(bytes);
            sub.send(format!("\u{1}{topic}")).unwrap();
            assert_eq!(seen(&publisher), format!("+{topic}"));
            publisher.send(&topic).unwrap();
            assert_eq!(sub.recv_timeout(LONG).unwrap().first(), topic.as_str());
            sub.unsubscribe(&topic).unwrap();
            assert_eq!(seen(&publisher), format!("-{topic}"));
        }
        let longer = format!("\u{1}{}", "t".repeat((32 << 10) + 1));
        assert_eq!(sub.send(longer).unwrap_err().kind(), ErrorKind::TooLong);
    }

    fn xpub_14_only_the_first_part_subscribes(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let sub = up(xsub(net, XSub::builder(), &addr));
        sub.send(Message::from_parts(["hello", "\u{1}a", "\u{0}b"])).unwrap();
        sub.send(Message::from_parts(["\u{1}c", "\u{1}d"])).unwrap();
        let got = several(&publisher, 3);
        assert_eq!(got, ["hello|\u{1}a|\u{0}b", "+c", "\u{1}d"]);
        assert_eq!(publisher.topics(), 1);
    }

    // rules: XPUB-01
    fn who_subscribes_faster_than_anybody_listens_is_refused(net) {
        let (publisher, addr) = xpub(net, XPub::builder().subscriptions_max(1));
        let mut raw = Raw::greet(net, &addr, SocketType::Sub);
        for _ in 0..10 {
            let pair = [subscribe(b"a"), Frame::Cancel { topic: b"a" }];
            raw.send(&pair.repeat(60));
        }
        raw.expect("a refusal", |frame| matches!(frame, Frame::Error { .. }));
        raw.expect_closed();
        // What it had told is still there, and no more comes until somebody has listened.
        wait_until("it is gone", || publisher.peers().is_empty());
        let monitor = publisher.monitor();
        let sub = subscriber(net, quick_sub(), &addr, &["b"]);
        wait_until("it is turned away", || {
            matches!(monitor.next_timeout(LONG), Some(msg_patterns::MonitorEvent::Refused { .. }))
        });
        let told = several(&publisher, 1002);
        assert!(told.chunks(2).all(|pair| pair == ["+a", "-a"]));
        assert_eq!(seen(&publisher), "+b");
        drop(sub);
    }

    // rules: XPUB-12
    fn every_message_that_came_up_is_accounted_for_when_sockets_close(net) {
        let (publisher, addr) = xpub(net, XPub::builder());
        let sub = XSub::new(net.context()).unwrap();
        sub.connect(&addr).unwrap();
        let sub = up(sub);
        for i in 0..100 {
            sub.send(i.to_string()).unwrap();
            sub.subscribe(i.to_string()).unwrap();
        }
        sub.close();
        let mut raw = Raw::greet(net, &addr, SocketType::XSub);
        raw.send(&[Frame::Part { more: false, body: b"lost with it" }]);
        wait_until("all came", || publisher.counters().received == 101);
        raw.vanish();
        wait_until("it is gone", || publisher.counters().dropped == 1);
        let (mut messages, mut told) = (Vec::new(), Vec::new());
        while messages.len() < 30 {
            let text = seen(&publisher);
            if text.starts_with('+') { told.push(text) } else { messages.push(text) }
        }
        // Messages that waited for the fabric were overtaken by what waits for nothing.
        assert_eq!(messages, numbers(0..30));
        assert!(told.iter().enumerate().all(|(i, text)| *text == format!("+{i}")));
        let kept = publisher.clone();
        publisher.close();
        let counters = kept.counters();
        assert_eq!((counters.delivered, counters.delivered + counters.dropped), (30, 101));
    }
}

fn quick_sub() -> Builder<Sub> {
    Sub::builder().reconnect_interval(Some(Duration::from_millis(5)))
}
