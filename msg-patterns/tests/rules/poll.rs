//! Readiness: what may be done without waiting, and what a descriptor says about it.

use std::time::Duration;

use fabric_core::{Armed, Domain, EpId, Event, Pool};
use msg_patterns::{ErrorKind, Linger, Poller, Pub, Pull, Push, Req, Router, Sub};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sockets::Plug;
use crate::support::{LONG, NEVER, Net, wait_until};

/// Two domains with a connection from the first to the second.
struct Pair {
    from: Box<dyn Domain>,
    ep: EpId,
    to: Box<dyn Domain>,
    pool: Pool,
}

impl Pair {
    fn new(net: &Net) -> Self {
        let (mut from, mut to) = (net.domain(), net.domain());
        let pool = Pool::new(64, 16).unwrap();
        for _ in 0..8 {
            to.post_recv(pool.take().unwrap()).unwrap();
        }
        let listener = to.listen(&net.any().parse().unwrap()).unwrap();
        let ep = from.connect(&listener.addr).unwrap();
        let (mut events, mut accepted) = (Vec::new(), Vec::new());
        wait_until("connected", || {
            from.poll(&mut events, 8);
            to.poll(&mut accepted, 8);
            !events.is_empty() && !accepted.is_empty()
        });
        Self { from, ep, to, pool }
    }

    fn send(&mut self) {
        let mut slot = self.pool.take().unwrap();
        assert!(slot.append(b"message"));
        self.from.post_send(self.ep, slot.into()).unwrap();
        let (from, mut events) = (&mut self.from, Vec::new());
        wait_until("sent", || from.poll(&mut events, 8) > 0);
    }

    /// Takes what is there; says how many messages that was.
    fn receive(&mut self) -> usize {
        let mut events = Vec::new();
        self.to.poll(&mut events, 8);
        let received = events.len();
        for event in events {
            let Event::Received { mut slot, .. } = event else { panic!("{event:?}") };
            slot.set_len(0);
            self.to.post_recv(slot).unwrap();
        }
        received
    }

    fn is_readable(&self, within: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.to.wait_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::try_from(within).unwrap())).unwrap() > 0
    }

    /// Arms until the domain has nothing more to say.
    fn arm_idle(&mut self) {
        wait_until("nothing happens", || {
            let idle = matches!(self.to.arm(), Armed::Idle(_));
            if !idle {
                assert_eq!(self.receive(), 0);
            }
            idle
        });
    }
}

rules! {
    // Sockets have no descriptor to show; the domains below them do. It is a hint: whoever sleeps on
    // it asks again before and after.
    fn life_28_fd_is_edge_hint(net) {
        let mut pair = Pair::new(net);
        pair.arm_idle();
        for _ in 0..100 {
            assert!(!pair.is_readable(Duration::ZERO), "nothing has happened");
            pair.send();
            assert!(pair.is_readable(LONG), "armed, it tells");
            let (pair_now, mut received) = (&mut pair, 0);
            wait_until("received", || {
                received += pair_now.receive();
                received == 1
            });
            // What it said has become stale; armed again it says what holds now.
            pair.arm_idle();
        }
    }

    // rules: LIFE-28
    fn what_came_before_arming_is_not_slept_through(net) {
        let mut pair = Pair::new(net);
        for _ in 0..100 {
            pair.send();
            let mut received = 0;
            while received == 0 {
                let asleep = matches!(pair.to.arm(), Armed::Idle(_));
                assert!(!asleep || pair.is_readable(LONG), "it would sleep for ever");
                received += pair.receive();
            }
        }
    }

    fn life_29_poll_level_semantics(net) {
        let pull = Pull::new(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        for _ in 0..20 {
            assert_eq!(pull.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
            (0..5_u8).for_each(|i| push.send(&[i]).unwrap());
            wait_until("they arrived", || pull.counters().received == pull.counters().delivered + 5);
            for i in 0..5 {
                // Looking at it, or doing something else, uses nothing up.
                pull.peers();
                pull.set_recv_hwm(1000).unwrap();
                let got = match i % 3 {
                    0 => pull.try_recv(),
                    1 => pull.recv_timeout(Duration::ZERO),
                    _ => pull.recv(),
                };
                assert_eq!(got.unwrap().first()[..], [i]);
            }
        }
    }

    // rules: LIFE-29
    fn a_send_waits_exactly_when_try_send_refuses(net) {
        let pull = Pull::builder().recv_hwm(1).build(net.context()).unwrap();
        let push = Push::builder().send_hwm(1).linger(Linger::No).build(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        // Before that it has only its own queue to fill.
        wait_until("up", || push.peers().iter().all(|peer| peer.up));
        push.wait_up(1);
        while push.try_send("x").is_ok() {}
        for _ in 0..5 {
            assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
            let refused = push.send_timeout("x", NEVER / 20).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::TimedOut);
            pull.recv_timeout(LONG).unwrap();
            // Room that was made is seen by either.
            push.send_timeout("x", LONG).unwrap();
            pull.recv_timeout(LONG).unwrap();
            wait_until("room", || push.try_send("x").is_ok());
        }
    }

    // rules: LIFE-29
    fn who_asks_and_who_routes_are_told_of_room_too(net) {
        let req = Req::builder().linger(Linger::No).relaxed(true).build(net.context()).unwrap();
        let router = Router::builder().mandatory(true).build(net.context()).unwrap();
        let mut poller = Poller::new();
        let keys = [poller.add_writable(&req).unwrap(), poller.add_writable(&router).unwrap()];
        assert_eq!(poller.wait(Some(NEVER / 20)).unwrap(), []);
        let addr = router.bind(net.any()).unwrap().to_string();
        req.connect(&net.nobody()).unwrap();
        // A request may wait for its peer.
        assert_eq!(poller.wait(Some(LONG)).unwrap(), keys[..1]);
        req.set_send_hwm(1).unwrap();
        req.try_send("waits").unwrap();
        wait_until("no other may", || poller.wait(Some(Duration::ZERO)).unwrap().is_empty());
        req.connect(&addr).unwrap();
        wait_until("both may", || poller.wait(Some(LONG)).unwrap() == keys);
        req.send("goes").unwrap();
    }

    // rules: LIFE-28, LIFE-29
    fn a_woken_receiver_looks_again(net) {
        let publisher = Pub::new(net.context()).unwrap();
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.connect(&publisher.bind(net.any()).unwrap().to_string()).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let sub = sub.clone();
                std::thread::spawn(move || sub.recv().unwrap().into_first())
            })
            .collect();
        // Each message wakes somebody, and only as many get one as there are messages.
        for i in 0..4_u8 {
            publisher.send(&[i]).unwrap();
            let finished = || receivers.iter().filter(|r| r.is_finished()).count();
            wait_until("one more has received", || finished() == usize::from(i) + 1);
        }
        let mut got: Vec<_> = receivers.into_iter().map(|r| r.join().unwrap()[0]).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
        assert_eq!(sub.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
