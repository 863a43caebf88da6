//! PUSH with acknowledgement: what a puller did not process goes to another one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use msg_patterns::{ErrorKind, Fault, Monitor, MonitorEvent, Pull, Push};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello, abilities};

use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

fn acknowledged(net: &Net) -> Push {
    Push::builder().acknowledge(true).build(net.context()).unwrap()
}

fn bound_push(net: &Net) -> (Push, String) {
    let push = acknowledged(net);
    let addr = push.bind(net.any()).unwrap().to_string();
    (push, addr)
}

fn connected_pull(net: &Net, addr: &str) -> Pull {
    let pull = Pull::new(net.context()).unwrap();
    pull.connect(addr).unwrap();
    pull
}

/// A greeting that gives, or asks for, acknowledgements.
fn acking(kind: SocketType) -> Hello<'static> {
    Hello { abilities: abilities::ACKS, ..hello(kind) }
}

/// A raw puller to which `push` has sent the bytes from 0 up to `count`.
fn raw_worker(net: &Net, push: &Push, addr: &str, count: u8) -> Raw {
    let mut raw = Raw::greet_with(net, addr, acking(SocketType::Pull));
    wait_until("the worker is there", || push.peers().iter().any(|peer| peer.up));
    for i in 0..count {
        push.send(&[i]).unwrap();
        raw.expect("a message", |frame| *frame == Frame::Part { more: false, body: &[i] });
    }
    raw
}

fn next_byte(pull: &Pull) -> u8 {
    pull.recv_timeout(LONG).unwrap().first()[0]
}

fn expect_refusal(monitor: &Monitor, fault: Fault) {
    let refused = |event: &MonitorEvent| matches!(event, MonitorEvent::Refused { fault: f, .. } if *f == fault);
    while !refused(&monitor.next_timeout(LONG).unwrap()) {}
}

rules! {
    // rules: PIPE-06
    fn what_a_dead_worker_did_not_acknowledge_goes_to_another_and_nothing_else(net) {
        let (push, addr) = bound_push(net);
        let mut dies = raw_worker(net, &push, &addr, 5);
        dies.send(&[Frame::Ack { count: 2 }, Frame::Part { more: false, body: b"after it" }]);
        wait_until("the acknowledgement is there", || push.counters().discarded == 1);
        dies.vanish();
        wait_until("its peer is gone", || push.peers().is_empty());
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::NoPeer);
        let lives = connected_pull(net, &addr);
        push.send(&[9]).unwrap();
        assert_eq!([(); 4].map(|()| next_byte(&lives)), [2, 3, 4, 9]);
        assert_eq!(push.counters().redelivered, 3);
        lives.close();
    }

    fn a_message_counts_as_processed_when_the_next_is_received_or_ack_is_called(net) {
        let (push, addr) = bound_push(net);
        let drops = connected_pull(net, &addr);
        for i in 0..4 {
            push.send(&[i]).unwrap();
        }
        assert_eq!([(); 3].map(|()| next_byte(&drops)), [0, 1, 2]);
        drop(drops);
        let acks = connected_pull(net, &addr);
        assert_eq!([(); 2].map(|()| next_byte(&acks)), [2, 3]);
        acks.ack().unwrap();
        drop(acks);
        let closes = connected_pull(net, &addr);
        push.send(&[4]).unwrap();
        assert_eq!(next_byte(&closes), 4);
        closes.close();
        let last = connected_pull(net, &addr);
        push.send(&[5]).unwrap();
        assert_eq!(next_byte(&last), 5);
        last.close();
    }

    fn messages_that_clones_process_out_of_order_are_all_acknowledged(net) {
        let (push, addr) = bound_push(net);
        let pull = connected_pull(net, &addr);
        let clones = [pull.clone(), pull.clone(), pull.clone()];
        for i in 0..3 {
            push.send(&[i]).unwrap();
            assert_eq!(next_byte(&clones[usize::from(i)]), i);
        }
        clones[2].ack().unwrap();
        clones[1].ack().unwrap();
        clones[0].ack().unwrap();
        drop((pull, clones));
        let next = connected_pull(net, &addr);
        push.send(&[3]).unwrap();
        assert_eq!((next_byte(&next), push.counters().redelivered), (3, 0));
        next.close();
    }

    fn a_message_that_one_clone_has_not_processed_is_not_acknowledged_by_another(net) {
        let (push, addr) = bound_push(net);
        let pull = connected_pull(net, &addr);
        let clone = pull.clone();
        push.send(&[0]).unwrap();
        push.send(&[1]).unwrap();
        assert_eq!([next_byte(&pull), next_byte(&clone)], [0, 1]);
        clone.ack().unwrap();
        drop((pull, clone));
        let next = connected_pull(net, &addr);
        assert_eq!([next_byte(&next), next_byte(&next)], [0, 1]);
        next.close();
    }

    fn close_does_not_return_before_a_message_was_processed(net) {
        let (push, addr) = bound_push(net);
        let pull = connected_pull(net, &addr);
        push.send(&[0]).unwrap();
        assert_eq!(next_byte(&pull), 0);
        let closing = std::thread::spawn(move || push.close());
        std::thread::sleep(NEVER);
        assert!(!closing.is_finished());
        pull.ack().unwrap();
        closing.join().unwrap();
    }

    // rules: PIPE-06, GEN-03
    fn a_close_that_waits_gives_a_dead_workers_messages_to_its_successor(net) {
        let addr = net.nobody();
        let push = acknowledged(net);
        push.connect(&addr).unwrap();
        let dies = Pull::new(net.context()).unwrap();
        dies.bind(&addr).unwrap();
        for i in 0..3 {
            push.send(&[i]).unwrap();
        }
        assert_eq!(next_byte(&dies), 0);
        let monitor = push.monitor();
        let closing = std::thread::spawn(move || push.close());
        drop(dies);
        while !matches!(monitor.next_timeout(LONG).unwrap(), MonitorEvent::Disconnected { .. }) {}
        let successor = Pull::new(net.context()).unwrap();
        successor.bind(&addr).unwrap();
        assert_eq!([(); 3].map(|()| next_byte(&successor)), [0, 1, 2]);
        successor.close();
        closing.join().unwrap();
    }

    // rules: GEN-06
    fn what_is_sent_again_after_a_broken_connection_comes_once(net) {
        let (mut raw, addr) = Raw::listen(net);
        let pull = connected_pull(net, &addr);
        let batch = [&[0_u8], &[1], &[2]].map(|body| Frame::Part { more: false, body });
        for received in [3, 6] {
            raw.accept_silently();
            raw.exchange_hello(acking(SocketType::Push));
            raw.send(&batch);
            wait_until("it is there", || pull.counters().received == received);
            if received == 3 {
                raw.vanish();
            }
        }
        assert_eq!([(); 3].map(|()| next_byte(&pull)), [0, 1, 2]);
        raw.send(&[Frame::Part { more: false, body: &[9] }]);
        assert_eq!((next_byte(&pull), pull.counters().discarded), (9, 3));
        raw.vanish();
    }

    // rules: LIFE-15
    fn what_another_pusher_at_the_same_address_knows_nothing_of_stays_to_be_read(net) {
        let (mut raw, addr) = Raw::listen(net);
        let pull = connected_pull(net, &addr);
        for instance in [1_u8, 2] {
            raw.accept_silently();
            let hello = acking(SocketType::Push);
            raw.exchange_hello(Hello { instance: u64::from(instance), ..hello });
            raw.send(&[Frame::Part { more: false, body: &[instance] }]);
            wait_until("it is there", || pull.counters().received == u64::from(instance));
            if instance == 1 {
                raw.vanish();
            }
        }
        assert_eq!([next_byte(&pull), next_byte(&pull)], [1, 2]);
        raw.vanish();
    }

    // rules: GEN-12
    fn a_puller_that_cannot_acknowledge_is_refused(net) {
        let (push, addr) = bound_push(net);
        let monitor = push.monitor();
        let mut unable = Raw::connect(net, &addr);
        unable.send(&[Frame::Hello(hello(SocketType::Pull))]);
        expect_refusal(&monitor, Fault::Ability);
        unable.expect_closed();
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::NoPeer);
    }

    fn a_false_acknowledgement_is_refused_and_its_messages_go_to_others(net) {
        for false_ack in [3, u64::MAX, 0] {
            let (push, addr) = bound_push(net);
            let monitor = push.monitor();
            let mut lies = raw_worker(net, &push, &addr, 2);
            lies.send(&[Frame::Ack { count: 1 }, Frame::Ack { count: false_ack }]);
            expect_refusal(&monitor, Fault::Protocol);
            lies.expect_closed();
            let honest = connected_pull(net, &addr);
            assert_eq!(next_byte(&honest), 1);
            honest.close();
            push.close();
        }
    }

    fn an_acknowledgement_that_nobody_asked_for_is_refused(net) {
        let push = Push::new(net.context()).unwrap();
        let addr = push.bind(net.any()).unwrap().to_string();
        let monitor = push.monitor();
        let mut raw = raw_worker(net, &push, &addr, 1);
        raw.send(&[Frame::Ack { count: 1 }]);
        expect_refusal(&monitor, Fault::Protocol);
    }

    // rules: NEW-07
    fn what_no_peer_will_ever_take_is_dropped_and_counted(net) {
        for acknowledge in [false, true] {
            let addr = net.nobody();
            let builder = Push::builder().acknowledge(acknowledge);
            let push = builder.build(net.context()).unwrap();
            push.connect(&addr).unwrap();
            push.send("more than ten bytes").unwrap();
            push.send(&[1]).unwrap();
            let pull = Pull::builder().message_bytes_max(10).build(net.context()).unwrap();
            pull.bind(&addr).unwrap();
            assert_eq!(next_byte(&pull), 1);
            assert_eq!((push.counters().dropped, push.counters().disconnects), (1, 0));
            pull.close();
        }
    }

    // rules: PIPE-06
    fn no_message_is_lost_when_a_worker_of_several_dies(net) {
        let (push, addr) = bound_push(net);
        let stop = Arc::new(AtomicBool::new(false));
        let workers = [(); 2].map(|()| {
            let (pull, stop) = (connected_pull(net, &addr), stop.clone());
            std::thread::spawn(move || work(&pull, &stop))
        });
        let dies = connected_pull(net, &addr);
        let dying = std::thread::spawn(move || {
            // The last of them is not processed.
            let mut processed = [(); 20].map(|()| next_byte(&dies)).to_vec();
            processed.pop();
            processed
        });
        wait_until("all are there", || push.peers().iter().filter(|peer| peer.up).count() == 3);
        (0..200).for_each(|i| push.send(&[i]).unwrap());
        let mut processed: BTreeSet<u8> = dying.join().unwrap().into_iter().collect();
        push.close();
        stop.store(true, Ordering::SeqCst);
        for worker in workers {
            processed.extend(worker.join().unwrap());
        }
        assert!(processed.into_iter().eq(0..200));
    }
}

/// Receives until told to stop; gives what was received.
fn work(pull: &Pull, stop: &AtomicBool) -> Vec<u8> {
    let mut got = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let message = pull.recv_timeout(Duration::from_millis(5));
        got.extend(message.iter().map(|message| message.first()[0]));
    }
    got
}
