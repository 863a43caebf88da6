//! Signs of life.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use msg_patterns::{Builder, Fault, Linger, MonitorEvent, Pub, Pull, Push, Rep, Req, Socket, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::sockets::{KINDS, Plug, Settings, event, events_until, legal_pairs, open, open_with};
use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

const MS: Duration = Duration::from_millis(1);

/// Heartbeats that drop a silent peer soon.
struct Strict;

impl Settings for Strict {
    fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S> {
        builder
            .heartbeat_interval(20 * MS)
            .heartbeat_timeout(Some(40 * MS))
            .reconnect_interval(Some(10 * MS))
    }
}

/// Heartbeats that a healthy peer on a busy machine keeps up with, but not for a second without.
struct Patient;

impl Settings for Patient {
    fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S> {
        builder
            .heartbeat_interval(50 * MS)
            .heartbeat_timeout(Some(900 * MS))
            .heartbeat_ttl(1000 * MS)
    }
}

fn is_up(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::HandshakeSucceeded { .. })
}

fn is_down(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::Disconnected { .. })
}

fn is_silence(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::Refused { fault: Fault::Silent, by_peer: false, .. })
}

fn is_ping(frame: &[u8]) -> bool {
    matches!(Frame::decode(frame), Ok((Frame::Ping { .. }, _)))
}

/// The time to live that a socket with these settings announces, in its greeting and its pings.
fn announced_tenths(net: &Net, ttl: Duration) -> u16 {
    let pull = Pull::builder().heartbeat_interval(10 * MS).heartbeat_timeout(Some(LONG));
    let pull = pull.heartbeat_ttl(ttl).build(net.context()).unwrap();
    let mut raw = Raw::connect(net, &pull.bind(net.any()).unwrap().to_string());
    raw.send(&[Frame::Hello(hello(SocketType::Push))]);
    let greeting = raw.expect("a greeting", |frame| matches!(frame, Frame::Hello(_)));
    let ping = raw.expect("a ping", |frame| matches!(frame, Frame::Ping { .. }));
    drop(raw); // It would not say goodbye.
    match (Frame::decode(&greeting).unwrap().0, Frame::decode(&ping).unwrap().0) {
        (Frame::Hello(Hello { ttl_tenths, .. }), Frame::Ping { ttl_tenths: again, .. }) => {
            assert_eq!(ttl_tenths, again);
            ttl_tenths
        }
        other => unreachable!("{other:?}"),
    }
}

/// Sends data and answers no ping for a while; says whether the peer stayed. `None` if this thread
/// was too slow to tell.
fn stays_up_on_data_alone(net: &Net, pull: &Pull, addr: &str) -> Option<bool> {
    let mut raw = Raw::greet(net, addr, SocketType::Push);
    let (start, mut last, mut gap_max) = (Instant::now(), Instant::now(), Duration::ZERO);
    let before = pull.counters().disconnects;
    let mut pinged = false;
    while start.elapsed() < 1_200 * MS {
        raw.send(&[Frame::Part { more: false, body: b"alive" }]);
        gap_max = gap_max.max(last.elapsed());
        last = Instant::now();
        pull.recv_timeout(LONG).unwrap();
        pinged |= raw.received().iter().any(|frame| is_ping(frame));
        std::thread::sleep(20 * MS);
    }
    let stayed = pull.counters().disconnects == before;
    assert!(pinged, "nobody asked for a sign of life");
    raw.expect_closed();
    (stayed || gap_max < 200 * MS).then_some(stayed)
}

rules! {
    fn hb_01_ping_answered_with_context(net) {
        for kind in KINDS {
            let socket = open(net.context(), kind);
            let addr = socket.bind(net.any()).unwrap().to_string();
            let mut raw = Raw::greet(net, &addr, kind.legal_peers()[0]);
            for context in [&b""[..], b"x", b"16 octets of it."] {
                raw.send(&[Frame::Ping { ttl_tenths: 0, context }]);
                let pong = raw.expect("a pong", |frame| matches!(frame, Frame::Pong { .. }));
                assert_eq!(Frame::decode(&pong).unwrap().0, Frame::Pong { context });
            }
            drop(raw); // It would not say goodbye.
        }
    }

    fn hb_02_ttl_unit_and_max(net) {
        assert_eq!(announced_tenths(net, 99 * MS), 0);
        assert_eq!(announced_tenths(net, 100 * MS), 1);
        assert_eq!(announced_tenths(net, 299 * MS), 2);
        assert_eq!(announced_tenths(net, 6_553_599 * MS), 65_535);
        assert_eq!(announced_tenths(net, Duration::from_secs(1_000_000)), 65_535);
    }

    fn hb_03_any_traffic_is_life(net) {
        let pull = Pull::builder()
            .heartbeat_interval(50 * MS)
            .heartbeat_timeout(Some(250 * MS))
            .build(net.context())
            .unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let stayed = (0..10).find_map(|_| stays_up_on_data_alone(net, &pull, &addr));
        assert_eq!(stayed, Some(true));
    }

    fn hb_04_silent_peer_dropped(net) {
        for kind in KINDS {
            let (mut raw, addr) = Raw::listen(net);
            let socket = open_with(net.context(), kind, &Strict);
            let monitor = socket.monitor();
            socket.connect(&addr).unwrap();
            raw.accept(kind.legal_peers()[0]);
            let events = events_until(&monitor, "the end of the link", is_down);
            assert!(events.iter().any(is_silence), "{events:?}");
            event(&monitor, "a retry", |e| matches!(e, MonitorEvent::ConnectRetried { .. }));
            raw.accept(kind.legal_peers()[0]);
            event(&monitor, "a new link", is_up);
            drop(raw); // It would not say goodbye.
        }
    }

    fn hb_05_ttl_expiry_drops(net) {
        // It has no heartbeats of its own: the peer asked for this.
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let monitor = pull.monitor();
        let mortal = Hello { ttl_tenths: 1, ..hello(SocketType::Push) };
        let mut raw = Raw::greet_with(net, &addr, mortal);
        event(&monitor, "silence", is_silence);
        raw.expect_closed();
        // A ping announces it as well.
        let mut raw = Raw::greet(net, &addr, SocketType::Push);
        let immortal = Raw::greet(net, &addr, SocketType::Push);
        raw.send(&[Frame::Ping { ttl_tenths: 1, context: b"" }]);
        raw.expect("a pong", |frame| matches!(frame, Frame::Pong { .. }));
        event(&monitor, "silence", is_silence);
        raw.expect_closed();
        // One who asked for nothing may be silent for ever.
        wait_until("the other to be gone", || pull.up() == 1);
        drop(immortal); // It would not say goodbye.
    }

    fn hb_06_busy_link_never_times_out(net) {
        let idle: Vec<_> = legal_pairs()
            .map(|(kind, other)| {
                let server = open_with(net.context(), other, &Patient);
                let client = open_with(net.context(), kind, &Patient);
                client.connect(&server.bind(net.any()).unwrap().to_string()).unwrap();
                (server, client)
            })
            .collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| busy_publishing(net, &over));
            scope.spawn(|| busy_pushing(net, &over));
            scope.spawn(|| busy_asking(net, &over));
            std::thread::sleep(2_300 * MS);
            over.store(true, Ordering::Relaxed);
        });
        for (server, client) in idle {
            healthy(&*server);
            healthy(&*client);
        }
    }

    fn hb_07_oversized_context_tolerated(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let mut raw = Raw::greet(net, &addr, SocketType::Push);
        for len in [17, 255, 30_000] {
            raw.send(&[Frame::Ping { ttl_tenths: 0, context: &vec![b'c'; len] }]);
            let pong = raw.expect("a pong", |frame| matches!(frame, Frame::Pong { .. }));
            assert_eq!(Frame::decode(&pong).unwrap().0, Frame::Pong { context: &[b'c'; 16] });
        }
        raw.send(&[Frame::Part { more: false, body: b"still here" }]);
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "still here");
        drop(raw); // It would not say goodbye.
    }

    fn hb_08_timeout_defaults_to_interval(net) {
        let interval = 200 * MS;
        let start = Instant::now();
        let silent_to = |timeout| {
            let pull = Pull::builder().heartbeat_interval(interval).heartbeat_timeout(timeout);
            let pull = pull.build(net.context()).unwrap();
            let raw = Raw::greet(
                net,
                &pull.bind(net.any()).unwrap().to_string(),
                SocketType::Push,
            );
            (pull, raw)
        };
        let (lenient, kept) = silent_to(Some(LONG));
        let (usual, _raw) = silent_to(None);
        wait_until("dropped", || usual.counters().disconnects == 1);
        // An interval until the ping, and another one for the answer.
        assert!(start.elapsed() >= 2 * interval);
        assert_eq!(lenient.up(), 1);
        drop(kept); // It would not say goodbye.
    }

    fn hb_09_heartbeat_only_when_enabled(net) {
        for kind in KINDS {
            let (mut raw, addr) = Raw::listen(net);
            let socket = open(net.context(), kind);
            socket.connect(&addr).unwrap();
            raw.accept(kind.legal_peers()[0]);
            std::thread::sleep(NEVER);
            assert!(!raw.received().iter().any(|frame| is_ping(frame)), "{kind} pinged");
            assert_eq!(socket.up(), 1);
            drop(raw); // It would not say goodbye.
        }
    }
}

fn healthy(socket: &dyn Plug) {
    let counters = socket.counters();
    assert_eq!((counters.connects, counters.disconnects, counters.refused), (1, 0, 0));
}

fn busy_publishing(net: &Net, over: &AtomicBool) {
    let publisher = Patient.apply(Pub::builder()).build(net.context()).unwrap();
    let sub = Patient.apply(Sub::builder()).build(net.context()).unwrap();
    sub.subscribe("").unwrap();
    sub.connect(&publisher.bind(net.any()).unwrap().to_string()).unwrap();
    publisher.wait_matching("", 1, LONG).unwrap();
    while !over.load(Ordering::Relaxed) {
        (0..100).for_each(|_| publisher.send("news").unwrap());
        (0..100).for_each(|_| drop(sub.recv_timeout(LONG).unwrap()));
        std::thread::sleep(MS);
    }
    healthy(&publisher);
    healthy(&sub);
}

/// With a worker that is always behind, so that the link is full.
fn busy_pushing(net: &Net, over: &AtomicBool) {
    let push = Patient.apply(Push::builder()).send_hwm(10).linger(Linger::No);
    let push = push.build(net.context()).unwrap();
    let pull = Patient.apply(Pull::builder()).recv_hwm(10).build(net.context()).unwrap();
    push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
    while !over.load(Ordering::Relaxed) {
        while push.try_send(vec![0; 10_000]).is_ok() {}
        pull.recv_timeout(LONG).unwrap();
        std::thread::sleep(MS);
    }
    healthy(&push);
    healthy(&pull);
    drop(pull); // It leaves much unread.
}

fn busy_asking(net: &Net, over: &AtomicBool) {
    let rep = Patient.apply(Rep::builder()).build(net.context()).unwrap();
    let req = Patient.apply(Req::builder()).build(net.context()).unwrap();
    req.connect(&rep.bind(net.any()).unwrap().to_string()).unwrap();
    while !over.load(Ordering::Relaxed) {
        req.send("question").unwrap();
        let question = rep.recv_timeout(LONG).unwrap();
        rep.send(question).unwrap();
        req.recv_timeout(LONG).unwrap();
        std::thread::sleep(MS);
    }
    healthy(&req);
    healthy(&rep);
}
