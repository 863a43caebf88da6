//! REQ: requests that are sent again, replaced, or under way at once.

use std::sync::Arc;
use std::time::Duration;

use msg_patterns::{ErrorKind, Rep, Req, Request};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, Raw, wait_until};

/// The id of the next request that reaches a raw replier.
fn asked(raw: &mut Raw) -> u64 {
    let head = raw.expect("a request", |frame| matches!(frame, Frame::Request { .. }));
    match Frame::decode(&head).unwrap().0 {
        Frame::Request { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

fn reply(raw: &mut Raw, id: u64, body: &str) {
    let part = Frame::Part { more: false, body: body.as_bytes() };
    raw.send(&[Frame::Reply { id, envelope: b"" }, part]);
}

fn wait_for_peers(req: &Req, count: usize) {
    wait_until("peers are there", || req.peers().iter().filter(|peer| peer.up).count() == count);
}

rules! {
    fn req_n1_a_request_is_sent_again_when_its_peer_dies(net) {
        let req = Req::builder().retry(true).build(net.context()).unwrap();
        let addr = req.bind(net.any()).unwrap().to_string();
        let mut dies = Raw::greet(net, &addr, SocketType::Rep);
        wait_for_peers(&req, 1);
        let mut lives = Raw::greet(net, &addr, SocketType::Rep);
        req.send("question").unwrap();
        asked(&mut dies);
        dies.vanish();
        let id = asked(&mut lives);
        reply(&mut lives, id, "reply");
        assert_eq!(req.recv_timeout(LONG).unwrap().first(), "reply");
        assert_eq!(req.counters().redelivered, 1);
    }

    fn req_n1_a_request_sent_again_passes_a_dead_peer_by(net) {
        let req = Req::builder().retry(true).build(net.context()).unwrap();
        let ((mut dies, a), (mut lives, b)) = (Raw::listen(net), Raw::listen(net));
        req.connect(&a).unwrap();
        req.connect(&b).unwrap();
        dies.accept(SocketType::Rep);
        lives.accept(SocketType::Rep);
        wait_for_peers(&req, 2);
        // Nobody answers there any more, though the connection is asked for again and again.
        for _ in 0..3 {
            req.send("question").unwrap();
            if dies.is_connected() {
                asked(&mut dies);
                dies.vanish();
            }
            let id = asked(&mut lives);
            reply(&mut lives, id, "reply");
            assert_eq!(req.recv_timeout(LONG).unwrap().first(), "reply");
        }
    }

    fn req_n1_a_request_is_sent_again_when_no_reply_comes(net) {
        let after = Some(Duration::from_millis(30));
        let req = Req::builder().resend_after(after).build(net.context()).unwrap();
        let addr = req.bind(net.any()).unwrap().to_string();
        let mut silent = Raw::greet(net, &addr, SocketType::Rep);
        wait_for_peers(&req, 1);
        req.send("question").unwrap();
        let id = asked(&mut silent);
        assert_eq!(asked(&mut silent), id);
        let mut other = Raw::greet(net, &addr, SocketType::Rep);
        // A reply that takes longer than the next attempt is too late.
        wait_until("a reply is in time", || {
            asked(&mut other);
            reply(&mut other, id, "reply");
            req.recv_timeout(Duration::from_millis(20)).is_ok()
        });
    }

    fn req_n2_a_new_request_ends_the_wait_for_the_last_one(net) {
        let req = Arc::new(Req::builder().relaxed(true).build(net.context()).unwrap());
        let (mut raw, addr) = Raw::listen(net);
        req.connect(&addr).unwrap();
        raw.accept(SocketType::Rep);
        req.send("first").unwrap();
        let receiving = req.clone();
        let waiter = std::thread::spawn(move || receiving.recv_timeout(LONG).unwrap_err().kind());
        // Each takes the place of the one before; none is answered while somebody waits.
        wait_until("the wait is over", || {
            req.send("next").unwrap();
            waiter.is_finished()
        });
        assert_eq!(waiter.join().unwrap(), ErrorKind::State);
        req.send("last").unwrap();
        let last = |frame: &Frame<'_>| matches!(frame, Frame::Part { body: b"last", .. });
        let mut id = asked(&mut raw);
        while !last(&Frame::decode(&raw.expect("a part", |_| true)).unwrap().0) {
            id = asked(&mut raw);
        }
        reply(&mut raw, id, "reply");
        assert_eq!(req.recv_timeout(LONG).unwrap().first(), "reply");
    }

    fn req_n3_many_requests_are_under_way_at_once_each_with_its_own_reply(net) {
        let rep = Rep::new(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let req = Req::new(net.context()).unwrap();
        req.connect(&addr).unwrap();
        let askers: Vec<Req> = (0..100).map(|_| req.clone()).collect();
        for (i, asker) in askers.iter().enumerate() {
            asker.send(i.to_string()).unwrap();
        }
        let asked: Vec<Request> = askers.iter().map(|_| rep.next_request(LONG).unwrap()).collect();
        for request in asked.into_iter().rev() {
            let text = request.message().first().clone();
            request.reply(text).unwrap();
        }
        for (i, asker) in askers.iter().enumerate() {
            assert_eq!(asker.recv_timeout(LONG).unwrap().first(), &i.to_string());
        }
    }
}
