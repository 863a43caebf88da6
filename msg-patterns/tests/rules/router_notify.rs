//! ROUTER: what it is told of peers that come and go.

use msg_patterns::{Dealer, ErrorKind, Message, Notify, Router};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::router::{bound_with, dealer, next, part, text};
use crate::support::{Net, Raw, hello, wait_until};

fn notifying(net: &Net, notify: Notify) -> (Router, String) {
    bound_with(net, Router::builder().notify(notify))
}

rules! {
    fn rout_11_comings_and_goings_are_told_around_the_messages_of_a_peer(net) {
        let both = Notify { on_connect: true, on_disconnect: true };
        let (router, addr) = notifying(net, both);
        let peer = dealer(net.context(), &addr, "A");
        peer.send("bye").unwrap();
        peer.close();
        wait_until("it is gone", || router.counters().disconnects == 1);
        let texts = ["", "hello", "bye", ""];
        assert_eq!([(); 4].map(|()| next(&router)), texts.map(|text| ("A".into(), text.into())));
        // One that nobody chose a name for has the same at both ends.
        let unnamed = Dealer::new(net.context()).unwrap();
        unnamed.connect(&addr).unwrap();
        let (id, empty) = next(&router);
        assert!(empty.is_empty() && router.has_room_for(&id));
        router.send_to(&id, "welcome").unwrap();
        assert_eq!(text(&unnamed).first(), "welcome");
        unnamed.close();
        assert_eq!(next(&router), (id, "".into()));
        let counters = router.counters();
        assert_eq!((counters.received, counters.delivered), (2, 2));
    }

    fn rout_11_only_what_was_asked_for_is_told(net) {
        for (on_connect, on_disconnect) in [(true, false), (false, true), (false, false)] {
            let (router, addr) = notifying(net, Notify { on_connect, on_disconnect });
            dealer(net.context(), &addr, "A").close();
            wait_until("it is gone", || router.counters().disconnects == 1);
            let expected = match (on_connect, on_disconnect) {
                (true, _) => &["", "hello"][..],
                (_, true) => &["hello", ""],
                _ => &["hello"],
            };
            let told: Vec<_> = expected.iter().map(|_| next(&router).1.into_first()).collect();
            assert_eq!(told, expected);
            assert_eq!(router.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }

    fn rout_11_neither_a_failed_greeting_nor_half_a_message_is_told(net) {
        let both = Notify { on_connect: true, on_disconnect: true };
        let (router, addr) = notifying(net, both);
        let mut wrong = Raw::connect(net, &addr);
        wrong.send(&[Frame::Hello(hello(SocketType::Pub))]);
        wrong.expect_closed();
        let named = Hello { identity: b"A", ..hello(SocketType::Dealer) };
        let mut raw = Raw::greet_with(net, &addr, named);
        assert_eq!(next(&router), ("A".into(), "".into()));
        raw.send(&[part(b"whole"), Frame::Part { more: true, body: b"half" }]);
        assert_eq!(next(&router), ("A".into(), "whole".into()));
        raw.vanish();
        assert_eq!(next(&router), ("A".into(), "".into()));
        assert_eq!(router.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    // rules: ROUT-11, ROUT-10
    fn one_that_takes_a_name_over_comes_after_the_other_one_has_gone(net) {
        let both = Notify { on_connect: true, on_disconnect: true };
        let settings = Router::builder().handover(true).notify(both);
        let (router, addr) = bound_with(net, settings);
        let named = Hello { identity: b"A", ..hello(SocketType::Dealer) };
        let mut first = Raw::greet_with(net, &addr, named);
        assert!(next(&router).1.is_empty());
        let mut second = Raw::greet_with(net, &addr, named);
        first.expect_closed();
        second.send(&[part(b"mine")]);
        let told = [(); 3].map(|()| next(&router).1);
        assert_eq!(told, ["", "", "mine"].map(Message::from));
        second.vanish();
        assert!(next(&router).1.is_empty());
        assert_eq!(router.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
