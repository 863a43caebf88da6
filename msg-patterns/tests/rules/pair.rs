//! PAIR: one peer, and no other.

use std::time::Duration;

use msg_patterns::{ErrorKind, Fault, Message, MonitorEvent, Pair};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::sockets::event;
use crate::support::{LONG, Net, Raw, hello, wait_until};

const FAST: Option<Duration> = Some(Duration::from_millis(5));

fn bound(net: &Net, recv_hwm: usize) -> (Pair, String) {
    let pair = Pair::builder().recv_hwm(recv_hwm).build(net.context()).unwrap();
    let addr = pair.bind(net.any()).unwrap().to_string();
    (pair, addr)
}

fn connected(net: &Net, addr: &str) -> Pair {
    let builder = Pair::builder().send_hwm(1).reconnect_interval(FAST);
    let pair = builder.build(net.context()).unwrap();
    pair.connect(addr).unwrap();
    pair
}

fn is_up(pair: &Pair) -> bool {
    pair.peers().iter().any(|peer| peer.up)
}

fn next(pair: &Pair) -> Message {
    pair.recv_timeout(LONG).unwrap()
}

fn is_refusal(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::Refused { fault: Fault::Occupied, by_peer: true, .. })
}

/// A greeting of a PAIR without any room.
fn full() -> Hello<'static> {
    Hello { credit_messages: 0, ..hello(SocketType::Pair) }
}

rules! {
    fn pair_01_a_second_peer_is_refused_and_told_until_the_first_has_left(net) {
        let (pair, addr) = bound(net, 1000);
        let first = connected(net, &addr);
        wait_until("the first is there", || is_up(&first) && is_up(&pair));
        let second = Pair::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        let monitor = second.monitor();
        second.connect(&addr).unwrap();
        second.send("from the second").unwrap();
        event(&monitor, "a refusal", is_refusal);
        assert!(!is_up(&second));
        pair.send("to the first").unwrap();
        assert_eq!(next(&first).first(), "to the first");
        first.send("from the first").unwrap();
        first.close();
        let got = [(); 2].map(|()| next(&pair).into_first());
        assert_eq!(got, ["from the first", "from the second"]);
        pair.send("to the second").unwrap();
        assert_eq!(next(&second).first(), "to the second");
        assert_eq!(second.counters().dropped, 0);
    }

    fn pair_01_one_that_connects_takes_nobody_else(net) {
        let pair = Pair::new(net.context()).unwrap();
        let addr = pair.bind(net.any()).unwrap().to_string();
        pair.connect(&net.nobody()).unwrap();
        let other = Pair::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        let monitor = other.monitor();
        other.connect(&addr).unwrap();
        event(&monitor, "a refusal", is_refusal);
        assert!(!is_up(&other));
    }

    fn pair_01_of_two_that_are_connected_to_the_second_one_is_refused(net) {
        let [(first, first_addr), (second, second_addr)] = [bound(net, 1000), bound(net, 1000)];
        let monitor = second.monitor();
        let pair = connected(net, &first_addr);
        pair.connect(&second_addr).unwrap();
        event(&monitor, "a refusal", is_refusal);
        pair.send("x").unwrap();
        assert_eq!(next(&first).first(), "x");
        pair.disconnect(&first_addr).unwrap();
        wait_until("the second has its place", || is_up(&second) && is_up(&pair));
        pair.send_timeout("y", LONG).unwrap();
        assert_eq!(next(&second).first(), "y");
    }

    // rules: PAIR-01
    fn what_a_refused_peer_sends_is_not_heard(net) {
        let (pair, addr) = bound(net, 1000);
        let first = connected(net, &addr);
        wait_until("the first is there", || is_up(&pair));
        let mut second = Raw::connect(net, &addr);
        second.send(&[
            Frame::Hello(hello(SocketType::Pair)),
            Frame::Part { more: false, body: b"unheard" },
        ]);
        second.expect_closed();
        first.send("heard").unwrap();
        assert_eq!(next(&pair).first(), "heard");
        assert_eq!(pair.counters().received, 1);
    }

    fn pair_02_without_a_peer_or_room_a_send_waits_and_discards_nothing(net) {
        let (pair, addr) = bound(net, 1000);
        let refused = pair.try_send("kept").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
        let short = Duration::from_millis(20);
        assert_eq!(pair.send_timeout("kept", short).unwrap_err().kind(), ErrorKind::TimedOut);
        let waiting = pair.clone();
        let sender = std::thread::spawn(move || {
            (0..1000_u32).try_for_each(|i| waiting.send(&i.to_le_bytes()))
        });
        let other = Pair::builder().recv_hwm(2).build(net.context()).unwrap();
        other.connect(&addr).unwrap();
        for i in 0..1000_u32 {
            assert_eq!(next(&other).first()[..], i.to_le_bytes());
        }
        sender.join().unwrap().unwrap();
        assert_eq!(pair.counters().dropped, 0);
    }

    fn pair_02_a_send_without_room_gives_the_message_back(net) {
        let (stuck, addr) = bound(net, 1);
        let pair = connected(net, &addr);
        wait_until("it is there", || is_up(&pair));
        assert_eq!((0..9).take_while(|i| pair.try_send(&[*i]).is_ok()).count(), 2);
        let refused = pair.try_send("x").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::WouldBlock, &"x".into()));
        assert_eq!([next(&stuck).first()[0], next(&stuck).first()[0]], [0, 1]);
    }

    // rules: PAIR-03, LIFE-15
    fn pair_03_the_queue_of_the_side_that_connects_outlives_its_connection(net) {
        let (mut raw, addr) = Raw::listen(net);
        let pair = Pair::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        pair.connect(&addr).unwrap();
        pair.send(&[0]).unwrap();
        raw.accept_silently();
        raw.send(&[Frame::Hello(full())]);
        wait_until("it is there", || is_up(&pair));
        (1..5).for_each(|i| pair.send(&[i]).unwrap());
        raw.vanish();
        raw.accept(SocketType::Pair);
        for i in 0..5 {
            let bytes = raw.expect("a message", |frame| matches!(frame, Frame::Part { .. }));
            assert_eq!(Frame::decode(&bytes).unwrap().0, Frame::Part { more: false, body: &[i] });
        }
        assert_eq!(pair.counters().dropped, 0);
        drop(raw); // It would not say goodbye.
    }

    // rules: PAIR-03, LIFE-16
    fn pair_03_the_queues_of_an_accepted_peer_go_with_it_and_are_counted(net) {
        let (pair, addr) = bound(net, 1000);
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_until("it is there", || is_up(&pair));
        (0..5).for_each(|i| pair.send(&[i]).unwrap());
        raw.send(&[Frame::Part { more: false, body: b"unread" }]);
        wait_until("it came", || pair.counters().received == 1);
        raw.vanish();
        wait_until("it is gone", || pair.peers().is_empty());
        assert_eq!(pair.counters().dropped, 6);
        let other = connected(net, &addr);
        pair.send("new").unwrap();
        assert_eq!(next(&other).first(), "new");
    }

    // rules: PAIR-03
    fn every_message_of_a_pair_is_accounted_for_when_it_closes(net) {
        let (pair, addr) = bound(net, 1000);
        let other = Pair::new(net.context()).unwrap();
        other.connect(&addr).unwrap();
        (0..100).for_each(|i| other.send(&[i]).unwrap());
        other.close();
        (0..40).for_each(|i| assert_eq!(next(&pair).first()[..], [i]));
        wait_until("all came", || pair.counters().received == 100);
        let kept = pair.clone();
        pair.close();
        assert_eq!((kept.counters().delivered, kept.counters().dropped), (40, 60));
    }
}
