//! PUSH and PULL: who gets what, and what becomes of it when somebody leaves.

use msg_patterns::{Context, ErrorKind, Message, Pull, Push};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, Net, Raw, wait_until};

/// A puller bound at a free port that lets each pusher send `recv_hwm` messages ahead.
fn bound_pull(net: &Net, recv_hwm: usize) -> (Pull, String) {
    let pull = Pull::builder().recv_hwm(recv_hwm).build(net.context()).unwrap();
    let addr = pull.bind(net.any()).unwrap().to_string();
    (pull, addr)
}

fn bound_push(net: &Net) -> (Push, String) {
    let push = Push::new(net.context()).unwrap();
    let addr = push.bind(net.any()).unwrap().to_string();
    (push, addr)
}

fn connected_pull(net: &Net, addr: &str) -> Pull {
    let pull = Pull::new(net.context()).unwrap();
    pull.connect(addr).unwrap();
    pull
}

fn connected_push(net: &Net, addr: &str) -> Push {
    let push = Push::new(net.context()).unwrap();
    push.connect(addr).unwrap();
    push
}

fn wait_for_peers(push: &Push, count: usize) {
    wait_until("peers are there", || push.peers().iter().filter(|peer| peer.up).count() == count);
}

fn next(pull: &Pull) -> Message {
    pull.recv_timeout(LONG).unwrap()
}

fn next_byte(pull: &Pull) -> u8 {
    next(pull).first()[0]
}

/// Pushes until nobody has room; gives how many messages were taken.
fn fill(push: &Push) -> u8 {
    let mut count = 0;
    while push.try_send(&[count]).is_ok() {
        count += 1;
    }
    count
}

struct Absent;

/// Calls that a socket lacks: a method of its own would win over these and not compile below.
trait Lacks {
    fn send(&self) -> Absent {
        Absent
    }
    fn try_send(&self) -> Absent {
        Absent
    }
    fn send_timeout(&self) -> Absent {
        Absent
    }
    fn recv(&self) -> Absent {
        Absent
    }
    fn try_recv(&self) -> Absent {
        Absent
    }
    fn recv_timeout(&self) -> Absent {
        Absent
    }
}

impl Lacks for Push {}
impl Lacks for Pull {}

#[test]
fn pipe_01_push_only_sends_and_pull_only_receives() {
    let context = Context::new();
    let push = Push::new(&context).unwrap();
    let [Absent, Absent, Absent] = [push.recv(), push.try_recv(), push.recv_timeout()];
    let pull = Pull::new(&context).unwrap();
    let [Absent, Absent, Absent] = [pull.send(), pull.try_send(), pull.send_timeout()];
}

rules! {
    fn pipe_02_push_round_robin(net) {
        let push = Push::new(net.context()).unwrap();
        let pulls: Vec<Pull> = (0..5)
            .map(|_| {
                let (pull, addr) = bound_pull(net, 1000);
                push.connect(&addr).unwrap();
                pull
            })
            .collect();
        for i in 0..5_u8 {
            push.send(&[i]).unwrap();
        }
        let mut got: Vec<u8> = pulls.iter().map(next_byte).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3, 4]);
    }

    fn pipe_03_a_full_peer_is_passed_by(net) {
        let push = Push::builder().send_hwm(1).build(net.context()).unwrap();
        let [(stuck, stuck_addr), (busy, busy_addr)] = [bound_pull(net, 1), bound_pull(net, 1)];
        push.connect(&stuck_addr).unwrap();
        push.connect(&busy_addr).unwrap();
        wait_for_peers(&push, 2);
        // Each is granted one message, and one more waits for it.
        assert_eq!(fill(&push), 4);
        next_byte(&busy);
        next_byte(&busy);
        for i in 100..120 {
            push.send(&[i]).unwrap();
            assert_eq!(next_byte(&busy), i);
        }
        assert_eq!(stuck.counters().received, 1);
        assert_eq!([next_byte(&stuck), next_byte(&stuck)], [0, 2]);
    }

    fn pipe_04_push_blocks_without_peer(net) {
        let (push, addr) = bound_push(net);
        let refused = push.try_send("kept").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
        let waiting = push.clone();
        let sender = std::thread::spawn(move || waiting.send("sent when somebody came"));
        let pull = connected_pull(net, &addr);
        assert_eq!(next(&pull).first(), "sent when somebody came");
        sender.join().unwrap().unwrap();
    }

    fn pipe_04_push_blocks_without_room(net) {
        let push = Push::builder().send_hwm(1).build(net.context()).unwrap();
        let (pull, addr) = bound_pull(net, 1);
        push.connect(&addr).unwrap();
        wait_for_peers(&push, 1);
        assert_eq!(fill(&push), 2);
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
        let refused = push.send_timeout("x", std::time::Duration::from_millis(20)).unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::TimedOut, &"x".into()));
        let waiting = push.clone();
        let sender = std::thread::spawn(move || waiting.send(&[2]));
        assert_eq!([next_byte(&pull), next_byte(&pull), next_byte(&pull)], [0, 1, 2]);
        sender.join().unwrap().unwrap();
    }

    fn pipe_04_a_refused_send_takes_no_turn(net) {
        let push = Push::builder().send_hwm(1).build(net.context()).unwrap();
        let [(a, a_addr), (b, b_addr)] = [bound_pull(net, 1), bound_pull(net, 1)];
        push.connect(&a_addr).unwrap();
        push.connect(&b_addr).unwrap();
        wait_for_peers(&push, 2);
        assert_eq!(fill(&push), 4);
        let got = [&a, &b, &a, &b].map(next_byte);
        assert_eq!(got, [0, 1, 2, 3]);
        push.send("the turn of a").unwrap();
        assert_eq!(next(&a).first(), "the turn of a");
    }

    fn pipe_05_push_accepts_nothing_without_peer(net) {
        let (push, addr) = bound_push(net);
        push.try_send("refused").unwrap_err();
        push.send_timeout("refused", std::time::Duration::from_millis(20)).unwrap_err();
        assert_eq!(push.counters().accepted, 0);
        let pull = connected_pull(net, &addr);
        push.send("taken").unwrap();
        assert_eq!(next(&pull).first(), "taken");
    }

    fn pipe_06_push_never_discards(net) {
        let push = Push::builder().send_hwm(2).build(net.context()).unwrap();
        let (pull, addr) = bound_pull(net, 2);
        push.connect(&addr).unwrap();
        let sending = push.clone();
        let sender = std::thread::spawn(move || {
            (0..1000_u32).try_for_each(|i| sending.send(&i.to_le_bytes()))
        });
        for i in 0..1000_u32 {
            assert_eq!(next(&pull).first()[..], i.to_le_bytes());
        }
        sender.join().unwrap().unwrap();
        assert_eq!(push.counters().dropped, 0);
    }

    fn pipe_07_a_connecting_push_queues_before_its_link_is_up(net) {
        let addr = net.nobody();
        let push = Push::builder().send_hwm(5).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        assert_eq!(fill(&push), 5);
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        assert_eq!([(); 5].map(|()| next_byte(&pull)), [0, 1, 2, 3, 4]);
    }

    fn pipe_08_the_queue_of_an_accepted_pull_goes_with_it(net) {
        let (push, addr) = bound_push(net);
        let leaves = Pull::builder().recv_hwm(1).build(net.context()).unwrap();
        leaves.connect(&addr).unwrap();
        for i in 0..10_u8 {
            push.send(&[i]).unwrap();
        }
        wait_until("one message is there", || leaves.counters().received == 1);
        drop(leaves);
        wait_until("its peer is gone", || push.peers().is_empty());
        assert_eq!(push.counters().dropped, 9);
        let stays = connected_pull(net, &addr);
        push.send("next").unwrap();
        assert_eq!(next(&stays).first(), "next");
    }

    fn pipe_09_pull_serves_its_peers_evenly(net) {
        let (pull, addr) = bound_pull(net, 1000);
        let pushes: Vec<Push> = (0..5_u8)
            .map(|i| {
                let push = connected_push(net, &addr);
                // The first one has far more to say than the others.
                let count = if i == 0 { 100 } else { 4 };
                (0..count).for_each(|_| push.send(&[i]).unwrap());
                push
            })
            .collect();
        wait_until("all is there", || pull.counters().received == 116);
        for _ in 0..4 {
            let mut round = [(); 5].map(|()| next_byte(&pull));
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        drop(pushes);
    }

    fn pipe_10_what_a_vanished_push_sent_and_nobody_read_goes_with_it(net) {
        let (pull, addr) = bound_pull(net, 1000);
        let mut vanishing = Raw::greet(net, &addr, SocketType::Push);
        for _ in 0..3 {
            vanishing.send(&[Frame::Part { more: false, body: b"unread" }]);
        }
        wait_until("it is there", || pull.counters().received == 3);
        assert_eq!(next(&pull).first(), "unread");
        vanishing.vanish();
        wait_until("its peer is gone", || pull.peers().is_empty());
        assert_eq!(pull.counters().dropped, 2);
        connected_push(net, &addr).send("next").unwrap();
        assert_eq!(next(&pull).first(), "next");
    }

    fn pipe_11_half_a_message_of_a_lost_pusher_is_never_seen(net) {
        let (pull, addr) = bound_pull(net, 1000);
        let mut vanishing = Raw::greet(net, &addr, SocketType::Push);
        vanishing.send(&[
            Frame::Part { more: true, body: b"first" },
            Frame::Fragment { more: true, total: 16 << 20, body: &[b'x'; 60_000] },
        ]);
        vanishing.vanish();
        wait_until("its peer is gone", || pull.counters().disconnects == 1);
        let push = connected_push(net, &addr);
        push.send(Message::from_parts(["whole", "message"])).unwrap();
        assert_eq!(next(&pull).parts(), ["whole", "message"]);
        assert_eq!(pull.counters().received, 1);
    }

    fn pipe_11_a_message_cut_off_by_a_lost_puller_is_not_continued(net) {
        let (mut vanishing, addr) = Raw::listen(net);
        let push = connected_push(net, &addr);
        vanishing.accept(SocketType::Pull);
        let part = vec![b'x'; 16 << 20];
        push.send(Message::from_parts([part.clone(), part])).unwrap();
        let begun = |frame: &Frame<'_>| matches!(frame, Frame::Fragment { .. });
        vanishing.expect("the beginning", begun);
        vanishing.vanish();
        vanishing.accept(SocketType::Pull);
        assert_eq!(push.counters().dropped, 1);
        push.send("next").unwrap();
        let data = |frame: &Frame<'_>| {
            matches!(frame, Frame::Part { .. } | Frame::Fragment { .. } | Frame::Continue { .. })
        };
        let bytes = vanishing.expect("the next message", data);
        let next = Frame::decode(&bytes).unwrap().0;
        assert_eq!(next, Frame::Part { more: false, body: b"next" });
        vanishing.vanish();
    }

    fn pipe_12_all_parts_go_to_the_same_peer(net) {
        let push = Push::new(net.context()).unwrap();
        let [(a, a_addr), (b, b_addr)] = [bound_pull(net, 1000), bound_pull(net, 1000)];
        push.connect(&a_addr).unwrap();
        push.connect(&b_addr).unwrap();
        for i in 0..100_u8 {
            push.send(Message::from_parts([[i]; 3].map(|part| part.to_vec()))).unwrap();
        }
        for pull in [&a, &b].into_iter().cycle().take(100) {
            let message = next(pull);
            let [first, second, third] = message.parts() else { panic!("{message:?}") };
            assert!(first == second && second == third, "{message:?}");
        }
    }

    fn pipe_13_a_new_pull_joins_the_rotation(net) {
        let (push, addr) = bound_push(net);
        let first = connected_pull(net, &addr);
        push.send(&[0]).unwrap();
        push.send(&[1]).unwrap();
        assert_eq!([next_byte(&first), next_byte(&first)], [0, 1]);
        let second = connected_pull(net, &addr);
        wait_for_peers(&push, 2);
        for i in 2..6 {
            push.send(&[i]).unwrap();
        }
        let mut got = [&first, &first, &second, &second].map(next_byte);
        got.sort_unstable();
        assert_eq!(got, [2, 3, 4, 5]);
    }

    fn pipe_14_what_a_puller_answers_is_not_seen(net) {
        let (push, addr) = bound_push(net);
        let mut answering = Raw::greet(net, &addr, SocketType::Pull);
        answering.send(&[Frame::Part { more: false, body: b"an answer" }]);
        wait_until("the answer is dropped", || push.counters().discarded == 1);
        push.send("on").unwrap();
        let bytes = answering.expect("a message", |frame| matches!(frame, Frame::Part { .. }));
        assert_eq!(Frame::decode(&bytes).unwrap().0, Frame::Part { more: false, body: b"on" });
        assert_eq!(push.counters().delivered, 0);
    }
}
