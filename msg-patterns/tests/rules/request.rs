//! REQ: whom it asks, which reply it takes, and what becomes of a request whose peer leaves.

use std::time::Duration;

use msg_patterns::{ErrorKind, Message, Rep, Req};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, Net, Raw, wait_until};

/// A time limit that is meant to be reached.
const SHORT: Duration = Duration::from_millis(20);

fn bound_req(net: &Net) -> (Req, String) {
    let req = Req::new(net.context()).unwrap();
    let addr = req.bind(net.any()).unwrap().to_string();
    (req, addr)
}

fn connected_req(net: &Net, addr: &str) -> Req {
    let req = Req::new(net.context()).unwrap();
    req.connect(addr).unwrap();
    req
}

fn bound_rep(net: &Net) -> (Rep, String) {
    let rep = Rep::new(net.context()).unwrap();
    let addr = rep.bind(net.any()).unwrap().to_string();
    (rep, addr)
}

fn wait_for_peers(req: &Req, count: usize) {
    wait_until("peers are there", || req.peers().iter().filter(|peer| peer.up).count() == count);
}

/// A raw replier that `req` connects to.
fn raw_replier(net: &Net, req: &Req) -> Raw {
    let (mut raw, addr) = Raw::listen(net);
    req.connect(&addr).unwrap();
    raw.accept(SocketType::Rep);
    raw
}

/// The next request that reaches a raw replier: its id and only part.
fn asked(raw: &mut Raw) -> (u64, Vec<u8>) {
    let head = raw.expect("a request", |frame| matches!(frame, Frame::Request { .. }));
    let part = raw.expect("its part", |frame| matches!(frame, Frame::Part { .. }));
    match (Frame::decode(&head).unwrap().0, Frame::decode(&part).unwrap().0) {
        (Frame::Request { id, .. }, Frame::Part { body, .. }) => (id, body.to_vec()),
        other => panic!("{other:?}"),
    }
}

fn reply(raw: &mut Raw, id: u64, body: &str) {
    let part = Frame::Part { more: false, body: body.as_bytes() };
    raw.send(&[Frame::Reply { id, envelope: b"" }, part]);
}

fn recv(req: &Req) -> Message {
    req.recv_timeout(LONG).unwrap()
}

fn recv_error(req: &Req) -> ErrorKind {
    req.recv_timeout(LONG).unwrap_err().kind()
}

rules! {
    fn req_01_requests_and_replies_alternate(net) {
        let (rep, addr) = bound_rep(net);
        let req = connected_req(net, &addr);
        assert_eq!(recv_error(&req), ErrorKind::State);
        req.send("one").unwrap();
        let refused = req.send("two").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::State, &"two".into()));
        assert_eq!(req.recv_timeout(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        let request = rep.recv_timeout(LONG).unwrap();
        rep.send(request).unwrap();
        assert_eq!(recv(&req).first(), "one");
        assert_eq!(recv_error(&req), ErrorKind::State);
        req.send("two").unwrap();
        assert_eq!(rep.recv_timeout(LONG).unwrap().first(), "two");
    }

    fn req_03_requests_rotate_over_peers(net) {
        let req = Req::new(net.context()).unwrap();
        let reps = [(); 3].map(|()| bound_rep(net));
        reps.iter().for_each(|(_, addr)| req.connect(addr).unwrap());
        wait_for_peers(&req, 3);
        for (rep, _) in reps.iter().cycle().take(6) {
            req.send("to the next").unwrap();
            let request = rep.recv_timeout(LONG).unwrap();
            rep.send(request).unwrap();
            recv(&req);
        }
    }

    fn req_04_req_blocks_without_peer(net) {
        let (req, addr) = bound_req(net);
        let refused = req.try_send("x").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"x".into()));
        assert_eq!(req.send_timeout("x", SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(req.request("x", SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        let waiting = req.clone();
        let asker = std::thread::spawn(move || waiting.request("when somebody came", LONG));
        let rep = Rep::new(net.context()).unwrap();
        rep.connect(&addr).unwrap();
        let request = rep.recv_timeout(LONG).unwrap();
        assert_eq!(request.first(), "when somebody came");
        rep.send("reply").unwrap();
        assert_eq!(asker.join().unwrap().unwrap().first(), "reply");
    }

    fn req_05_a_request_is_refused_or_kept_but_never_lost(net) {
        let addr = net.nobody();
        let req = Req::builder().send_hwm(2).build(net.context()).unwrap();
        req.connect(&addr).unwrap();
        let askers = [req.clone(), req.clone()];
        askers.iter().for_each(|asker| asker.try_send("kept").unwrap());
        let refused = req.try_send("refused").unwrap_err();
        assert_eq!((refused.kind(), req.counters().accepted), (ErrorKind::WouldBlock, 2));
        let rep = Rep::new(net.context()).unwrap();
        rep.bind(&addr).unwrap();
        for asker in &askers {
            assert_eq!(rep.recv_timeout(LONG).unwrap().first(), "kept");
            rep.send("reply").unwrap();
            assert_eq!(recv(asker).first(), "reply");
        }
    }

    fn req_05_a_request_waits_for_whichever_peer_comes_first(net) {
        let req = Req::new(net.context()).unwrap();
        let addrs = [net.nobody(), net.nobody(), net.nobody()];
        addrs.iter().for_each(|addr| req.connect(addr).unwrap());
        req.send("whoever").unwrap();
        let rep = Rep::new(net.context()).unwrap();
        rep.bind(&addrs[1]).unwrap();
        assert_eq!(rep.recv_timeout(LONG).unwrap().first(), "whoever");
    }

    fn req_05_a_kept_request_still_leaves_when_its_socket_closes(net) {
        let addr = net.nobody();
        let req = connected_req(net, &addr);
        req.send("kept").unwrap();
        let closing = std::thread::spawn(move || req.close());
        let (mut raw, _) = Raw::listen_at(net, &addr);
        raw.accept(SocketType::Rep);
        assert_eq!(asked(&mut raw).1, b"kept");
        raw.expect("goodbye", |frame| matches!(frame, Frame::Bye));
        raw.vanish();
        closing.join().unwrap();
    }

    fn req_06_only_the_peer_that_was_asked_is_heard(net) {
        let req = Req::new(net.context()).unwrap();
        let (mut holder, mut other) = (raw_replier(net, &req), raw_replier(net, &req));
        wait_for_peers(&req, 2);
        req.send("to the holder").unwrap();
        let (id, _) = asked(&mut holder);
        reply(&mut other, id, "an imposter");
        wait_until("it is dropped", || req.counters().discarded == 1);
        reply(&mut holder, id, "the holder");
        assert_eq!(recv(&req).first(), "the holder");
    }

    fn req_07_malformed_replies_are_skipped_and_only_data_is_seen(net) {
        let req = Req::new(net.context()).unwrap();
        let mut raw = raw_replier(net, &req);
        req.send("question").unwrap();
        let (id, _) = asked(&mut raw);
        raw.send(&[Frame::Part { more: false, body: b"no head" }]);
        raw.send(&[
            Frame::Reply { id, envelope: b"" },
            Frame::Part { more: true, body: b"" },
            Frame::Part { more: false, body: b"data" },
        ]);
        assert_eq!(recv(&req).parts(), ["", "data"]);
        assert_eq!(req.counters().discarded, 1);
    }

    fn req_08_relaxed_a_new_request_takes_the_place_of_the_last(net) {
        let req = Req::builder().relaxed(true).build(net.context()).unwrap();
        let mut raw = raw_replier(net, &req);
        // One that waits for a connection would not be sent at all.
        wait_for_peers(&req, 1);
        req.send("one").unwrap();
        req.send("two").unwrap();
        let [(one, _), (two, _)] = [asked(&mut raw), asked(&mut raw)];
        reply(&mut raw, one, "to one");
        reply(&mut raw, two, "to two");
        assert_eq!(recv(&req).first(), "to two");
        assert_eq!((recv_error(&req), req.counters().discarded), (ErrorKind::State, 1));
    }

    fn req_09_a_reply_with_a_wrong_id_is_dropped(net) {
        let req = Req::new(net.context()).unwrap();
        let mut raw = raw_replier(net, &req);
        req.send("question").unwrap();
        let (id, _) = asked(&mut raw);
        for wrong in [id + 1, id.wrapping_sub(1), u64::MAX] {
            reply(&mut raw, wrong, "wrong");
        }
        reply(&mut raw, id, "right");
        assert_eq!(recv(&req).first(), "right");
        assert_eq!(req.counters().discarded, 3);
    }

    fn req_10_relaxed_after_a_peer_is_lost_the_next_one_is_asked(net) {
        let req = Req::builder().relaxed(true).build(net.context()).unwrap();
        let (mut lost, mut next) = (raw_replier(net, &req), raw_replier(net, &req));
        wait_for_peers(&req, 2);
        req.send("one").unwrap();
        asked(&mut lost);
        lost.vanish();
        wait_for_peers(&req, 1);
        for _ in 0..3 {
            req.send("two").unwrap();
            let (id, body) = asked(&mut next);
            assert_eq!(body, b"two");
            reply(&mut next, id, "from the next");
            assert_eq!(recv(&req).first(), "from the next");
        }
    }

    fn req_11_a_late_reply_is_not_given_to_the_next_request(net) {
        let req = Req::new(net.context()).unwrap();
        let mut raw = raw_replier(net, &req);
        wait_for_peers(&req, 1);
        assert_eq!(req.request("given up", SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        req.send("next").unwrap();
        let [(late, _), (next, _)] = [asked(&mut raw), asked(&mut raw)];
        reply(&mut raw, late, "late");
        reply(&mut raw, next, "in time");
        assert_eq!(recv(&req).first(), "in time");
        assert_eq!(req.counters().discarded, 1);
    }

    fn req_12_a_request_whose_peer_dies_fails_and_the_next_can_be_sent(net) {
        let (req, addr) = bound_req(net);
        for connected in [false, true] {
            let mut raw = if connected {
                raw_replier(net, &req)
            } else {
                Raw::greet(net, &addr, SocketType::Rep)
            };
            wait_for_peers(&req, 1);
            req.send("question").unwrap();
            asked(&mut raw);
            raw.vanish();
            assert_eq!(recv_error(&req), ErrorKind::PeerGone);
        }
        let mut raw = Raw::greet(net, &addr, SocketType::Rep);
        req.send("next").unwrap();
        let (id, _) = asked(&mut raw);
        reply(&mut raw, id, "reply");
        assert_eq!(recv(&req).first(), "reply");
    }
}
