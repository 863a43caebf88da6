//! REP: whose request is served next, where the reply goes, and what a bad or lost peer does to it.

use std::sync::Arc;

use msg_patterns::{ErrorKind, Rep, Req, Request};
use msg_proto::types::SocketType;
use msg_proto::wire::{ENVELOPE_BYTES_MAX, Frame, Hello};

use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

fn bound_rep(net: &Net) -> (Rep, String) {
    let rep = Rep::new(net.context()).unwrap();
    let addr = rep.bind(net.any()).unwrap().to_string();
    (rep, addr)
}

fn asker(net: &Net, addr: &str) -> Raw {
    Raw::greet(net, addr, SocketType::Req)
}

fn ask(raw: &mut Raw, id: u64, envelope: &[u8], body: &[u8]) {
    raw.send(&[Frame::Request { id, envelope }, Frame::Part { more: false, body }]);
}

/// The next reply that reaches a raw asker is this one.
fn expect_reply(raw: &mut Raw, id: u64, envelope: &[u8], body: &[u8]) {
    let head = raw.expect("a reply", |frame| matches!(frame, Frame::Reply { .. }));
    assert_eq!(Frame::decode(&head).unwrap().0, Frame::Reply { id, envelope });
    let part = raw.expect("its part", |frame| matches!(frame, Frame::Part { .. }));
    assert_eq!(Frame::decode(&part).unwrap().0, Frame::Part { more: false, body });
}

fn wait_for_received(rep: &Rep, count: u64) {
    wait_until("requests are there", || rep.counters().received == count);
}

/// Serves the next request, which must be `text`, with the same.
fn serve(rep: &Rep, text: &str) {
    let request = rep.recv_timeout(LONG).unwrap();
    assert_eq!(request.first(), text);
    rep.send(request).unwrap();
}

rules! {
    fn rep_01_requests_and_replies_alternate(net) {
        let (rep, addr) = bound_rep(net);
        let refused = rep.send("early").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::State, &"early".into()));
        let mut raw = asker(net, &addr);
        ask(&mut raw, 1, b"", b"one");
        ask(&mut raw, 2, b"", b"two");
        assert_eq!(rep.recv_timeout(LONG).unwrap().first(), "one");
        assert_eq!(rep.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::State);
        assert_eq!(rep.try_recv().unwrap_err().kind(), ErrorKind::State);
        rep.send("reply").unwrap();
        assert_eq!(rep.send("again").unwrap_err().kind(), ErrorKind::State);
        serve(&rep, "two");
    }

    fn rep_02_rep_serves_its_peers_evenly(net) {
        let (rep, addr) = bound_rep(net);
        let mut askers = [(); 5].map(|()| asker(net, &addr));
        for (i, raw) in (0..).zip(&mut askers) {
            // The first one asks far more than the others.
            let count = if i == 0 { 20 } else { 4 };
            (0..count).for_each(|id| ask(raw, id, b"", &[i]));
        }
        wait_for_received(&rep, 36);
        for _ in 0..4 {
            let mut round = [(); 5].map(|()| {
                let asker = rep.recv_timeout(LONG).unwrap().first()[0];
                rep.send("reply").unwrap();
                asker
            });
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
    }

    fn rep_03_the_envelope_goes_back_with_the_reply_unseen(net) {
        let (rep, addr) = bound_rep(net);
        let mut raw = asker(net, &addr);
        ask(&mut raw, 7, b"X\0Y", b"A");
        assert_eq!(rep.recv_timeout(LONG).unwrap().parts(), ["A"]);
        rep.send("B").unwrap();
        expect_reply(&mut raw, 7, b"X\0Y", b"B");
    }

    fn rep_04_replies_go_to_their_askers_and_nobody_else(net) {
        let (rep, addr) = bound_rep(net);
        let [mut a, mut b, mut bystander] = [(); 3].map(|()| asker(net, &addr));
        ask(&mut a, 7, b"", b"a");
        ask(&mut b, 7, b"", b"b");
        let requests = [(); 2].map(|()| rep.next_request(LONG).unwrap());
        for request in requests.into_iter().rev() {
            let text = request.message().first().clone();
            request.reply(text).unwrap();
        }
        expect_reply(&mut a, 7, b"", b"a");
        expect_reply(&mut b, 7, b"", b"b");
        ask(&mut bystander, 8, b"", b"bystander");
        serve(&rep, "bystander");
        expect_reply(&mut bystander, 8, b"", b"bystander");
    }

    fn rep_05_a_reply_to_a_peer_that_is_gone_is_dropped(net) {
        let (rep, addr) = bound_rep(net);
        let mut gone = asker(net, &addr);
        ask(&mut gone, 1, b"", b"question");
        rep.recv_timeout(LONG).unwrap();
        gone.vanish();
        wait_until("its peer is gone", || rep.peers().is_empty());
        rep.send("reply").unwrap();
        assert_eq!(rep.counters().dropped, 1);
        let mut next = asker(net, &addr);
        ask(&mut next, 1, b"", b"next");
        serve(&rep, "next");
        expect_reply(&mut next, 1, b"", b"next");
    }

    fn rep_06_rep_never_blocks_on_send(net) {
        let rep = Rep::builder().send_hwm(1).build(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let narrow = Hello { credit_messages: 1, ..hello(SocketType::Req) };
        let mut raw = Raw::greet_with(net, &addr, narrow);
        (1..=4).for_each(|id| ask(&mut raw, id, b"", b"question"));
        for _ in 0..4 {
            rep.recv_timeout(LONG).unwrap();
            rep.send("reply").unwrap();
        }
        // One is granted, one more fits the queue.
        assert_eq!(rep.counters().dropped, 2);
        expect_reply(&mut raw, 1, b"", b"reply");
        raw.send(&[Frame::Credit { messages: 10, bytes: 1 << 30 }]);
        expect_reply(&mut raw, 2, b"", b"reply");
        ask(&mut raw, 5, b"", b"on");
        serve(&rep, "on");
        expect_reply(&mut raw, 5, b"", b"on");
    }

    fn rep_07_malformed_requests_are_skipped(net) {
        let (rep, addr) = bound_rep(net);
        let mut raw = Raw::greet(net, &addr, SocketType::Dealer);
        raw.send(&[Frame::Part { more: false, body: b"no head" }]);
        raw.send(&[
            Frame::Part { more: true, body: b"" },
            Frame::Part { more: false, body: b"no head either" },
        ]);
        ask(&mut raw, 1, b"", b"next");
        serve(&rep, "next");
        expect_reply(&mut raw, 1, b"", b"next");
        assert_eq!(rep.counters().discarded, 2);
    }

    fn rep_08_an_envelope_of_many_hops_survives(net) {
        let (rep, addr) = bound_rep(net);
        let mut raw = asker(net, &addr);
        let hops: Vec<u8> = (0..ENVELOPE_BYTES_MAX).map(|i| (i % 251) as u8).collect();
        ask(&mut raw, 1, &hops, b"from afar");
        ask(&mut raw, 2, b"near", b"from near");
        serve(&rep, "from afar");
        serve(&rep, "from near");
        expect_reply(&mut raw, 1, &hops, b"from afar");
        expect_reply(&mut raw, 2, b"near", b"from near");
    }

    fn rep_09_requests_of_a_dead_peer_are_not_served(net) {
        let (rep, addr) = bound_rep(net);
        let mut dies = asker(net, &addr);
        ask(&mut dies, 1, b"", b"received");
        ask(&mut dies, 2, b"", b"unread");
        wait_for_received(&rep, 2);
        rep.recv_timeout(LONG).unwrap();
        dies.vanish();
        wait_until("its peer is gone", || rep.peers().is_empty());
        rep.send("to nobody").unwrap();
        let mut lives = asker(net, &addr);
        ask(&mut lives, 1, b"", b"next");
        serve(&rep, "next");
        expect_reply(&mut lives, 1, b"", b"next");
    }

    // rules: REP-04, REP-09
    fn an_old_request_is_not_answered_over_a_new_connection(net) {
        let (mut raw, addr) = Raw::listen(net);
        let rep = Rep::new(net.context()).unwrap();
        rep.connect(&addr).unwrap();
        raw.accept(SocketType::Req);
        ask(&mut raw, 1, b"", b"received");
        ask(&mut raw, 2, b"", b"unread");
        wait_for_received(&rep, 2);
        rep.recv_timeout(LONG).unwrap();
        raw.vanish();
        // Who asks now may be another one that counts from the beginning, too.
        raw.accept(SocketType::Req);
        rep.send("to the first").unwrap();
        ask(&mut raw, 2, b"", b"another");
        wait_for_received(&rep, 3);
        serve(&rep, "another");
        expect_reply(&mut raw, 2, b"", b"another");
        assert_eq!((rep.counters().dropped, rep.counters().discarded), (1, 1));
        raw.vanish();
    }

    fn rep_05_a_reply_over_the_limit_of_its_asker_comes_back(net) {
        let (rep, addr) = bound_rep(net);
        let small = Hello { message_bytes_max: 10, ..hello(SocketType::Req) };
        let mut raw = Raw::greet_with(net, &addr, small);
        ask(&mut raw, 1, b"", b"question");
        rep.recv_timeout(LONG).unwrap();
        let refused = rep.send("more than ten bytes").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLong);
        rep.send("too long").unwrap();
        expect_reply(&mut raw, 1, b"", b"too long");
    }

    fn rep_n1_one_thread_receives_with_a_handle_and_clones_work_beside_it(net) {
        let (rep, addr) = bound_rep(net);
        let (rep, req) = (Arc::new(rep), Req::new(net.context()).unwrap());
        req.connect(&addr).unwrap();
        let receiving = rep.clone();
        let receiver = std::thread::spawn(move || {
            // The other thread may be looking just now.
            let mut found = receiving.recv_timeout(LONG);
            while found.as_ref().is_err_and(|error| error.kind() == ErrorKind::State) {
                found = receiving.recv_timeout(LONG);
            }
            receiving.send(found.unwrap()).unwrap();
        });
        let state = |rep: &Rep| rep.try_recv().unwrap_err().kind();
        wait_until("the other thread receives", || state(&rep) == ErrorKind::State);
        assert_eq!(rep.send("x").unwrap_err().kind(), ErrorKind::State);
        assert_eq!(state(&Rep::clone(&rep)), ErrorKind::WouldBlock);
        let asker = std::thread::spawn(move || req.request("question", LONG));
        receiver.join().unwrap();
        assert_eq!(asker.join().unwrap().unwrap().first(), "question");
    }

    // rules: REP-N1
    fn several_requests_are_served_at_once_in_any_order(net) {
        let (rep, addr) = bound_rep(net);
        let mut raw = asker(net, &addr);
        (0..10).for_each(|id| ask(&mut raw, id, b"", &[id as u8]));
        let mut requests: Vec<Request> =
            (0..10).map(|_| rep.next_request(LONG).unwrap()).collect();
        requests.swap(2, 7);
        drop(requests.remove(5));
        for request in requests.into_iter().rev() {
            let body = request.message().first().clone();
            request.reply(body).unwrap();
        }
        for id in [9, 8, 2, 6, 4, 3, 7, 1, 0] {
            expect_reply(&mut raw, id, b"", &[id as u8]);
        }
        assert_eq!(rep.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
