//! XSUB: how it subscribes, what it sends up, and what it leaves behind.

use std::time::Duration;

use msg_patterns::{ErrorKind, Linger, Message, Pub, XPub, XSub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::pubsub::{numbers, publisher};
use crate::support::{LONG, Raw, hello, wait_until};
use crate::xpub::{seen, xpub, xsub};

/// The subscriptions and cancellations that come up to the one that says nothing more is wanted.
fn told(raw: &mut Raw, last: &Frame<'_>) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let bytes = raw.expect("a subscription or cancellation", |frame| {
            matches!(frame, Frame::Subscribe { .. } | Frame::Cancel { .. } | Frame::Settled)
        });
        let frame = Frame::decode(&bytes).unwrap().0;
        let text = |topic: &[u8]| String::from_utf8_lossy(topic).into_owned();
        match frame {
            Frame::Subscribe { topic, .. } => told.push(format!("+{}", text(topic))),
            Frame::Cancel { topic } => told.push(format!("-{}", text(topic))),
            _ => {}
        }
        if frame == *last {
            return told;
        }
    }
}

rules! {
    fn xsub_01_subscriptions_are_sent_as_messages(net) {
        let (publisher, addr) = publisher(net, Pub::builder());
        let sub = xsub(net, XSub::builder(), &addr);
        sub.send("\u{1}a").unwrap();
        publisher.wait_matching("a", 1, LONG).unwrap();
        publisher.send("a 1").unwrap();
        assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "a 1");
        // As calls they are the same, and counted.
        sub.subscribe("a").unwrap();
        sub.send("\u{1}").unwrap();
        publisher.wait_matching("b", 1, LONG).unwrap();
        (0..2).for_each(|_| sub.send("\u{0}a").unwrap());
        wait_until("cancelled", || publisher.topics() == 1);
        sub.unsubscribe("").unwrap();
        wait_until("all cancelled", || publisher.topics() == 0);
        assert_eq!(sub.counters().accepted, 0);
    }

    // rules: XSUB-01
    fn it_filters_nothing_itself(net) {
        let (mut raw, addr) = Raw::listen(net);
        let sub = xsub(net, XSub::builder(), &addr);
        raw.accept(SocketType::Pub);
        raw.send(&[Frame::Part { more: false, body: b"unasked" }]);
        assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "unasked");
    }

    fn xsub_02_a_message_goes_to_all_publishers_but_those_without_room(net) {
        let publishers = [xpub(net, XPub::builder()), xpub(net, XPub::builder())];
        let (plain, plain_addr) = publisher(net, Pub::builder());
        let (mut full, full_addr) = Raw::listen(net);
        let sub = xsub(net, XSub::builder().send_hwm(2), &publishers[0].1);
        sub.connect(&publishers[1].1).unwrap();
        sub.connect(&plain_addr).unwrap();
        sub.connect(&full_addr).unwrap();
        full.accept_silently();
        full.send(&[Frame::Hello(msg_proto::wire::Hello { credit_messages: 1, ..hello(SocketType::XPub) })]);
        wait_until("all are there", || sub.peers().iter().filter(|peer| peer.up).count() == 4);
        for i in 0..20 {
            sub.send(Message::from_parts([i.to_string(), "body".into()])).unwrap();
            publishers.iter().for_each(|(own, _)| assert_eq!(seen(own), format!("{i}|body")));
            wait_until("it was ignored", || plain.counters().discarded == i + 1);
        }
        assert_eq!(sub.counters().dropped, 17);
        full.send(&[Frame::Credit { messages: 10, bytes: 1 << 31 }]);
        let (mut got, mut lost) = (Vec::new(), 0);
        while got.len() < 6 || lost < 17 {
            let bytes = full.expect("a part or a loss", |frame| {
                matches!(frame, Frame::Part { .. } | Frame::Dropped { .. })
            });
            match Frame::decode(&bytes).unwrap().0 {
                Frame::Part { body, .. } => got.push(String::from_utf8(body.to_vec()).unwrap()),
                Frame::Dropped { count } => lost += count,
                other => panic!("neither: {other:?}"),
            }
        }
        assert_eq!((got.join(" "), lost), ("0 body 1 body 2 body".into(), 17));
        drop(full);
    }

    // rules: XSUB-02
    fn a_publisher_hears_what_it_lost(net) {
        let (own, addr) = xpub(net, XPub::builder().recv_hwm(1));
        let sub = xsub(net, XSub::builder().send_hwm(1), &addr);
        wait_until("it is there", || sub.peers()[0].up);
        (0..50).for_each(|i| sub.send(i.to_string()).unwrap());
        let mut got = 0;
        wait_until("each is received or counted", || {
            got += u64::from(own.try_recv().is_ok());
            got + own.counters().lost == 50
        });
        assert_eq!((own.counters().lost, sub.counters().dropped), (50 - got, 50 - got));
        assert!(got < 50);
    }

    fn xsub_03_a_publisher_that_is_left_hears_that_nothing_is_wanted(net) {
        let (mut raw, addr) = Raw::listen(net);
        let sub = xsub(net, XSub::builder(), &addr);
        ["a", "b"].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
        raw.accept(SocketType::XPub);
        assert_eq!(told(&mut raw, &Frame::Settled), ["+a", "+b"]);
        sub.disconnect(&addr).unwrap();
        assert_eq!(told(&mut raw, &Frame::Cancel { topic: b"b" }), ["-a", "-b"]);
        raw.expect("goodbye", |frame| *frame == Frame::Bye);
        raw.vanish();
        // Closed as a whole, it is gone, which says the same.
        let (own, addr) = xpub(net, XPub::builder());
        sub.connect(&addr).unwrap();
        assert_eq!([seen(&own), seen(&own)], ["+a", "+b"]);
        sub.close();
        assert_eq!([seen(&own), seen(&own)], ["-a", "-b"]);
    }

    fn xsub_04_verbose_passes_equal_ones_on(net) {
        for (verbose, expected) in [(true, "+a +a -a -a +b"), (false, "+a -a +b")] {
            let quick = XSub::builder().reconnect_interval(Some(Duration::from_millis(1)));
            let (mut raw, addr) = Raw::listen(net);
            let sub = xsub(net, quick.verbose(verbose), &addr);
            raw.accept(SocketType::XPub);
            raw.expect("that it has said all", |frame| *frame == Frame::Settled);
            ["a", "a"].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
            // The last one cancels nothing.
            ["a", "a", "a"].into_iter().for_each(|topic| sub.unsubscribe(topic).unwrap());
            ["b", "b"].into_iter().for_each(|topic| sub.subscribe(topic).unwrap());
            let last = Frame::Subscribe { history: true, topic: b"b" };
            assert_eq!(told(&mut raw, &last).join(" "), expected);
            // So does whoever connects anew.
            raw.vanish();
            raw.accept(SocketType::XPub);
            let times = if verbose { 2 } else { 1 };
            assert_eq!(told(&mut raw, &Frame::Settled), vec!["+b"; times]);
            drop((sub, raw));
        }
    }

    // rules: XSUB-02
    fn what_was_sent_up_leaves_before_a_close_and_what_was_not_received_is_counted(net) {
        let addr = net.nobody();
        let sub = XSub::new(net.context()).unwrap();
        sub.connect(&addr).unwrap();
        (0..10).for_each(|i| sub.send(i.to_string()).unwrap());
        let (own, at) = (XPub::builder().linger(Linger::No).build(net.context()).unwrap(), addr);
        own.bind(&at).unwrap();
        sub.subscribe("").unwrap();
        own.wait_matching("", 1, LONG).unwrap();
        (0..5).for_each(|i| own.send(i.to_string()).unwrap());
        wait_until("all came", || sub.counters().received == 5);
        let kept = sub.clone();
        sub.close();
        assert_eq!((kept.counters().sent, kept.counters().dropped), (10, 5));
        assert_eq!(kept.send("late").unwrap_err().kind(), ErrorKind::Terminated);
        let got: Vec<_> = (0..12).map(|_| seen(&own)).collect();
        let (told, messages): (Vec<_>, Vec<_>) =
            got.into_iter().partition(|text| text.starts_with(['+', '-']));
        assert_eq!((told, messages), (vec!["+".into(), "-".into()], numbers(0..10)));
    }
}
