//! ROUTER: who is who, who can be reached, and what becomes of messages for others.

use std::collections::HashSet;
use std::time::Duration;

use msg_patterns::{
    Builder, Bytes, Context, Dealer, ErrorKind, Fault, Message, Monitor, MonitorEvent, Rep, Req,
    Router, RoutingId,
};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::sockets::event;
use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

fn bound(net: &Net) -> (Router, String) {
    let router = Router::new(net.context()).unwrap();
    let addr = router.bind(net.any()).unwrap().to_string();
    (router, addr)
}

pub(crate) fn bound_with(net: &Net, settings: Builder<Router>) -> (Router, String) {
    let router = settings.build(net.context()).unwrap();
    let addr = router.bind(net.any()).unwrap().to_string();
    (router, addr)
}

fn mandatory(net: &Net) -> (Router, String) {
    let router = Router::builder().mandatory(true).send_hwm(1).build(net.context()).unwrap();
    let addr = router.bind(net.any()).unwrap().to_string();
    (router, addr)
}

/// A dealer that calls itself `identity` and said hello.
pub(crate) fn dealer(context: &Context, addr: &str, identity: &'static str) -> Dealer {
    let dealer = Dealer::builder()
        .identity(identity)
        .reconnect_interval(Some(Duration::from_millis(5)))
        .build(context)
        .unwrap();
    dealer.connect(addr).unwrap();
    dealer.send("hello").unwrap();
    dealer
}

pub(crate) fn next(router: &Router) -> (RoutingId, Message) {
    router.recv_timeout(LONG).unwrap()
}

pub(crate) fn text(dealer: &Dealer) -> Message {
    dealer.recv_timeout(LONG).unwrap()
}

fn undelivered(monitor: &Monitor) -> Bytes {
    match event(monitor, "a drop", |event| matches!(event, MonitorEvent::Undelivered { .. })) {
        MonitorEvent::Undelivered { name, .. } => name,
        other => unreachable!("{other:?}"),
    }
}

pub(crate) fn part(body: &[u8]) -> Frame<'_> {
    Frame::Part { more: false, body }
}

/// A greeting of a DEALER that calls itself A and has no room.
fn full() -> Hello<'static> {
    Hello { credit_messages: 0, identity: b"A", ..hello(SocketType::Dealer) }
}

/// Carries one message on and its answer back.
fn carry(front: &Router, back: &Dealer) {
    let (from, request) = next(front);
    back.send(from.before(request)).unwrap();
}

fn carry_back(front: &Router, back: &Dealer) {
    let (to, reply) = RoutingId::split(text(back)).unwrap();
    front.send_to(&to, reply).unwrap();
}

rules! {
    fn rout_01_each_message_comes_with_the_name_of_its_peer(net) {
        let (router, addr) = bound(net);
        let peers = ["A", "B"].map(|name| (name, dealer(net.context(), &addr, name)));
        for (name, peer) in &peers {
            peer.send(Message::from_parts([*name, "", "more"])).unwrap();
        }
        for _ in 0..4 {
            let (from, message) = next(&router);
            let plain = Message::from("hello");
            let own = Message::from_parts([&from.name()[..], b"", b"more"]);
            assert!(message == plain || message == own, "{from:?} {message:?}");
        }
    }

    fn rout_02_a_message_goes_to_the_peer_that_is_named_without_the_name(net) {
        let (router, addr) = bound(net);
        let peers = ["A", "B", ""].map(|name| dealer(net.context(), &addr, name));
        let ids = [(); 3].map(|()| next(&router).0);
        for id in &ids {
            router.send_to(id, Message::from_parts([id.name(), &"".into()].map(Clone::clone))).unwrap();
        }
        let got: HashSet<_> = peers.iter().map(|peer| text(peer).into_parts()).collect();
        let sent = ids.iter().map(|id| vec![id.name().clone(), "".into()]);
        assert_eq!(got, sent.collect());
    }

    fn rout_03_names_that_nobody_chose_are_unique_for_each_connection(net) {
        let (routers, addrs): (Vec<_>, Vec<_>) = [(); 2].map(|()| bound(net)).into_iter().unzip();
        let mut seen = HashSet::new();
        for _ in 0..3 {
            for (router, addr) in routers.iter().zip(&addrs) {
                let peer = dealer(net.context(), addr, "");
                let (id, _) = next(router);
                assert_eq!(id.name()[0], 0, "no peer can choose it");
                assert!(seen.insert(id));
                peer.close();
            }
        }
    }

    fn rout_04_a_peer_is_reached_by_the_identity_that_it_chose(net) {
        let (router, addr) = bound(net);
        let first = dealer(net.context(), &addr, "chosen");
        assert_eq!(next(&router).0, RoutingId::from("chosen"));
        router.send_to(&"chosen".into(), "1").unwrap();
        assert_eq!(text(&first).first(), "1");
        first.close();
        wait_until("it is gone", || router.peers().is_empty());
        let second = dealer(net.context(), &addr, "chosen");
        next(&router);
        router.send_to(&"chosen".into(), "2").unwrap();
        assert_eq!(text(&second).first(), "2");
    }

    fn rout_05_what_nobody_can_get_is_dropped_counted_and_told(net) {
        let (router, addr) = bound(net);
        let monitor = router.monitor();
        let peer = dealer(net.context(), &addr, "A");
        next(&router);
        router.send_to(&"B".into(), "lost").unwrap();
        assert_eq!(undelivered(&monitor), "B");
        assert_eq!((router.counters().accepted, router.counters().dropped), (1, 1));
        router.send_to(&"A".into(), "found").unwrap();
        assert_eq!(text(&peer).first(), "found");
    }

    fn rout_06_where_it_is_mandatory_what_nobody_can_get_is_handed_back(net) {
        let (router, _) = mandatory(net);
        let kinds = [
            router.send_to(&"nobody".into(), "kept").unwrap_err(),
            router.try_send_to(&"nobody".into(), "kept").unwrap_err(),
            router.send_to_timeout(&"nobody".into(), "kept", LONG).unwrap_err(),
        ];
        for refused in kinds {
            assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
        }
        assert_eq!((router.counters().accepted, router.counters().dropped), (0, 0));
    }

    fn rout_06_where_it_is_mandatory_a_send_waits_for_room(net) {
        let (router, addr) = mandatory(net);
        let slow = Dealer::builder().identity("A").recv_hwm(1).build(net.context()).unwrap();
        slow.connect(&addr).unwrap();
        slow.send("hello").unwrap();
        let (id, _) = next(&router);
        let mut sent = 0_u8;
        while router.try_send_to(&id, &[sent]).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, 2);
        assert_eq!(router.try_send_to(&id, "x").unwrap_err().kind(), ErrorKind::WouldBlock);
        let short = Duration::from_millis(20);
        assert_eq!(router.send_to_timeout(&id, "x", short).unwrap_err().kind(), ErrorKind::TimedOut);
        let (waiting, to) = (router.clone(), id);
        let sender = std::thread::spawn(move || waiting.send_to(&to, &[2]));
        assert_eq!([(); 3].map(|()| text(&slow).first()[0]), [0, 1, 2]);
        sender.join().unwrap().unwrap();
        assert_eq!(router.counters().dropped, 0);
    }

    fn rout_06_a_mandatory_send_that_waits_ends_when_its_peer_leaves(net) {
        let (router, addr) = mandatory(net);
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_until("it is there", || router.has_room_for(&"A".into()));
        router.send_to(&"A".into(), "queued").unwrap();
        let waiting = router.clone();
        let sender = std::thread::spawn(move || waiting.send_to(&"A".into(), "kept"));
        raw.vanish();
        let refused = sender.join().unwrap().unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
    }

    fn rout_07_a_send_never_waits_and_what_finds_no_room_is_counted(net) {
        let router = Router::builder().send_hwm(3).build(net.context()).unwrap();
        let addr = router.bind(net.any()).unwrap().to_string();
        let monitor = router.monitor();
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_until("it is there", || router.has_room_for(&"A".into()));
        (0..10).for_each(|i| router.send_to(&"A".into(), &[i]).unwrap());
        assert_eq!((router.counters().accepted, router.counters().dropped), (10, 7));
        assert_eq!(undelivered(&monitor), "A");
        raw.send(&[Frame::Credit { messages: 100, bytes: 1 << 30 }]);
        for i in 0..3 {
            let bytes = raw.expect("a message", |frame| matches!(frame, Frame::Part { .. }));
            assert_eq!(Frame::decode(&bytes).unwrap().0, part(&[i]));
        }
        drop(raw); // It would not say goodbye.
    }

    // rules: ROUT-08, DEV-06
    fn rout_08_the_queues_of_a_vanished_peer_go_with_it_and_are_counted(net) {
        let (router, addr) = bound(net);
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_until("it is there", || router.has_room_for(&"A".into()));
        (0..5).for_each(|i| router.send_to(&"A".into(), &[i]).unwrap());
        raw.send(&[part(b"unread"), part(b"unread")]);
        wait_until("they are there", || router.counters().received == 2);
        raw.vanish();
        wait_until("it is gone", || router.peers().is_empty());
        assert_eq!(router.counters().dropped, 7);
        assert_eq!(router.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
        let again = dealer(net.context(), &addr, "A");
        next(&router);
        router.send_to(&"A".into(), "new").unwrap();
        assert_eq!(text(&again).first(), "new");
    }

    fn rout_08_every_message_is_accounted_for_when_sockets_close(net) {
        let (router, addr) = bound(net);
        let peer = dealer(net.context(), &addr, "A");
        (0..99).for_each(|i| peer.send(&[i]).unwrap());
        peer.close();
        (0..40).for_each(|_| assert_eq!(next(&router).0, "A".into()));
        wait_until("all came", || router.counters().received == 100);
        let kept = router.clone();
        router.close();
        assert_eq!((kept.counters().delivered, kept.counters().dropped), (40, 60));
    }

    fn rout_09_peers_are_heard_evenly(net) {
        let (router, addr) = bound(net);
        let peers: Vec<Dealer> = (0..5_u8)
            .map(|i| {
                let peer = Dealer::builder().identity(vec![b'a' + i]).build(net.context()).unwrap();
                peer.connect(&addr).unwrap();
                // The first one has far more to say than the others.
                let count = if i == 0 { 100 } else { 4 };
                (0..count).for_each(|_| peer.send("x").unwrap());
                peer
            })
            .collect();
        wait_until("all is there", || router.counters().received == 116);
        for _ in 0..4 {
            let round: HashSet<_> = (0..5).map(|_| next(&router).0).collect();
            assert_eq!(round.len(), 5);
        }
        drop(peers);
    }

    // rules: ROUT-10, DEV-05
    fn rout_10_without_handover_the_older_peer_keeps_its_identity_and_the_newer_one_is_told(net) {
        let (router, addr) = bound(net);
        let older = dealer(net.context(), &addr, "A");
        next(&router);
        let newer = Dealer::builder()
            .identity("A")
            .reconnect_interval(Some(Duration::from_millis(5)))
            .build(net.context())
            .unwrap();
        let monitor = newer.monitor();
        newer.connect(&addr).unwrap();
        event(&monitor, "a refusal", |event| {
            matches!(event, MonitorEvent::Refused { fault: Fault::Identity, by_peer: true, .. })
        });
        router.send_to(&"A".into(), "for the older").unwrap();
        assert_eq!(text(&older).first(), "for the older");
        older.close();
        wait_until("the newer one has it", || {
            router.has_room_for(&"A".into())
                && router.peers().iter().any(|peer| peer.up)
                && newer.peers().iter().any(|peer| peer.up)
        });
        router.send_to(&"A".into(), "for the newer").unwrap();
        assert_eq!(text(&newer).first(), "for the newer");
    }

    fn rout_10_with_handover_the_newer_peer_takes_the_identity_over(net) {
        let router = Router::builder().handover(true).build(net.context()).unwrap();
        let addr = router.bind(net.any()).unwrap().to_string();
        let older = dealer(net.context(), &addr, "A");
        let monitor = older.monitor();
        next(&router);
        let newer = dealer(net.context(), &addr, "A");
        assert_eq!(next(&router).0, "A".into());
        router.send_to(&"A".into(), "for the newer").unwrap();
        assert_eq!(text(&newer).first(), "for the newer");
        event(&monitor, "its end", |event| matches!(event, MonitorEvent::ConnectStopped { .. }));
        assert_eq!(older.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    fn rout_12_a_peer_that_is_connected_to_can_be_given_a_name_and_sent_to_at_once(net) {
        let addr = net.nobody();
        let router = Router::new(net.context()).unwrap();
        router.connect_as(&addr, &"given".into()).unwrap();
        router.send_to(&"given".into(), "early").unwrap();
        for wrong in ["given", ""] {
            let error = router.connect_as(&addr, &wrong.into()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
        let other = Router::builder().identity("own").build(net.context()).unwrap();
        other.bind(&addr).unwrap();
        let (back, message) = next(&other);
        assert_eq!(message.first(), "early");
        other.send_to(&back, "back").unwrap();
        assert_eq!(next(&router), ("given".into(), "back".into()));
    }

    // rules: ROUT-12, DEAL-08
    fn routers_learn_of_each_other_by_probes(net) {
        let (bound, addr) = bound(net);
        let other = Router::builder().identity("other").probe_router(true).build(net.context());
        let other = other.unwrap();
        other.connect(&addr).unwrap();
        assert_eq!(next(&bound), ("other".into(), "".into()));
        bound.send_to(&"other".into(), "hello").unwrap();
        assert_eq!(next(&other).1.first(), "hello");
    }

    fn rout_13_it_can_be_asked_whether_a_peer_has_room(net) {
        let (router, addr) = mandatory(net);
        assert!(!router.has_room_for(&"A".into()));
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_until("it is there", || router.has_room_for(&"A".into()));
        router.send_to(&"A".into(), "x").unwrap();
        assert!(!router.has_room_for(&"A".into()));
        raw.send(&[Frame::Credit { messages: 1, bytes: 1 << 30 }]);
        wait_until("it has room", || router.has_room_for(&"A".into()));
        raw.vanish();
        wait_until("it is gone", || !router.has_room_for(&"A".into()));
    }

    fn rout_14_a_request_passes_two_routers_and_its_reply_finds_the_way_back(net) {
        let [(front, front_addr), (middle, middle_addr)] = [bound(net), bound(net)];
        let [front_back, middle_back] = [(); 2].map(|()| Dealer::new(net.context()).unwrap());
        front_back.connect(&middle_addr).unwrap();
        let rep = Rep::new(net.context()).unwrap();
        middle_back.connect(&rep.bind(net.any()).unwrap().to_string()).unwrap();
        let reqs = ["a", "b"].map(|text| {
            let req = Req::new(net.context()).unwrap();
            req.connect(&front_addr).unwrap();
            req.send(text).unwrap();
            (text, req)
        });
        for _ in &reqs {
            carry(&front, &front_back);
            carry(&middle, &middle_back);
        }
        let [first, second] = [(); 2].map(|()| rep.next_request(LONG).unwrap());
        for request in [second, first] {
            assert_eq!(request.message().parts().len(), 1, "the envelope stays outside");
            let reply = request.message().clone();
            request.reply(reply).unwrap();
            carry_back(&middle, &middle_back);
            carry_back(&front, &front_back);
        }
        for (text, req) in &reqs {
            assert_eq!(req.recv_timeout(LONG).unwrap().first(), *text);
        }
    }

    fn rout_14_each_hop_adds_one_part(net) {
        let (router, addr) = bound(net);
        let (last, last_addr) = bound(net);
        let peer = dealer(net.context(), &addr, "A");
        let back = Dealer::builder().identity("B").build(net.context()).unwrap();
        back.connect(&last_addr).unwrap();
        carry(&router, &back);
        let (from, message) = next(&last);
        assert_eq!(from.before(message).parts(), ["B", "A", "hello"]);
        drop(peer);
    }

    // rules: ROUT-01, ROUT-02
    fn a_router_answers_what_a_req_asked_and_nothing_else_reaches_it(net) {
        let (router, addr) = bound(net);
        let req = Req::builder().identity("asker").build(net.context()).unwrap();
        req.connect(&addr).unwrap();
        let other = req.clone();
        req.send("1").unwrap();
        other.send("2").unwrap();
        let [(first, one), (second, two)] = [(); 2].map(|()| next(&router));
        assert_eq!((one.first(), two.first()), (&"1".into(), &"2".into()));
        assert!(first.is_request() && first != second && first.name() == "asker");
        router.send_to(&"asker".into(), "not asked for").unwrap();
        assert_eq!(router.counters().dropped, 1);
        router.send_to(&second, "to 2").unwrap();
        router.send_to(&first, "to 1").unwrap();
        assert_eq!(req.recv_timeout(LONG).unwrap().first(), "to 1");
        assert_eq!(other.recv_timeout(LONG).unwrap().first(), "to 2");
    }

    // rules: ROUT-08
    fn a_reply_to_an_earlier_connection_does_not_reach_a_later_one(net) {
        let (router, addr) = bound(net);
        let greeting = || Hello { identity: b"asker", ..hello(SocketType::Req) };
        let mut first = Raw::greet_with(net, &addr, greeting());
        first.send(&[Frame::Request { id: 0, envelope: b"" }, part(b"old")]);
        let (old, _) = next(&router);
        first.vanish();
        wait_until("it is gone", || router.peers().is_empty());
        let mut second = Raw::greet_with(net, &addr, greeting());
        second.send(&[Frame::Request { id: 0, envelope: b"" }, part(b"new")]);
        let (new, _) = next(&router);
        router.send_to(&old, "stale").unwrap();
        assert_eq!(router.counters().dropped, 1);
        router.send_to(&new, "fresh").unwrap();
        let reply = second.expect("a reply", |frame| matches!(frame, Frame::Part { .. }));
        assert_eq!(Frame::decode(&reply).unwrap().0, part(b"fresh"));
        second.vanish();
    }

    // rules: ROUT-05
    fn what_does_not_fit_the_type_of_its_sender_is_discarded(net) {
        let (router, addr) = bound(net);
        let mut req = Raw::greet(net, &addr, SocketType::Req);
        req.send(&[part(b"bare"), Frame::Request { id: 1, envelope: b"e" }, part(b"carried")]);
        let mut dealer = Raw::greet(net, &addr, SocketType::Dealer);
        dealer.send(&[Frame::Request { id: 1, envelope: b"" }, part(b"asked"), part(b"good")]);
        assert_eq!(next(&router).1.first(), "good");
        wait_until("the others", || router.counters().discarded == 3);
        req.vanish();
        dealer.vanish();
    }
}
