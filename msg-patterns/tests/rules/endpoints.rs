//! Addresses, limits of a connection, and settings.

use std::time::Duration;

use fabric_tcp::{TcpFabric, TcpOptions};
use msg_patterns::{Context, ErrorKind, Fault, Linger, MonitorEvent, Pull, Push, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::sockets::{KINDS, Plug, event, open};
use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

const MS: Duration = Duration::from_millis(1);

fn is_refusal(fault: Fault) -> impl Fn(&MonitorEvent) -> bool {
    move |event| matches!(event, MonitorEvent::Refused { fault: found, by_peer: false, .. } if *found == fault)
}

fn is_error(fault: Fault) -> impl Fn(&Frame<'_>) -> bool {
    move |frame| matches!(frame, Frame::Error { code, .. } if *code == fault.code())
}

/// A wildcard address of the fabric's scheme.
fn wildcard(net: &Net) -> String {
    format!("{}://*:0", net.any().split_once("://").unwrap().0)
}

rules! {
    fn life_17_unbind_stops_accepting(net) {
        for kind in KINDS {
            let socket = open(net.context(), kind);
            let addr = socket.bind(net.any()).unwrap().to_string();
            let present = open(net.context(), kind.legal_peers()[0]);
            present.connect(&addr).unwrap();
            socket.wait_up(1);
            socket.unbind(&addr).unwrap();
            let late = open(net.context(), kind.legal_peers()[0]);
            let monitor = late.monitor();
            late.connect(&addr).unwrap();
            event(&monitor, "no answer", |e| matches!(e, MonitorEvent::ConnectFailed { .. }));
            assert_eq!(socket.up(), 1, "those that are there stay");
            // The address is free for others.
            open(net.context(), kind).bind(&addr).unwrap();
        }
    }

    fn life_17_sends_with_no_peers_fail(net) {
        let push = Push::new(net.context()).unwrap();
        let addr = push.bind(net.any()).unwrap().to_string();
        let pull = Pull::new(net.context()).unwrap();
        pull.connect(&addr).unwrap();
        push.send("one").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "one");
        push.unbind(&addr).unwrap();
        push.send("the peer stayed").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "the peer stayed");
        pull.close();
        wait_until("it left", || push.peers().is_empty());
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::NoPeer);
        assert_eq!(push.unbind(&addr).unwrap_err().kind(), ErrorKind::Invalid);
    }

    fn life_18_wildcard_needs_last_endpoint(net) {
        for addr in [wildcard(net), net.any().to_owned()] {
            let pull = Pull::new(net.context()).unwrap();
            assert_eq!(pull.last_endpoint(), None);
            let bound = pull.bind(&addr).unwrap();
            assert_eq!(pull.unbind(&addr).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(pull.last_endpoint(), Some(bound.clone()));
            assert_ne!(bound.port(), Some(0));
            pull.unbind(&bound.to_string()).unwrap();
            pull.bind(&bound.to_string()).unwrap();
        }
    }

    fn life_19_addr_in_use_reported(net) {
        for kind in KINDS {
            let first = open(net.context(), kind);
            let addr = first.bind(net.any()).unwrap().to_string();
            for second in [open(net.context(), kind), open(&net.another_context(), kind)] {
                let refused = second.bind(&addr).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::AddrInUse);
                assert!(refused.to_string().contains(&addr), "{refused}");
            }
            assert_eq!(first.bind(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
            first.close();
            open(net.context(), kind).bind(&addr).unwrap();
        }
    }

    fn life_20_bad_endpoint_errors(net) {
        let push = Push::new(net.context()).unwrap();
        for (addr, kind) in [
            ("carrier-pigeon://roof:1", ErrorKind::Unsupported),
            ("no scheme", ErrorKind::Address),
            ("tcp://127.0.0.1:70000", ErrorKind::Address),
            ("tcp://127.0.0.1:x", ErrorKind::Address),
            ("tcp://:5555", ErrorKind::Address),
            ("tcp://127.0.0.1", ErrorKind::Address),
            ("tcp://127.0.0.1:1/path", ErrorKind::Address),
            ("", ErrorKind::Address),
        ] {
            for refused in [push.bind(addr).unwrap_err(), push.connect(addr).unwrap_err()] {
                assert_eq!(refused.kind(), kind, "{addr}: {refused}");
                assert_eq!(refused.to_string().lines().count(), 1);
            }
        }
        for addr in ["tcp://127.0.0.1:0", "tcp://*:5555", "tcp://no.such.host.invalid:1"] {
            assert_eq!(push.connect(addr).unwrap_err().kind(), ErrorKind::Address, "{addr}");
        }
        // No such device, and none of the host's own addresses (TEST-NET-1).
        for addr in ["tcp://nosuchdevice0:5555", "tcp://192.0.2.1:5555"] {
            assert_eq!(push.bind(addr).unwrap_err().kind(), ErrorKind::Address, "{addr}");
        }
        assert!(push.peers().is_empty());
        // It can still be used.
        let pull = Pull::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        push.send("fine").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "fine");
    }

    fn life_21_handshake_timeout(net) {
        assert!(format!("{:?}", Pull::builder()).contains("handshake_timeout: 30s"));
        let pull = Pull::builder().handshake_timeout(50 * MS).build(net.context()).unwrap();
        let monitor = pull.monitor();
        let mut raw = Raw::connect(net, &pull.bind(net.any()).unwrap().to_string());
        event(&monitor, "a refusal", is_refusal(Fault::Handshake));
        raw.expect("the reason", is_error(Fault::Handshake));
        raw.expect_closed();
        wait_until("it is gone", || pull.peers().is_empty());
        // The side that connects has no more patience.
        let (mut raw, addr) = Raw::listen(net);
        pull.connect(&addr).unwrap();
        raw.accept_silently();
        event(&monitor, "a refusal", is_refusal(Fault::Handshake));
        raw.expect_closed();
        event(&monitor, "a retry", |e| matches!(e, MonitorEvent::ConnectRetried { .. }));
    }

    fn life_22_maxmsgsize_disconnects_sender(net) {
        let pull = Pull::builder().message_bytes_max(100).build(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let monitor = pull.monitor();
        let (half, whole) = ([1; 60], [1; 101]);
        let key = [0; 32];
        let too_long: [&[Frame<'_>]; 4] = [
            &[Frame::Part { more: false, body: &whole }],
            &[Frame::Part { more: true, body: &half }, Frame::Part { more: false, body: &half }],
            &[Frame::Fragment { more: false, total: 1 << 60, body: &half }],
            &[Frame::Offer { more: false, id: 1, len: 1 << 40, key }],
        ];
        for frames in too_long {
            let mut raw = Raw::greet(net, &addr, SocketType::Push);
            raw.send(&[Frame::Part { more: false, body: &[0; 100] }]);
            raw.send(frames);
            raw.expect("the reason", is_error(Fault::TooLong));
            raw.expect_closed();
            event(&monitor, "the end of the link", |e| {
                matches!(e, MonitorEvent::Disconnected { .. })
            });
        }
        // An honest peer knows the limit and hands the message back.
        let push = Push::new(net.context()).unwrap();
        push.connect(&addr).unwrap();
        push.wait_up(1);
        assert_eq!(push.send(&whole).unwrap_err().kind(), ErrorKind::TooLong);
        push.send(&[2; 100]).unwrap();
        let is_last = |message: msg_patterns::Message| message.first()[..] == [2; 100];
        while !is_last(pull.recv_timeout(LONG).unwrap()) {}
        assert_eq!((push.up(), push.counters().disconnects), (1, 0));
    }

    fn life_27_options_scope(net) {
        // Settings are a socket's own from the moment it is built.
        let builder = Push::builder().linger(Linger::No).message_bytes_max(10);
        let push = builder.clone().build(net.context()).unwrap();
        let roomy = builder.message_bytes_max(20).build(net.context()).unwrap();
        for socket in [&push, &roomy] {
            socket.connect(&net.nobody()).unwrap();
        }
        assert_eq!(push.try_send(vec![0; 11]).unwrap_err().kind(), ErrorKind::TooLong);
        roomy.try_send(vec![0; 11]).unwrap();
        // High-water marks act at once, on peers that are there already.
        push.set_send_hwm(2).unwrap();
        (0..2).for_each(|_| push.try_send("x").unwrap());
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
        push.set_send_hwm(3).unwrap();
        push.try_send("x").unwrap();
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    // rules: LIFE-27
    fn subscriptions_and_receive_marks_act_on_peers_that_are_there(net) {
        let sub = Sub::builder().recv_hwm(1).build(net.context()).unwrap();
        let mut raw =
            Raw::greet(net, &sub.bind(net.any()).unwrap().to_string(), SocketType::Pub);
        sub.set_recv_hwm(7).unwrap();
        raw.expect("more credit", |frame| matches!(frame, Frame::Credit { messages: 7, .. }));
        sub.subscribe("now").unwrap();
        raw.expect("a topic", |frame| matches!(frame, Frame::Subscribe { topic: b"now", .. }));
        sub.unsubscribe("now").unwrap();
        raw.expect("its end", |frame| matches!(frame, Frame::Cancel { topic: b"now" }));
        drop(raw); // It would not say goodbye.
    }
}

// rules: LIFE-18
#[test]
fn an_ipv6_address_is_unbound_by_its_last_endpoint() {
    let net = Net::tcp();
    let pull = Pull::new(net.context()).unwrap();
    let bound = pull.bind("tcp://[::1]:0").unwrap();
    assert_eq!((bound.host(), pull.last_endpoint()), ("::1", Some(bound.clone())));
    assert_eq!(pull.unbind("tcp://[::1]:0").unwrap_err().kind(), ErrorKind::Invalid);
    let push = Push::new(net.context()).unwrap();
    push.connect(&bound.to_string()).unwrap();
    push.send("six").unwrap();
    assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "six");
    pull.unbind(&bound.to_string()).unwrap();
}

// rules: LIFE-21
#[test]
fn a_connection_that_never_greets_the_fabric_ends_in_time() {
    use std::io::Read;
    let options = TcpOptions { handshake_timeout: 50 * MS, ..TcpOptions::default() };
    let context = Context::new().with_fabric(TcpFabric::new(options));
    let pull = Pull::new(&context).unwrap();
    let monitor = pull.monitor();
    let addr = pull.bind("tcp://127.0.0.1:0").unwrap();
    let mut silent = std::net::TcpStream::connect((addr.host(), addr.port().unwrap())).unwrap();
    event(&monitor, "the end of it", |e| matches!(e, MonitorEvent::AcceptFailed { .. }));
    silent.set_read_timeout(Some(LONG)).unwrap();
    silent.read_to_end(&mut Vec::new()).unwrap();
}

// rules: LIFE-21
#[test]
fn a_greeting_in_time_ends_the_time_limit() {
    let net = Net::sim();
    let pull = Pull::builder().handshake_timeout(50 * MS).build(net.context()).unwrap();
    let addr = pull.bind(net.any()).unwrap().to_string();
    let mut raw = Raw::connect(&net, &addr);
    raw.send(&[Frame::Hello(hello(SocketType::Push))]);
    pull.wait_up(1);
    std::thread::sleep(NEVER);
    assert_eq!(pull.up(), 1);
}
