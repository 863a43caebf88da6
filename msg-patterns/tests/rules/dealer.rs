//! DEALER: who gets what, who is heard, and how it talks to REP.

use std::time::Duration;

use msg_patterns::{Context, Dealer, ErrorKind, Message, Rep};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

fn bound(net: &Net, recv_hwm: usize) -> (Dealer, String) {
    let dealer = Dealer::builder().recv_hwm(recv_hwm).build(net.context()).unwrap();
    let addr = dealer.bind(net.any()).unwrap().to_string();
    (dealer, addr)
}

fn connected(context: &Context, addr: &str) -> Dealer {
    let dealer = Dealer::builder().send_hwm(1).build(context).unwrap();
    dealer.connect(addr).unwrap();
    dealer
}

fn wait_for_peers(dealer: &Dealer, count: usize) {
    wait_until("peers are there", || dealer.peers().iter().filter(|peer| peer.up).count() == count);
}

fn next(dealer: &Dealer) -> Message {
    dealer.recv_timeout(LONG).unwrap()
}

fn next_byte(dealer: &Dealer) -> u8 {
    next(dealer).first()[0]
}

/// Sends until nobody has room; gives how many messages were taken.
fn fill(dealer: &Dealer) -> u8 {
    let mut count = 0;
    while dealer.try_send(&[count]).is_ok() {
        count += 1;
    }
    count
}

fn bound_rep(net: &Net) -> (Rep, String) {
    let rep = Rep::new(net.context()).unwrap();
    let addr = rep.bind(net.any()).unwrap().to_string();
    (rep, addr)
}

/// Answers one request with what it asked.
fn echo(rep: &Rep) -> Message {
    let request = rep.recv_timeout(LONG).unwrap();
    rep.send(request.clone()).unwrap();
    request
}

fn parts(parts: &[&'static str]) -> Message {
    Message::from_parts(parts.iter().copied())
}

fn part(body: &[u8]) -> Frame<'_> {
    Frame::Part { more: false, body }
}

/// A greeting of a DEALER without any room.
fn full() -> Hello<'static> {
    Hello { credit_messages: 0, ..hello(SocketType::Dealer) }
}

rules! {
    fn deal_01_what_waits_to_leave_does_not_hold_up_what_comes(net) {
        let (stuck, addr) = bound(net, 1);
        let dealer = connected(net.context(), &addr);
        wait_for_peers(&dealer, 1);
        assert_eq!(fill(&dealer), 2);
        for i in 0..100 {
            stuck.send(&[i]).unwrap();
            assert_eq!(next_byte(&dealer), i);
        }
        assert_eq!([next_byte(&stuck), next_byte(&stuck)], [0, 1]);
    }

    fn deal_01_each_peer_has_queues_of_its_own(net) {
        let dealer = Dealer::builder().send_hwm(1).build(net.context()).unwrap();
        let [(a, a_addr), (b, b_addr)] = [bound(net, 1), bound(net, 1)];
        dealer.connect(&a_addr).unwrap();
        dealer.connect(&b_addr).unwrap();
        wait_for_peers(&dealer, 2);
        assert_eq!(fill(&dealer), 4);
        assert_eq!([&a, &b, &a, &b].map(next_byte), [0, 1, 2, 3]);
    }

    fn deal_02_messages_queue_while_connecting_and_wait_for_the_peer_to_return(net) {
        let addr = net.nobody();
        let dealer = Dealer::builder()
            .send_hwm(5)
            .reconnect_interval(Some(Duration::from_millis(5)))
            .build(net.context())
            .unwrap();
        dealer.connect(&addr).unwrap();
        assert_eq!(fill(&dealer), 5);
        let (mut raw, _) = Raw::listen_at(net, &addr);
        raw.accept_silently();
        raw.send(&[Frame::Hello(full())]);
        wait_for_peers(&dealer, 1);
        raw.vanish();
        raw.accept(SocketType::Dealer);
        for i in 0..5 {
            let bytes = raw.expect("a message", |frame| matches!(frame, Frame::Part { .. }));
            assert_eq!(Frame::decode(&bytes).unwrap().0, part(&[i]));
        }
        assert_eq!(dealer.counters().dropped, 0);
        drop(raw); // It would not say goodbye.
    }

    // rules: DEAL-03, DEV-06
    fn deal_03_the_queues_of_an_accepted_peer_go_with_it_and_are_counted(net) {
        let (dealer, addr) = bound(net, 1000);
        let mut raw = Raw::greet_with(net, &addr, full());
        wait_for_peers(&dealer, 1);
        (0..5).for_each(|i| dealer.send(&[i]).unwrap());
        raw.send(&[part(b"unread"), part(b"unread")]);
        wait_until("they are there", || dealer.counters().received == 2);
        raw.vanish();
        wait_until("its peer is gone", || dealer.peers().is_empty());
        assert_eq!(dealer.counters().dropped, 7);
        assert_eq!(dealer.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
        let other = connected(net.context(), &addr);
        dealer.send("next").unwrap();
        assert_eq!(next(&other).first(), "next");
    }

    fn deal_04_peers_get_messages_in_turn_and_full_ones_are_passed_by(net) {
        let dealer = Dealer::builder().send_hwm(1).build(net.context()).unwrap();
        let [(stuck, stuck_addr), (busy, busy_addr)] = [bound(net, 1), bound(net, 1)];
        dealer.connect(&stuck_addr).unwrap();
        dealer.connect(&busy_addr).unwrap();
        wait_for_peers(&dealer, 2);
        assert_eq!(fill(&dealer), 4);
        assert_eq!([next_byte(&busy), next_byte(&busy)], [1, 3]);
        for i in 100..120 {
            dealer.send(&[i]).unwrap();
            assert_eq!(next_byte(&busy), i);
        }
        assert_eq!([next_byte(&stuck), next_byte(&stuck)], [0, 2]);
    }

    fn deal_05_a_send_waits_for_a_peer_with_room_and_discards_nothing(net) {
        let (dealer, addr) = bound(net, 1000);
        let refused = dealer.try_send("kept").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
        let waiting = dealer.clone();
        let sender = std::thread::spawn(move || {
            (0..1000_u32).try_for_each(|i| waiting.send(&i.to_le_bytes()))
        });
        let other = Dealer::builder().recv_hwm(2).build(net.context()).unwrap();
        other.connect(&addr).unwrap();
        for i in 0..1000_u32 {
            assert_eq!(next(&other).first()[..], i.to_le_bytes());
        }
        sender.join().unwrap().unwrap();
        assert_eq!(dealer.counters().dropped, 0);
    }

    fn deal_05_a_send_without_room_gives_the_message_back(net) {
        let (_stuck, addr) = bound(net, 1);
        let dealer = connected(net.context(), &addr);
        wait_for_peers(&dealer, 1);
        assert_eq!(fill(&dealer), 2);
        assert_eq!(dealer.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
        let refused = dealer.send_timeout("x", Duration::from_millis(20)).unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::TimedOut, &"x".into()));
    }

    fn deal_06_peers_are_heard_evenly(net) {
        let (dealer, addr) = bound(net, 1000);
        let others: Vec<Dealer> = (0..5_u8)
            .map(|i| {
                let other = Dealer::new(net.context()).unwrap();
                other.connect(&addr).unwrap();
                // The first one has far more to say than the others.
                let count = if i == 0 { 100 } else { 4 };
                (0..count).for_each(|_| other.send(&[i]).unwrap());
                other
            })
            .collect();
        wait_until("all is there", || dealer.counters().received == 116);
        for _ in 0..4 {
            let mut round = [(); 5].map(|()| next_byte(&dealer));
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        drop(others);
    }

    fn deal_07_messages_pass_as_they_are(net) {
        let (dealer, addr) = bound(net, 1000);
        let other = connected(net.context(), &addr);
        for message in [parts(&["a"]), parts(&[""]), parts(&["", "a"]), parts(&["a", "", "b", ""])] {
            other.send(&message).unwrap();
            assert_eq!(next(&dealer), message);
            dealer.send(&message).unwrap();
            assert_eq!(next(&other), message);
        }
    }

    fn deal_08_a_probe_comes_before_all_others_and_to_routers_only(net) {
        let mut peers = [SocketType::Router, SocketType::Dealer].map(|kind| {
            let (raw, addr) = Raw::listen(net);
            (kind, raw, addr)
        });
        let dealer = Dealer::builder().probe_router(true).build(net.context()).unwrap();
        for (kind, raw, addr) in &mut peers {
            dealer.connect(addr).unwrap();
            dealer.send("first").unwrap();
            raw.accept(*kind);
            let bytes = raw.expect("a message", |frame| matches!(frame, Frame::Part { .. }));
            let body: &[u8] = if *kind == SocketType::Router { b"" } else { b"first" };
            assert_eq!(Frame::decode(&bytes).unwrap().0, part(body));
            dealer.disconnect(addr).unwrap();
            raw.vanish();
        }
    }

    fn deal_09_a_rep_needs_the_delimiter_and_returns_what_stands_before_it(net) {
        let (rep, addr) = bound_rep(net);
        let dealer = connected(net.context(), &addr);
        wait_for_peers(&dealer, 1);
        dealer.send("no delimiter").unwrap();
        for (sent, body) in [
            (parts(&["", "plain"]), parts(&["plain"])),
            (parts(&["one", "two", "", "a", "", "b"]), parts(&["a", "", "b"])),
        ] {
            dealer.send(&sent).unwrap();
            assert_eq!(echo(&rep), body);
            assert_eq!(next(&dealer), sent);
        }
        assert_eq!(rep.counters().discarded, 1);
    }

    fn deal_09_requests_queued_before_the_rep_is_there_reach_it(net) {
        let addr = net.nobody();
        let dealer = Dealer::new(net.context()).unwrap();
        dealer.connect(&addr).unwrap();
        let sent = [parts(&["", "1"]), parts(&["2"]), parts(&["x", "", "3"])];
        sent.iter().for_each(|message| dealer.send(message).unwrap());
        let rep = Rep::new(net.context()).unwrap();
        rep.bind(&addr).unwrap();
        assert_eq!([echo(&rep), echo(&rep)], [parts(&["1"]), parts(&["3"])]);
        assert_eq!([next(&dealer), next(&dealer)], [sent[0].clone(), sent[2].clone()]);
    }

    fn deal_09_replies_may_come_in_any_order(net) {
        let (rep, addr) = bound_rep(net);
        let dealer = Dealer::new(net.context()).unwrap();
        dealer.connect(&addr).unwrap();
        ["a", "b"].into_iter().for_each(|id| dealer.send(parts(&[id, "", id])).unwrap());
        let [first, second] = [(); 2].map(|()| rep.next_request(LONG).unwrap());
        second.reply("2").unwrap();
        first.reply("1").unwrap();
        assert_eq!([next(&dealer), next(&dealer)], [parts(&["b", "", "2"]), parts(&["a", "", "1"])]);
    }

    fn deal_09_an_envelope_that_is_cut_short_and_a_bare_message_of_a_rep_are_discarded(net) {
        let (dealer, addr) = bound(net, 1000);
        let mut raw = Raw::greet(net, &addr, SocketType::Rep);
        raw.send(&[Frame::Reply { id: 0, envelope: &[9, 0, 1] }, part(b"x"), part(b"bare")]);
        raw.send(&[Frame::Reply { id: 0, envelope: &[1, 0, b'a'] }, part(b"good")]);
        assert_eq!(next(&dealer), parts(&["a", "", "good"]));
        assert_eq!(dealer.counters().discarded, 2);
    }

    fn deal_03_every_message_is_accounted_for_when_sockets_close(net) {
        let (dealer, addr) = bound(net, 1000);
        let other = Dealer::new(net.context()).unwrap();
        other.connect(&addr).unwrap();
        (0..100).for_each(|i| other.send(&[i]).unwrap());
        other.close();
        (0..40).for_each(|i| assert_eq!(next_byte(&dealer), i));
        wait_until("all came", || dealer.counters().received == 100);
        let kept = dealer.clone();
        dealer.close();
        let counters = kept.counters();
        assert_eq!((counters.delivered, counters.delivered + counters.dropped), (40, 100));
        assert_eq!(kept.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::Terminated);
    }
}
