//! Closing sockets and ending contexts.

use std::time::{Duration, Instant};

use msg_patterns::{Context, Error, ErrorKind, Linger, Pub, Pull, Push, Rep, Req, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::sockets::{KINDS, Plug, open};
use crate::support::{LONG, NEVER, Raw, wait_until};

const SOON: Duration = Duration::from_millis(50);

/// A pusher with `count` messages for an address where nobody listens.
fn pusher_to_nobody(context: &Context, linger: Linger, addr: &str, count: u8) -> Push {
    let push = Push::builder().linger(linger).reconnect_interval(Some(SOON / 5));
    let push = push.build(context).unwrap();
    push.connect(addr).unwrap();
    (0..count).for_each(|i| push.send(&[i]).unwrap());
    push
}

fn kind_of<T: std::fmt::Debug>(result: Result<T, impl Into<Error>>) -> ErrorKind {
    let error: Error = result.unwrap_err().into();
    error.kind()
}

rules! {
    fn life_01_linger_minus_one_flushes(net) {
        let (context, addr) = (net.another_context(), net.nobody());
        let push = pusher_to_nobody(&context, Linger::Forever, &addr, 10);
        let ending = std::thread::spawn(move || {
            push.close();
            context.terminate();
        });
        std::thread::sleep(NEVER);
        assert!(!ending.is_finished(), "it did not wait for its messages to leave");
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        for i in 0..10 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
        }
        ending.join().unwrap();
    }

    // rules: LIFE-01
    fn every_close_of_a_socket_waits_until_it_is_closed(net) {
        let addr = net.nobody();
        let push = pusher_to_nobody(net.context(), Linger::Forever, &addr, 1);
        let closings = [push.clone(), push].map(|push| std::thread::spawn(|| push.close()));
        std::thread::sleep(NEVER);
        assert!(!closings.iter().any(|closing| closing.is_finished()));
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        pull.recv_timeout(LONG).unwrap();
        closings.into_iter().for_each(|closing| closing.join().unwrap());
    }

    fn life_02_linger_zero_discards(net) {
        let (context, addr) = (net.another_context(), net.nobody());
        let push = pusher_to_nobody(&context, Linger::No, &addr, 10);
        let handle = push.clone();
        push.close();
        assert_eq!(handle.counters().dropped, 10);
        drop(handle);
        context.terminate();
    }

    fn life_03_linger_bounded(net) {
        let addr = net.nobody();
        let push = pusher_to_nobody(net.context(), Linger::For(SOON), &addr, 10);
        let (handle, start) = (push.clone(), Instant::now());
        push.close();
        assert!(start.elapsed() >= SOON, "it did not wait");
        assert_eq!(handle.counters().dropped, 10);
        // What leaves within the time is not lost.
        let push = pusher_to_nobody(net.context(), Linger::For(LONG), &addr, 10);
        let handle = push.clone();
        let closing = std::thread::spawn(move || push.close());
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        for i in 0..10 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
        }
        closing.join().unwrap();
        assert_eq!(handle.counters().dropped, 0);
    }

    fn life_04_close_drops_unread(net) {
        let push = Push::new(net.context()).unwrap();
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        push.connect(&addr).unwrap();
        (0..5).for_each(|_| push.send("unread").unwrap());
        wait_until("they arrived", || pull.counters().received == 5);
        pull.close();
        wait_until("it is gone", || push.counters().disconnects == 1);
        let next = Pull::new(net.context()).unwrap();
        next.bind(&addr).unwrap();
        push.send("new").unwrap();
        assert_eq!(next.recv_timeout(LONG).unwrap().first(), "new");
    }

    fn life_05_disconnect_flushes_out(net) {
        let addr = net.nobody();
        let push = pusher_to_nobody(net.context(), Linger::Forever, &addr, 5);
        push.disconnect(&addr).unwrap();
        assert_eq!(kind_of(push.try_send("more")), ErrorKind::NoPeer);
        assert_eq!(kind_of(push.disconnect(&addr)), ErrorKind::Invalid);
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        for i in 0..5 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
        }
        wait_until("nothing is left of it", || push.peers().is_empty());
        assert_eq!(push.counters().dropped, 0);
    }

    fn life_05_disconnect_keeps_to_linger(net) {
        for linger in [Linger::No, Linger::For(SOON)] {
            let addr = net.nobody();
            let push = pusher_to_nobody(net.context(), linger, &addr, 5);
            push.disconnect(&addr).unwrap();
            wait_until("given up", || push.peers().is_empty());
            assert_eq!(push.counters().dropped, 5);
        }
    }

    fn life_05_disconnect_drops_in(net) {
        let publishers = [(); 2].map(|()| Pub::new(net.context()).unwrap());
        let addrs =
            publishers.each_ref().map(|each| each.bind(net.any()).unwrap().to_string());
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        addrs.iter().for_each(|addr| sub.connect(addr).unwrap());
        publishers.iter().for_each(|each| each.wait_matching("", 1, LONG).unwrap());
        (0..5).for_each(|_| publishers[0].send("from the left one").unwrap());
        wait_until("they arrived", || sub.counters().received == 5);
        sub.disconnect(&addrs[0]).unwrap();
        publishers[1].send("from the other").unwrap();
        assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "from the other");
        wait_until("it left", || sub.peers().len() == 1);
    }

    // rules: LIFE-05
    fn what_a_peer_says_while_it_is_being_left_is_not_heard(net) {
        let is_bye = |frame: &Frame<'_>| matches!(frame, Frame::Bye);
        let (mut raw, addr) = Raw::listen(net);
        let sub = Sub::new(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.connect(&addr).unwrap();
        raw.accept(SocketType::Pub);
        sub.wait_up(1);
        sub.disconnect(&addr).unwrap();
        raw.expect("goodbye", is_bye);
        raw.send(&[Frame::Part { more: false, body: b"too late" }]);
        wait_until("it arrived", || sub.counters().received == 1);
        assert_eq!(kind_of(sub.try_recv()), ErrorKind::WouldBlock);
        drop(raw);

        let (mut raw, addr) = Raw::listen(net);
        let publisher = Pub::new(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        raw.accept(SocketType::Sub);
        publisher.wait_up(1);
        publisher.disconnect(&addr).unwrap();
        raw.expect("goodbye", is_bye);
        raw.send(&[
            Frame::Subscribe { history: false, topic: b"" },
            Frame::Part { more: false, body: b"marker" },
        ]);
        wait_until("it arrived", || publisher.counters().received == 1);
        assert_eq!(publisher.topics(), 0);
        drop(raw);
        wait_until("it left", || publisher.peers().is_empty());
        publisher.send("nobody").unwrap();
    }

    // rules: LIFE-05
    fn a_peer_being_left_is_no_trouble(net) {
        // Each pair is busy while one side leaves the other.
        let (rep, req) = (Rep::new(net.context()).unwrap(), Req::new(net.context()).unwrap());
        let addr = rep.bind(net.any()).unwrap().to_string();
        req.connect(&addr).unwrap();
        req.send("question").unwrap();
        rep.recv_timeout(LONG).unwrap();
        req.disconnect(&addr).unwrap();
        assert_eq!(kind_of(req.recv_timeout(LONG)), ErrorKind::PeerGone);

        let push = Push::builder().acknowledge(true).build(net.context()).unwrap();
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        push.connect(&addr).unwrap();
        (0..100_u8).for_each(|i| push.send(&[i]).unwrap());
        pull.recv_timeout(LONG).unwrap();
        push.disconnect(&addr).unwrap();
        // Everything that was not acknowledged goes to the next peer.
        let next = Pull::new(net.context()).unwrap();
        push.connect(&next.bind(net.any()).unwrap().to_string()).unwrap();
        let mut last = next.recv_timeout(LONG).unwrap();
        while last.first()[..] != [99] {
            last = next.recv_timeout(LONG).unwrap();
        }
        next.ack().unwrap();
        push.close();

        let publisher = Pub::new(net.context()).unwrap();
        let sub = Sub::new(net.context()).unwrap();
        let addr = sub.bind(net.any()).unwrap().to_string();
        publisher.connect(&addr).unwrap();
        sub.subscribe("a").unwrap();
        publisher.wait_matching("a", 1, LONG).unwrap();
        publisher.disconnect(&addr).unwrap();
        sub.subscribe("b").unwrap();
        wait_until("it left", || publisher.peers().is_empty());
        assert_eq!(publisher.topics(), 0);
        publisher.send("b").unwrap();
    }

    fn life_06_blocked_calls_end_with_eterm(net) {
        let context = net.another_context();
        let (sub, rep) = (Sub::new(&context).unwrap(), Rep::new(&context).unwrap());
        let (pull, push) = (Pull::new(&context).unwrap(), Push::new(&context).unwrap());
        let req = Req::builder().linger(Linger::No).build(&context).unwrap();
        let publisher = Pub::new(&context).unwrap();
        // Some of them have a fabric to sleep in, some have nothing at all.
        sub.bind(net.any()).unwrap();
        push.bind(net.any()).unwrap();
        req.connect(&net.nobody()).unwrap();
        req.send("unanswered").unwrap();
        let second = pull.clone();
        let calls: [Box<dyn FnOnce() -> ErrorKind + Send>; 8] = [
            Box::new(move || kind_of(sub.recv())),
            Box::new(move || kind_of(rep.recv())),
            Box::new(move || kind_of(second.recv())),
            Box::new(move || kind_of(pull.recv_timeout(LONG))),
            Box::new(move || kind_of(push.send("nobody"))),
            Box::new(move || kind_of(req.recv())),
            Box::new(move || kind_of(publisher.wait_matching("", 1, LONG))),
            Box::new({
                let rep = Rep::new(&context).unwrap();
                move || kind_of(rep.next_request(LONG))
            }),
        ];
        let calls = calls.map(std::thread::spawn);
        std::thread::sleep(SOON);
        assert!(calls.iter().all(|call| !call.is_finished()));
        context.shutdown();
        for call in calls {
            assert_eq!(call.join().unwrap(), ErrorKind::Terminated);
        }
    }

    fn life_06_later_calls_end_with_eterm(net) {
        let context = net.another_context();
        let sockets = KINDS.map(|kind| open(&context, kind));
        let addrs = sockets.each_ref().map(|each| each.bind(net.any()).unwrap().to_string());
        context.shutdown();
        for (socket, addr) in sockets.into_iter().zip(&addrs) {
            for result in [
                socket.bind(net.any()).map(drop),
                socket.connect(addr),
                socket.unbind(addr),
                socket.disconnect(addr),
            ] {
                assert_eq!(kind_of(result), ErrorKind::Terminated);
            }
            socket.close();
        }
    }

    // rules: LIFE-06
    fn later_calls_of_each_pattern_end_with_eterm(net) {
        let context = net.another_context();
        let (sub, pull) = (Sub::new(&context).unwrap(), Pull::new(&context).unwrap());
        let (push, publisher) = (Push::new(&context).unwrap(), Pub::new(&context).unwrap());
        context.shutdown();
        assert_eq!(kind_of(sub.subscribe("")), ErrorKind::Terminated);
        assert_eq!(kind_of(sub.unsubscribe("")), ErrorKind::Terminated);
        assert_eq!(kind_of(sub.try_recv()), ErrorKind::Terminated);
        assert_eq!(kind_of(pull.recv()), ErrorKind::Terminated);
        assert_eq!(kind_of(push.try_send("")), ErrorKind::Terminated);
        assert_eq!(kind_of(publisher.send("")), ErrorKind::Terminated);
        assert_eq!(kind_of(pull.set_recv_hwm(1)), ErrorKind::Terminated);
    }

    fn life_07_term_waits_for_sockets(net) {
        let context = net.another_context();
        let sockets = KINDS.map(|kind| open(&context, kind));
        let ending = std::thread::spawn(move || context.terminate());
        for socket in sockets {
            std::thread::sleep(NEVER / 5);
            assert!(!ending.is_finished(), "a socket is still open");
            socket.close();
        }
        ending.join().unwrap();
    }

    // rules: LIFE-07
    fn a_closed_socket_does_not_hold_its_context(net) {
        let context = net.another_context();
        let push = Push::new(&context).unwrap();
        let rep = Rep::new(&context).unwrap();
        let (push_handle, rep_handle) = (push.clone(), rep.clone());
        push.close();
        rep.close();
        context.terminate();
        assert_eq!(kind_of(push_handle.send("")), ErrorKind::Terminated);
        assert_eq!(kind_of(rep_handle.recv()), ErrorKind::Terminated);
    }

    // rules: LIFE-01, LIFE-07
    fn what_was_accepted_leaves_although_the_context_was_shut_down(net) {
        let (context, addr) = (net.another_context(), net.nobody());
        let push = pusher_to_nobody(&context, Linger::Forever, &addr, 10);
        context.shutdown();
        let closing = std::thread::spawn(move || push.close());
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        for i in 0..10 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
        }
        closing.join().unwrap();
        context.terminate();
    }
}

#[test]
fn life_08_sockets_after_shutdown_fail() {
    let context = Context::new();
    context.shutdown();
    assert_eq!(kind_of(Push::new(&context)), ErrorKind::Terminated);
    assert_eq!(kind_of(Sub::new(&context.clone())), ErrorKind::Terminated);
}

#[test]
fn life_09_socket_limit_emfile() {
    let context = Context::new();
    let sockets: Vec<Push> = (0..1023).map(|_| Push::new(&context).unwrap()).collect();
    assert_eq!(kind_of(Push::new(&context)), ErrorKind::Limit);
    drop(sockets);
    let context = Context::with_sockets_max(2);
    let (first, second) = (Push::new(&context).unwrap(), Pull::new(&context).unwrap());
    assert_eq!(kind_of(Sub::new(&context)), ErrorKind::Limit);
    let handle = first.clone();
    first.close();
    let third = Sub::new(&context).unwrap();
    drop((handle, second, third));
}
