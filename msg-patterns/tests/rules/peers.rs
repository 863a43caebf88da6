//! Who may talk to whom, how a greeting fails, and what a peer's name is for.

use std::time::Duration;

use fabric_tcp::{TcpFabric, TcpOptions};
use msg_patterns::{
    Builder, Context, ErrorKind, Fault, MonitorEvent, Pub, Pull, Push, Rep, Req, Socket, Sub,
};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello, VERSION};

use crate::sockets::{Settings, all_pairs, event, events_until, legal_pairs, open, open_with};
use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

const FAST: Option<Duration> = Some(Duration::from_millis(10));

struct Fast;

impl Settings for Fast {
    fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S> {
        builder.reconnect_interval(FAST)
    }
}

fn is_stop(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::ConnectStopped { .. })
}

fn is_type_refusal(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::Refused { fault: Fault::SocketType, .. })
}

rules! {
    fn gen_11_legal_peer_types(net) {
        for (kind, other) in legal_pairs() {
            let server = open(net.context(), other);
            let client = open(net.context(), kind);
            client.connect(&server.bind(net.any()).unwrap().to_string()).unwrap();
            client.wait_up(1);
            server.wait_up(1);
        }
    }

    fn gen_12_illegal_peer_types_refused(net) {
        for (kind, other) in all_pairs().filter(|(a, b)| !a.legal_peer(*b)) {
            let server = open(net.context(), other);
            let client = open_with(net.context(), kind, &Fast);
            let (at_server, at_client) = (server.monitor(), client.monitor());
            client.connect(&server.bind(net.any()).unwrap().to_string()).unwrap();
            let events = events_until(&at_client, "the end of attempts", is_stop);
            assert!(events.iter().any(is_type_refusal), "{kind} to {other}: {events:?}");
            event(&at_server, "a refusal", is_type_refusal);
            wait_until("disconnected", || server.peers().is_empty());
            assert_eq!(server.counters().connects + client.counters().connects, 0);
        }
    }

    fn gen_12_no_message_flows_to_an_illegal_peer(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let mut raw = Raw::connect(net, &addr);
        // It does not wait for the answer to its greeting.
        raw.send(&[
            Frame::Hello(hello(SocketType::Pub)),
            Frame::Part { more: false, body: b"smuggled" },
        ]);
        raw.expect("the refusal", |frame| matches!(frame, Frame::Error { .. }));
        raw.expect_closed();
        let push = Push::new(net.context()).unwrap();
        push.connect(&addr).unwrap();
        push.send("legal").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "legal");
    }

    fn gen_13_error_is_fatal(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        let monitor = push.monitor();
        push.connect(&addr).unwrap();
        push.send("to be dropped").unwrap();
        raw.accept_silently();
        raw.send(&[Frame::Error { code: Fault::SocketType.code(), text: "go away" }]);
        event(&monitor, "the refusal", |event| {
            matches!(event, MonitorEvent::Refused { fault: Fault::SocketType, by_peer: true, .. })
        });
        event(&monitor, "the end of attempts", is_stop);
        // What was queued can never leave: nobody waits for it, and it is counted.
        wait_until("no peer is left", || push.peers().is_empty());
        assert_eq!(push.counters().dropped, 1);
        assert_eq!(push.try_send("nobody").unwrap_err().kind(), ErrorKind::NoPeer);
        std::thread::sleep(NEVER);
        assert!(!raw.has_visitor(), "it came back after an error");
        push.close();
    }

    // rules: GEN-13
    fn versions_without_anything_in_common_are_fatal_too(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        let monitor = push.monitor();
        push.connect(&addr).unwrap();
        raw.accept_silently();
        let newer = Hello {
            version: VERSION + 2,
            version_min: VERSION + 1,
            ..hello(SocketType::Pull)
        };
        raw.send(&[Frame::Hello(newer)]);
        event(&monitor, "the refusal", |event| {
            matches!(event, MonitorEvent::Refused { fault: Fault::Version, by_peer: false, .. })
        });
        event(&monitor, "the end of attempts", is_stop);
        raw.expect("the reason", |frame| {
            matches!(frame, Frame::Error { code, .. } if *code == Fault::Version.code())
        });
    }

    // rules: GEN-13, GEN-14
    fn after_a_fault_that_may_pass_it_connects_again(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        raw.accept(SocketType::Pull);
        raw.send(&[Frame::Error { code: Fault::Limit.code(), text: "too much for now" }]);
        raw.expect_closed();
        raw.accept(SocketType::Pull);
        drop(raw); // It would not say goodbye.
    }

    fn gen_22_identity_limits(net) {
        for wrong in [vec![b'x'; 256], b"\0name".to_vec(), vec![0]] {
            let refused = Push::builder().identity(wrong).build(net.context()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
        }
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        for name in [vec![b'x'; 255], b"a\0b".to_vec(), vec![0xff], Vec::new()] {
            let push = Push::builder().identity(name.clone()).build(net.context()).unwrap();
            push.connect(&addr).unwrap();
            wait_until("its name", || {
                let peers = pull.peers();
                peers.len() == 1 && peers[0].up && peers[0].identity == name
            });
            push.close();
            wait_until("it left", || pull.peers().is_empty());
        }
    }

    fn gen_22_a_peer_with_an_illegal_identity_is_refused(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        for identity in [&[b'x'; 256][..], b"\0name"] {
            let mut raw = Raw::connect(net, &addr);
            raw.send(&[Frame::Hello(Hello { identity, ..hello(SocketType::Push) })]);
            raw.expect("the refusal", |frame| {
                matches!(frame, Frame::Error { code, .. } if *code == Fault::Protocol.code())
            });
            raw.expect_closed();
        }
        assert_eq!(pull.counters().connects, 0);
    }

    fn gen_23_identity_ignored_elsewhere(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let twins = ["one", "two"].map(|text| {
            let push = Push::builder().identity("twin").build(net.context()).unwrap();
            push.connect(&addr).unwrap();
            push.send(text).unwrap();
            push
        });
        let mut got = [(); 2].map(|()| pull.recv_timeout(LONG).unwrap().into_first());
        got.sort();
        assert_eq!(got, ["one", "two"]);
        assert!(twins.iter().all(|push| push.peers()[0].up), "both stay");
    }

    // rules: GEN-23
    fn replies_find_the_asker_among_twins(net) {
        let rep = Rep::new(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let twins = ["one", "two"].map(|text| {
            let req = Req::builder().identity("twin").build(net.context()).unwrap();
            req.connect(&addr).unwrap();
            req.send(text).unwrap();
            (req, text)
        });
        for _ in &twins {
            let question = rep.recv_timeout(LONG).unwrap();
            rep.send(question).unwrap();
        }
        for (req, text) in &twins {
            assert_eq!(req.recv_timeout(LONG).unwrap().first(), text);
        }
    }

    fn gen_25_handshake_memory_bound(net) {
        let sub = Sub::builder()
            .peers_max(3)
            .handshake_timeout(Duration::from_secs(3))
            .build(net.context())
            .unwrap();
        let addr = sub.bind(net.any()).unwrap().to_string();
        let mut silent: Vec<Raw> = (0..3).map(|_| Raw::connect(net, &addr)).collect();
        wait_until("three half-open peers", || sub.peers().len() == 3);
        let mut fourth = Raw::connect(net, &addr);
        fourth.expect_closed();
        assert!(fourth.received().is_empty(), "it was given a place, and then ran out of time");
        assert!(sub.peers().len() <= 3);
        // Half-open connections end by themselves and make room for honest peers.
        silent.iter_mut().for_each(|raw| drop(raw.expect_closed()));
        sub.subscribe("").unwrap();
        let publisher = Pub::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        publisher.connect(&addr).unwrap();
        publisher.wait_matching("news", 1, LONG).unwrap();
    }
}

// rules: GEN-25
#[test]
fn connections_that_never_greet_the_fabric_are_bounded_too() {
    use std::io::Read;
    let options = TcpOptions { pending_handshakes_max: 2, ..TcpOptions::default() };
    let context = Context::new().with_fabric(TcpFabric::new(options));
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind("tcp://127.0.0.1:0").unwrap();
    let at = (addr.host().to_owned(), addr.port().unwrap());
    let connect = || std::net::TcpStream::connect(&at).unwrap();
    let mut silent: Vec<_> = (0..3).map(|_| connect()).collect();
    // The oldest is dropped: its stream ends behind the greeting.
    let mut rest = Vec::new();
    silent[0].set_read_timeout(Some(LONG)).unwrap();
    silent[0].read_to_end(&mut rest).unwrap();
    let push = Push::new(&Net::tcp().another_context()).unwrap();
    push.connect(&addr.to_string()).unwrap();
    push.send("honest").unwrap();
    assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "honest");
    assert_eq!(pull.peers().len(), 1, "half-open connections are no peers");
}
