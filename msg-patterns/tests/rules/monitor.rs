//! What a monitor sees.

use std::time::{Duration, Instant};

use msg_patterns::{Linger, MonitorEvent, Pull, Push};
use msg_proto::types::SocketType;

use crate::sockets::{Plug, event, events_until, legal_pairs, open};
use crate::support::{LONG, Raw};

use MonitorEvent::{
    Accepted, ConnectDelayed, ConnectFailed, ConnectRetried, Connected, Disconnected,
    HandshakeSucceeded, Listening, Stopped, Unbound,
};

fn is_up(event: &MonitorEvent) -> bool {
    matches!(event, HandshakeSucceeded { .. })
}

rules! {
    fn life_23_monitor_happy_sequence(net) {
        for (kind, other) in legal_pairs() {
            let (server, client) = (open(net.context(), other), open(net.context(), kind));
            let (at_server, at_client) = (server.monitor(), client.monitor());
            let bound = server.bind(net.any()).unwrap();
            client.connect(&bound.to_string()).unwrap();
            let events = events_until(&at_server, "a link", is_up);
            let [Listening { addr }, Accepted { peer, provider, .. }, HandshakeSucceeded { peer: up, .. }] =
                &events[..]
            else {
                panic!("{other} as listener: {events:?}")
            };
            assert_eq!((addr, peer, *provider), (&bound, up, bound.scheme()));
            let events = events_until(&at_client, "a link", is_up);
            let [ConnectDelayed { addr }, Connected { peer, addr: at, .. }, HandshakeSucceeded { peer: up, .. }] =
                &events[..]
            else {
                panic!("{kind} as connector: {events:?}")
            };
            assert_eq!((addr, at, peer), (&bound, &bound, up));
        }
    }

    fn life_24_monitor_retry_sequence(net) {
        let interval = Duration::from_millis(10);
        let push = Push::builder().reconnect_interval(Some(interval)).build(net.context()).unwrap();
        let (monitor, start) = (push.monitor(), Instant::now());
        let nobody = net.nobody();
        push.connect(&nobody).unwrap();
        let mut waited = Duration::ZERO;
        for _ in 0..4 {
            let next = || monitor.next_timeout(LONG).unwrap();
            let (begun, failed, retried) = (next(), next(), next());
            assert_eq!(begun, ConnectDelayed { addr: nobody.parse().unwrap() });
            // The waits that were told have passed.
            assert!(start.elapsed() >= waited);
            let ConnectFailed { why, .. } = &failed else { panic!("{failed:?}") };
            assert!(!why.is_empty());
            let ConnectRetried { interval: wait, .. } = retried else { panic!("{retried:?}") };
            assert!((interval..2 * interval).contains(&wait));
            waited += wait;
        }
    }

    fn life_25_monitor_disconnect_and_stop(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let monitor = pull.monitor();
        let mut raw = Raw::greet(net, &addr, SocketType::Push);
        let up = event(&monitor, "a link", is_up);
        raw.vanish();
        let gone = event(&monitor, "its end", |e| matches!(e, Disconnected { .. }));
        match (up, gone) {
            (HandshakeSucceeded { peer, .. }, Disconnected { peer: left, why, .. }) => {
                assert_eq!(peer, left);
                assert!(!why.is_empty());
            }
            other => unreachable!("{other:?}"),
        }
        pull.close();
        // As an iterator it ends by itself.
        let rest: Vec<MonitorEvent> = monitor.collect();
        let addr = addr.parse().unwrap();
        assert_eq!(rest, [Unbound { addr }, Stopped]);
    }

    // rules: LIFE-25
    fn dropping_a_socket_stops_its_monitors(net) {
        let push = Push::builder().linger(Linger::No).build(net.context()).unwrap();
        push.connect(&net.nobody()).unwrap();
        let monitors = [push.monitor(), push.monitor()];
        drop(push);
        for monitor in monitors {
            assert_eq!(monitor.last(), Some(Stopped));
        }
    }

    // rules: LIFE-25
    fn a_monitor_of_a_closed_socket_has_nothing_to_wait_for(net) {
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(net.any()).unwrap();
        let handle = pull.clone();
        pull.close();
        assert_eq!(handle.monitor().collect::<Vec<_>>(), [Stopped]);
    }

    // A monitor here is a channel inside the process: there is no address to refuse. What is left
    // of the rule is that whatever becomes of a monitor, the socket goes on.
    fn life_26_no_monitor_holds_up_its_socket(net) {
        const KEPT: usize = 4096;
        let pull = Pull::new(net.context()).unwrap();
        let (unread, dropped) = (pull.monitor(), pull.monitor());
        drop(dropped);
        for _ in 0..KEPT / 2 + 100 {
            let addr = pull.bind(net.any()).unwrap();
            pull.unbind(&addr.to_string()).unwrap();
        }
        assert_eq!(unread.lost(), 200);
        let kept: Vec<MonitorEvent> = std::iter::from_fn(|| unread.try_next()).collect();
        assert_eq!(kept.len(), KEPT);
        let in_turn = |two: &[MonitorEvent]| matches!(two, [Listening { .. }, Unbound { .. }]);
        assert!(kept.chunks(2).all(in_turn), "those that were kept are the first ones");
        // It hears again of what comes from now on.
        let addr = pull.bind(net.any()).unwrap();
        assert_eq!(unread.try_next(), Some(Listening { addr: addr.clone() }));
        let push = Push::new(net.context()).unwrap();
        push.connect(&addr.to_string()).unwrap();
        push.send("still served").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "still served");
    }

    // rules: LIFE-26
    fn every_monitor_sees_everything_that_comes_after_it(net) {
        let push = Push::new(net.context()).unwrap();
        let first = push.monitor();
        let addr = push.bind(net.any()).unwrap();
        let second = push.monitor();
        push.unbind(&addr.to_string()).unwrap();
        assert_eq!(first.try_next(), Some(Listening { addr: addr.clone() }));
        for monitor in [&first, &second] {
            assert_eq!(monitor.try_next(), Some(Unbound { addr: addr.clone() }));
            assert_eq!(monitor.try_next(), None);
        }
        assert_eq!(push.up(), 0);
    }
}
