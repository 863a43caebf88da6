//! Where the reference is known to do otherwise than it says.

use std::time::Duration;

use msg_patterns::{ErrorKind, Linger, Pull, Push, Rep, Req};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, NEVER, Net, Raw, wait_until};

/// How often an address is left and taken again.
const ROUNDS: usize = 30;

fn connected_push(net: &Net, identity: &'static str, addr: &str) -> Push {
    let soon = Some(Duration::from_millis(5));
    let builder = Push::builder().identity(identity).reconnect_interval(soon);
    let push = builder.build(net.context()).unwrap();
    push.connect(addr).unwrap();
    push
}

fn bound_pull(net: &Net, addr: &str) -> (Pull, String) {
    let pull = Pull::new(net.context()).unwrap();
    let addr = pull.bind(addr).unwrap().to_string();
    (pull, addr)
}

rules! {
    fn dev_04_no_other_peer_answers_for_a_dead_one(net) {
        let req = Req::new(net.context()).unwrap();
        let [mut holder, mut other] = [(); 2].map(|()| {
            let (mut raw, addr) = Raw::listen(net);
            req.connect(&addr).unwrap();
            raw.accept(SocketType::Rep);
            raw
        });
        wait_until("both are there", || req.peers().iter().all(|peer| peer.up));
        req.send("question").unwrap();
        let head = holder.expect("a request", |frame| matches!(frame, Frame::Request { .. }));
        let Frame::Request { id, .. } = Frame::decode(&head).unwrap().0 else { unreachable!() };
        holder.vanish();
        wait_until("the holder is gone", || !req.peers().iter().all(|peer| peer.up));
        let part = Frame::Part { more: false, body: b"an imposter" };
        other.send(&[Frame::Reply { id, envelope: b"" }, part]);
        wait_until("its reply is dropped", || req.counters().discarded == 1);
        assert_eq!(req.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerGone);
        req.send("the next is in order").unwrap();
    }

    fn dev_05_peers_of_the_same_identity_are_all_heard(net) {
        let (pull, addr) = bound_pull(net, net.any());
        let pushes = [(); 2].map(|()| connected_push(net, "same", &addr));
        for (i, push) in (0..).zip(&pushes) {
            (0..10).for_each(|_| push.send(&[i]).unwrap());
        }
        let mut got = [0; 2];
        for _ in 0..20 {
            got[usize::from(pull.recv_timeout(LONG).unwrap().first()[0])] += 1;
        }
        assert_eq!(got, [10, 10]);
    }

    // rules: DEV-05, REP-04
    fn askers_of_the_same_identity_get_their_own_replies(net) {
        let rep = Rep::new(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let reqs = ["a", "b"].map(|text| {
            let req = Req::builder().identity("same").build(net.context()).unwrap();
            req.connect(&addr).unwrap();
            req.send(text).unwrap();
            req
        });
        for _ in &reqs {
            let request = rep.recv_timeout(LONG).unwrap();
            rep.send(request).unwrap();
        }
        for (req, text) in reqs.iter().zip(["a", "b"]) {
            assert_eq!(req.recv_timeout(LONG).unwrap().first(), text);
        }
    }

    fn dev_08_an_address_is_free_when_close_returns(net) {
        let addr = net.nobody();
        let push = connected_push(net, "", &addr);
        for i in 0..ROUNDS {
            let (pull, _) = bound_pull(net, &addr);
            push.send(&i.to_le_bytes()).unwrap();
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], i.to_le_bytes());
            pull.close();
        }
    }

    fn dev_08_an_address_is_free_when_unbind_returns(net) {
        let (mut before, addr) = bound_pull(net, &net.nobody());
        for _ in 0..ROUNDS {
            let push = connected_push(net, "", &addr);
            push.send("to whoever listens now").unwrap();
            before.recv_timeout(LONG).unwrap();
            before.unbind(&addr).unwrap();
            before = bound_pull(net, &addr).0;
        }
    }

    fn dev_11_a_bound_push_without_peers_accepts_nothing(net) {
        let push = Push::new(net.context()).unwrap();
        let addr = push.bind(net.any()).unwrap().to_string();
        for _ in 0..10 {
            assert_eq!(push.try_send("refused").unwrap_err().kind(), ErrorKind::NoPeer);
        }
        assert_eq!(push.counters().accepted, 0);
        let pull = Pull::new(net.context()).unwrap();
        pull.connect(&addr).unwrap();
        assert_eq!(pull.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    fn dev_11_a_connecting_push_without_peers_accepts_exactly_its_mark(net) {
        let push = Push::builder().linger(Linger::No).build(net.context()).unwrap();
        push.connect(&net.nobody()).unwrap();
        for _ in 0..1000 {
            push.try_send("queued").unwrap();
        }
        assert_eq!(push.try_send("refused").unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(push.counters().accepted, 1000);
    }
}
