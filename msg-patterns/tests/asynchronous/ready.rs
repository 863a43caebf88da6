//! Descriptors for foreign event loops, and the poller over them.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use msg_patterns::{Dealer, ErrorKind, Linger, Poller, Pull, Push, Readiness, Receives, Rep, Req};
use msg_patterns::{Sends, Sub};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{LONG, Net};

const ROUNDS: usize = 50;

fn is_ready(readiness: &Readiness, within: Duration) -> bool {
    let fd = readiness.as_fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::try_from(within).unwrap())).unwrap() > 0
}

fn now(readiness: &Readiness) -> bool {
    is_ready(readiness, Duration::ZERO)
}

fn wait_until(mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < LONG, "it never happened"); // Watchdog: see LONG.
        thread::sleep(Duration::from_millis(1));
    }
}

/// A pusher and its puller, connected.
fn pipe(net: &Net, hwm: usize) -> (Push, Pull) {
    let pull = Pull::builder().recv_hwm(hwm).build(&net.context()).unwrap();
    let push = Push::builder().send_hwm(hwm).linger(Linger::No).build(&net.context()).unwrap();
    push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
    wait_until(|| push.peers().iter().all(|peer| peer.up));
    (push, pull)
}

fn a_descriptor_is_readable_exactly_while_messages_wait(net: &Net) {
    let (push, pull) = pipe(net, 1000);
    let readable = pull.readable().unwrap();
    for _ in 0..ROUNDS {
        assert!(!now(&readable));
        for i in 0..3_u8 {
            push.send(&[i]).unwrap();
        }
        assert!(is_ready(&readable, LONG));
        for i in 0..3_u8 {
            // Neither looking nor other calls use it up.
            pull.peers();
            pull.set_recv_hwm(1000).unwrap();
            assert!(is_ready(&readable, LONG));
            let got = match i {
                0 => pull.try_recv(),
                1 => pull.recv_timeout(LONG),
                _ => futures_lite::future::block_on(pull.recv_async()),
            };
            assert_eq!(got.unwrap().first()[..], [i]);
        }
        assert!(!now(&readable), "nothing waits any more");
        assert_eq!(pull.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    pull.clone().close();
    assert!(now(&readable), "the end is something to be told of");
    assert_eq!(pull.try_recv().unwrap_err().kind(), ErrorKind::Terminated);
}

fn a_descriptor_is_readable_exactly_while_there_is_room(net: &Net) {
    let (push, pull) = pipe(net, 2);
    let writable = push.writable().unwrap();
    for _ in 0..ROUNDS {
        assert!(is_ready(&writable, LONG));
        while now(&writable) {
            push.try_send("x").unwrap();
        }
        // Credit may come meanwhile, and then it says so.
        while let Err(refused) = push.try_send("x") {
            assert_eq!(refused.kind(), ErrorKind::WouldBlock);
            pull.recv_timeout(LONG).unwrap();
            assert!(is_ready(&writable, LONG), "room was made");
        }
        wait_until(|| {
            while pull.try_recv().is_ok() {}
            now(&writable)
        });
    }
}

fn a_poller_waits_for_whichever_socket_is_first(net: &Net) {
    let ends = [(); 3].map(|()| pipe(net, 1000));
    let mut poller = Poller::new();
    let keys = ends.each_ref().map(|(_, pull)| poller.add_readable(pull).unwrap());
    assert!(poller.wait(Some(Duration::from_millis(1))).unwrap().is_empty());
    for round in 0..ROUNDS {
        let (push, pull) = &ends[round % 3];
        let push = push.clone();
        let sender = thread::spawn(move || push.send("x").unwrap());
        for _ in 0..2 {
            assert_eq!(poller.wait(Some(LONG)).unwrap(), [keys[round % 3]], "again and again");
        }
        pull.try_recv().unwrap();
        sender.join().unwrap();
        assert!(poller.wait(Some(Duration::ZERO)).unwrap().is_empty());
    }
    let room = poller.add_writable(&ends[0].0).unwrap();
    assert_eq!(poller.wait(Some(LONG)).unwrap(), [room]);
    poller.remove(room);
    assert!(poller.wait(Some(Duration::ZERO)).unwrap().is_empty());
}

fn all_kinds_of_receivers_are_polled(net: &Net) {
    let context = net.context();
    let rep = Rep::new(&context).unwrap();
    let addr = rep.bind(net.any()).unwrap().to_string();
    let (req, dealer) = (Req::new(&context).unwrap(), Dealer::new(&context).unwrap());
    let sub = Sub::new(&context).unwrap();
    req.connect(&addr).unwrap();
    dealer.connect(&addr).unwrap();
    let (asked, answered) = (rep.readable().unwrap(), req.readable().unwrap());
    let (dealt, told) = (dealer.readable().unwrap(), sub.readable().unwrap());
    for _ in 0..ROUNDS {
        req.send("ping").unwrap();
        assert!(is_ready(&asked, LONG));
        let request = rep.try_recv().unwrap();
        assert!(!now(&asked) && !now(&answered));
        rep.send(request).unwrap();
        assert!(is_ready(&answered, LONG));
        assert_eq!(req.try_recv().unwrap().first(), "ping");
        assert!(!now(&answered) && !now(&dealt) && !now(&told));
    }
    sub.close();
    assert!(now(&told));
}

macro_rules! on_all {
    ($($name:ident)*) => {
        mod sim {
            $( #[test] fn $name() { super::$name(&super::Net::sim()); } )*
        }
        mod tcp {
            $( #[test] fn $name() { super::$name(&super::Net::tcp()); } )*
        }
    };
}
on_all!(
    a_descriptor_is_readable_exactly_while_messages_wait
    a_descriptor_is_readable_exactly_while_there_is_room
    a_poller_waits_for_whichever_socket_is_first
    all_kinds_of_receivers_are_polled
);
