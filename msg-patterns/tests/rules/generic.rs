//! Rules of every socket: connections, and messages as a whole.

use std::time::Duration;

use msg_patterns::{Linger, Message, MonitorEvent, Pub, Pull, Push, Rep, Req, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::sockets::{KINDS, event, legal_pairs, open};
use crate::support::{LONG, NEVER, Raw, wait_until};

const FAST: Option<Duration> = Some(Duration::from_millis(10));

/// The number that a pushed message carries, or `None` for a frame that is no message.
fn number(frame: &[u8]) -> Option<u32> {
    match Frame::decode(frame).unwrap().0 {
        Frame::Part { body, .. } => Some(u32::from_le_bytes(body.try_into().unwrap())),
        _ => None,
    }
}

rules! {
    fn gen_01_bind_and_connect_any_type(net) {
        for (kind, other) in legal_pairs() {
            let hub = open(net.context(), kind);
            let spokes: Vec<_> = (0..4).map(|_| open(net.context(), other)).collect();
            for (i, spoke) in spokes.iter().enumerate() {
                let (binds, connects) = if i < 2 { (&hub, spoke) } else { (spoke, &hub) };
                let addr = binds.bind(net.any()).unwrap();
                connects.connect(&addr.to_string()).unwrap();
            }
            hub.wait_up(4);
            spokes.iter().for_each(|spoke| spoke.wait_up(1));
        }
    }

    fn gen_01_the_receiving_side_may_be_the_one_that_connects(net) {
        let (push, pull) = (Push::new(net.context()).unwrap(), Pull::new(net.context()).unwrap());
        pull.connect(&push.bind(net.any()).unwrap().to_string()).unwrap();
        push.send("work").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "work");

        let (publisher, sub) =
            (Pub::new(net.context()).unwrap(), Sub::new(net.context()).unwrap());
        sub.subscribe("").unwrap();
        publisher.connect(&sub.bind(net.any()).unwrap().to_string()).unwrap();
        publisher.send("news").unwrap();
        assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "news");

        let (req, rep) = (Req::new(net.context()).unwrap(), Rep::new(net.context()).unwrap());
        rep.connect(&req.bind(net.any()).unwrap().to_string()).unwrap();
        req.send("ask").unwrap();
        assert_eq!(rep.recv_timeout(LONG).unwrap().first(), "ask");
        rep.send("answer").unwrap();
        assert_eq!(req.recv_timeout(LONG).unwrap().first(), "answer");
    }

    fn gen_02_connect_before_bind(net) {
        for (kind, other) in legal_pairs() {
            let addr = net.nobody();
            let early = open(net.context(), kind);
            let monitor = early.monitor();
            early.connect(&addr).unwrap();
            event(&monitor, "a retry", |e| matches!(e, MonitorEvent::ConnectRetried { .. }));
            let late = open(net.context(), other);
            late.bind(&addr).unwrap();
            early.wait_up(1);
            late.wait_up(1);
        }
    }

    fn gen_03_reconnect_after_break(net) {
        for kind in KINDS {
            let (mut raw, addr) = Raw::listen(net);
            let socket = open(net.context(), kind);
            let monitor = socket.monitor();
            socket.connect(&addr).unwrap();
            let peer = kind.legal_peers()[0];
            raw.accept(peer);
            raw.vanish();
            event(&monitor, "the break", |e| matches!(e, MonitorEvent::Disconnected { .. }));
            let retry = event(&monitor, "a retry", |e| matches!(e, MonitorEvent::ConnectRetried { .. }));
            let MonitorEvent::ConnectRetried { interval, .. } = retry else { unreachable!() };
            assert!(interval >= Duration::from_millis(100), "after a delay");
            raw.accept(peer);
            socket.wait_up(1);
            drop(raw); // It would not say goodbye.
        }
    }

    fn gen_04_multipart_all_or_nothing(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let mut raw = Raw::greet(net, &addr, SocketType::Push);
        raw.send(&[Frame::Part { more: false, body: b"before" }]);
        raw.send(&[Frame::Part { more: true, body: b"first part of a message" }]);
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "before");
        raw.vanish();
        wait_until("the break", || pull.peers().is_empty());
        let push = Push::new(net.context()).unwrap();
        push.connect(&addr).unwrap();
        push.send(Message::from_parts(["whole", "message"])).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().parts(), ["whole", "message"]);
        assert_eq!(pull.counters().received, 2);
    }

    // rules: GEN-31
    fn gen_04_parts_are_received_with_the_last_one(net) {
        let pull = Pull::new(net.context()).unwrap();
        let mut raw =
            Raw::greet(net, &pull.bind(net.any()).unwrap().to_string(), SocketType::Push);
        for body in [b"a", b"b"] {
            raw.send(&[Frame::Part { more: true, body }]);
            assert!(pull.recv_timeout(NEVER).is_err(), "a message that is not complete");
        }
        raw.send(&[Frame::Part { more: false, body: b"c" }]);
        let message = pull.recv_timeout(LONG).unwrap();
        // Nothing remains to be waited for: all parts are in the one message.
        assert_eq!(message.parts(), ["a", "b", "c"]);
    }

    fn gen_05_multipart_not_sent_until_last(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().message_bytes_max(100).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        raw.accept(SocketType::Pull);
        let parts = [vec![1_u8; 40], vec![2; 40], vec![3; 40]];
        push.send(Message::from_parts(parts)).unwrap_err();
        push.send("next").unwrap();
        let first = raw.expect("a part", |frame| matches!(frame, Frame::Part { .. }));
        assert_eq!(Frame::decode(&first).unwrap().0, Frame::Part { more: false, body: b"next" });
        drop(raw); // It would not say goodbye.
    }

    fn gen_06_no_duplicates(net) {
        const COUNT: u32 = 2_000;
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder()
            .reconnect_interval(FAST)
            .send_hwm(0)
            .build(net.context())
            .unwrap();
        push.connect(&addr).unwrap();
        let mut got = Vec::new();
        for part in 0..4 {
            raw.accept(SocketType::Pull);
            for i in 0..COUNT / 4 {
                push.send(&(part * COUNT / 4 + i).to_le_bytes()).unwrap();
            }
            got.extend(raw.received().iter().filter_map(|frame| number(frame)));
            raw.vanish();
            got.extend(raw.received().iter().filter_map(|frame| number(frame)));
        }
        raw.accept(SocketType::Pull);
        push.send(&COUNT.to_le_bytes()).unwrap();
        while got.last() != Some(&COUNT) {
            got.extend(raw.received().iter().filter_map(|frame| number(frame)));
        }
        assert!(got.is_sorted_by(|a, b| a < b), "twice or out of order: {got:?}");
        drop(raw); // It would not say goodbye.
    }

    fn gen_07_in_order_per_peer(net) {
        const SIZES: [usize; 6] = [0, 3, 5_000, 70_000, 400_000, 60];
        const COUNT: u32 = 300;
        let pull = Pull::new(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        let sender = std::thread::spawn(move || {
            for i in 0..COUNT {
                let body = vec![0; SIZES[i as usize % SIZES.len()]];
                push.send(Message::from(&i.to_le_bytes()).with(body)).unwrap();
            }
            push.close();
        });
        for i in 0..COUNT {
            let message = pull.recv_timeout(LONG).unwrap();
            assert_eq!(message.first()[..], i.to_le_bytes());
            assert_eq!(message.parts()[1].len(), SIZES[i as usize % SIZES.len()]);
        }
        sender.join().unwrap();
    }

    fn gen_08_empty_frame_is_a_frame(net) {
        let pull = Pull::new(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        let messages = [&[""][..], &["", "b"], &["a", "", "c"], &["a", ""], &["", "", ""]];
        for parts in messages {
            push.send(Message::from_parts(parts.iter().copied())).unwrap();
        }
        for parts in messages {
            assert_eq!(pull.recv_timeout(LONG).unwrap().parts(), parts);
        }
    }

    fn gen_09_payload_is_opaque(net) {
        let rep = Rep::new(net.context()).unwrap();
        let req = Req::new(net.context()).unwrap();
        req.connect(&rep.bind(net.any()).unwrap().to_string()).unwrap();
        // Among them what looks like frames of the protocol itself.
        let bye = Frame::Bye.encode().head().to_vec();
        let every_octet: Vec<u8> = (0..=u8::MAX).collect();
        for payload in [every_octet, bye, vec![0; 300], vec![0xff; 300], b"\r\n\0".to_vec()] {
            let message = Message::from_parts([payload.clone(), payload.clone()]);
            req.send(message.clone()).unwrap();
            assert_eq!(rep.recv_timeout(LONG).unwrap(), message);
            rep.send(message.clone()).unwrap();
            assert_eq!(req.recv_timeout(LONG).unwrap(), message);
        }
    }

    fn gen_14_plain_close_is_temporary(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        for _ in 0..3 {
            // Before the greeting, and after it.
            raw.accept_silently();
            raw.vanish();
            raw.accept(SocketType::Pull);
            raw.vanish();
        }
        raw.accept(SocketType::Pull);
        push.send("still here").unwrap();
        raw.expect("the message", |frame| matches!(frame, Frame::Part { body: b"still here", .. }));
        drop(raw); // It would not say goodbye.
    }

    fn gen_29_a_message_of_any_size_is_received_in_full(net) {
        let pull = Pull::new(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        for len in [0, 1, 255, 256, 65_535, 65_536, 66_560, 70_000, 2_000_000] {
            let body: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            push.send(body.clone()).unwrap();
            let message = pull.recv_timeout(LONG).unwrap();
            assert_eq!(message.len(), len);
            assert!(message.first()[..] == body, "{len} bytes came changed");
        }
    }

    fn gen_32_bind_alone_is_mute(net) {
        let push = Push::builder().linger(Linger::No).build(net.context()).unwrap();
        push.bind(net.any()).unwrap();
        push.try_send("nobody").unwrap_err();
        push.connect(&net.nobody()).unwrap();
        push.try_send("queued").unwrap();

        let req = Req::builder().linger(Linger::No).build(net.context()).unwrap();
        req.bind(net.any()).unwrap();
        req.try_send("nobody").unwrap_err();
        req.connect(&net.nobody()).unwrap();
        req.try_send("queued").unwrap();
    }

    fn gen_33_duplicate_connect_ignored(net) {
        for (kind, other) in legal_pairs() {
            let server = open(net.context(), other);
            let addr = server.bind(net.any()).unwrap().to_string();
            let client = open(net.context(), kind);
            client.connect(&addr).unwrap();
            client.connect(&addr).unwrap();
            let once = ![SocketType::Push, SocketType::Pull, SocketType::Rep, SocketType::Router].contains(&kind);
            client.wait_up(if once { 1 } else { 2 });
            assert_eq!(client.peers().len(), if once { 1 } else { 2 }, "{kind}");
        }
    }

    // rules: GEN-33
    fn a_connect_after_a_disconnect_is_a_new_one(net) {
        for (kind, other) in legal_pairs() {
            let server = open(net.context(), other);
            let addr = server.bind(net.any()).unwrap().to_string();
            let client = open(net.context(), kind);
            client.connect(&addr).unwrap();
            client.wait_up(1);
            client.disconnect(&addr).unwrap();
            client.connect(&addr).unwrap();
            wait_until("the old one gone, the new one up", || {
                client.peers().len() == 1 && client.counters().connects == 2 && client.up() == 1
            });
        }
    }
}
