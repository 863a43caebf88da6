//! Queues of peers that come and go, and how connecting is tried again.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use msg_patterns::{
    ErrorKind, Fault, Linger, Monitor, MonitorEvent, Pub, Pull, Push, ReconnectStop, Req, Sub,
};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::sockets::{Plug, event, events_until};
use crate::support::{LONG, NEVER, Net, Raw, hello, wait_until};

const MS: Duration = Duration::from_millis(1);
const FAST: Option<Duration> = Some(Duration::from_millis(10));

fn is_retry(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::ConnectRetried { .. })
}

fn is_stop(event: &MonitorEvent) -> bool {
    matches!(event, MonitorEvent::ConnectStopped { .. })
}

/// The waits before the next `count` attempts.
fn intervals(monitor: &Monitor, count: usize) -> Vec<Duration> {
    let next = || match event(monitor, "a retry", is_retry) {
        MonitorEvent::ConnectRetried { interval, .. } => interval,
        other => unreachable!("{other:?}"),
    };
    (0..count).map(|_| next()).collect()
}

/// The greeting of a puller that takes nothing for now.
fn full() -> Hello<'static> {
    Hello { credit_messages: 0, ..hello(SocketType::Pull) }
}

fn is_part(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Part { .. })
}

/// How many of ten messages reach the live one of two peers.
fn of_ten_arrive(net: &Net, immediate: bool) -> usize {
    let pull = Pull::new(net.context()).unwrap();
    let push = Push::builder().immediate(immediate).linger(Linger::No);
    let push = push.build(net.context()).unwrap();
    push.connect(&net.nobody()).unwrap();
    push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
    push.wait_up(1);
    (0..10).for_each(|_| push.send("ten of these").unwrap());
    wait_until("the rest arrived", || {
        let queued: u64 = push.peers().iter().map(|peer| peer.queued).sum();
        pull.counters().received + queued == 10
    });
    pull.counters().received as usize
}

rules! {
    fn life_10_immediate_queues_only_ready(net) {
        assert_eq!(of_ten_arrive(net, true), 10);
        assert_eq!(of_ten_arrive(net, false), 5);
    }

    fn life_11_immediate_blocks_when_down(net) {
        let pull = Pull::new(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let push = Push::builder().immediate(true).reconnect_interval(FAST);
        let push = push.build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        push.send("first").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "first");
        pull.close();
        wait_until("it vanished", || push.up() == 0);
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::NoPeer);
        assert_eq!(push.send_timeout("x", NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
        let blocked = {
            let push = push.clone();
            std::thread::spawn(move || push.send("second").unwrap())
        };
        std::thread::sleep(NEVER / 2);
        assert!(!blocked.is_finished());
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "second");
        blocked.join().unwrap();
    }

    fn life_12_reconnect_ivl_default_100ms(net) {
        let push = Push::new(net.context()).unwrap();
        let monitor = push.monitor();
        let start = Instant::now();
        push.connect(&net.nobody()).unwrap();
        let waits = intervals(&monitor, 4);
        for wait in &waits {
            assert!((100 * MS..200 * MS).contains(wait), "{wait:?}");
        }
        assert!(start.elapsed() >= waits[..3].iter().sum(), "it does not wait that long");
    }

    fn life_12_without_interval_it_never_retries(net) {
        let addr = net.nobody();
        let push = Push::builder().reconnect_interval(None).build(net.context()).unwrap();
        let sub = Sub::builder().reconnect_interval(None).build(net.context()).unwrap();
        let req = Req::builder().reconnect_interval(None).build(net.context()).unwrap();
        let sockets: [&dyn Plug; 3] = [&push, &sub, &req];
        let monitors = sockets.map(Plug::monitor);
        for (socket, monitor) in sockets.iter().zip(&monitors) {
            socket.connect(&addr).unwrap();
            let events = events_until(monitor, "the end of attempts", is_stop);
            assert!(!events.iter().any(is_retry));
            wait_until("nothing is left of it", || socket.peers().is_empty());
            assert!(monitor.next_timeout(NEVER / 2).is_none(), "something goes on");
        }
        // Nobody can be waited for: what is sent now would never leave.
        assert_eq!(push.try_send("x").unwrap_err().kind(), ErrorKind::NoPeer);
        // The owner may still connect again.
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&addr).unwrap();
        push.connect(&addr).unwrap();
        push.send("by hand").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "by hand");
        pull.close();
        let publisher = Pub::new(net.context()).unwrap();
        publisher.bind(&addr).unwrap();
        sub.subscribe("").unwrap();
        sub.connect(&addr).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
    }

    fn life_13_reconnect_backoff_caps(net) {
        let push = Push::builder()
            .reconnect_interval(Some(4 * MS))
            .reconnect_interval_max(20 * MS)
            .build(net.context())
            .unwrap();
        let monitor = push.monitor();
        push.connect(&net.nobody()).unwrap();
        let waits = intervals(&monitor, 10);
        let least = [4, 8, 16, 20, 20, 20, 20, 20, 20, 20].map(|ms| ms * MS);
        for (wait, least) in waits.iter().zip(least) {
            assert!((least..least + 4 * MS).contains(wait), "{waits:?}");
        }
        // Jitter: the capped waits are not all the same.
        assert!(waits[4..].windows(2).any(|two| two[0] != two[1]), "{waits:?}");
    }

    fn life_13_backoff_begins_anew_after_success(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder()
            .reconnect_interval(Some(4 * MS))
            .reconnect_interval_max(1000 * MS)
            .build(net.context())
            .unwrap();
        let monitor = push.monitor();
        push.connect(&addr).unwrap();
        for _ in 0..3 {
            raw.accept_silently();
            raw.vanish();
        }
        raw.accept(SocketType::Pull);
        event(&monitor, "a link", |e| matches!(e, MonitorEvent::HandshakeSucceeded { .. }));
        raw.vanish();
        assert!(intervals(&monitor, 1)[0] < 8 * MS);
    }

    fn life_14_reconnect_stop_conditions(net) {
        let stop = ReconnectStop { on_refused: true, on_handshake_failed: false };
        let push = Push::builder().reconnect_interval(FAST).reconnect_stop(stop);
        let push = push.build(net.context()).unwrap();
        let monitor = push.monitor();
        push.connect(&net.nobody()).unwrap();
        let events = events_until(&monitor, "the end of attempts", is_stop);
        assert!(!events.iter().any(is_retry));
        // Any other end is none.
        let (mut raw, addr) = Raw::listen(net);
        push.connect(&addr).unwrap();
        raw.accept_silently();
        raw.send(&[Frame::Error { code: Fault::Protocol.code(), text: "what?" }]);
        event(&monitor, "a retry", is_retry);
    }

    fn life_14_stop_when_the_greeting_failed(net) {
        let stop = ReconnectStop { on_refused: false, on_handshake_failed: true };
        let push = Push::builder().reconnect_interval(FAST).reconnect_stop(stop);
        let push = push.build(net.context()).unwrap();
        let monitor = push.monitor();
        let (mut raw, addr) = Raw::listen(net);
        push.connect(&addr).unwrap();
        raw.accept_silently();
        raw.send_bytes(b"this is no greeting");
        let events = events_until(&monitor, "the end of attempts", is_stop);
        assert!(!events.iter().any(is_retry));
        push.connect(&net.nobody()).unwrap();
        event(&monitor, "a retry", is_retry);
    }

    fn life_14_stop_after_disconnect(net) {
        let addr = net.nobody();
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        let monitor = push.monitor();
        push.connect(&addr).unwrap();
        event(&monitor, "a retry", is_retry);
        push.disconnect(&addr).unwrap();
        // An attempt may be under way.
        wait_until("its end", || push.peers().is_empty());
        while monitor.try_next().is_some() {}
        assert_eq!(monitor.next_timeout(NEVER), None);
    }

    fn life_15_queue_kept_on_connecting_side(net) {
        let (mut raw, addr) = Raw::listen(net);
        let push = Push::builder().reconnect_interval(FAST).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        raw.accept_silently();
        raw.send(&[Frame::Hello(full())]);
        push.wait_up(1);
        (0..5_u8).for_each(|i| push.send(&[i]).unwrap());
        raw.vanish();
        wait_until("the break", || push.counters().disconnects == 1);
        (5..10_u8).for_each(|i| push.send(&[i]).unwrap());
        raw.accept(SocketType::Pull);
        for i in 0..10 {
            let part = raw.expect("a message", is_part);
            assert_eq!(Frame::decode(&part).unwrap().0, Frame::Part { more: false, body: &[i] });
        }
        assert_eq!(push.counters().dropped, 0);
        drop(raw); // It would not say goodbye.
    }

    fn life_16_queue_destroyed_on_accepting_side(net) {
        let push = Push::new(net.context()).unwrap();
        let addr = push.bind(net.any()).unwrap().to_string();
        let monitor = push.monitor();
        let mut raw = Raw::greet_with(net, &addr, full());
        push.wait_up(1);
        (0..5_u8).for_each(|i| push.send(&[i]).unwrap());
        raw.vanish();
        let gone = event(&monitor, "the break", |e| matches!(e, MonitorEvent::Disconnected { .. }));
        assert!(matches!(gone, MonitorEvent::Disconnected { dropped: 5, .. }), "{gone:?}");
        assert!(push.peers().is_empty());
        assert_eq!(push.counters().dropped, 5);
        let pull = Pull::new(net.context()).unwrap();
        pull.connect(&addr).unwrap();
        push.send("new").unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "new");
    }
}

// rules: LIFE-14
#[test]
fn a_foreign_protocol_at_the_address_is_a_greeting_that_failed() {
    let net = Net::tcp();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = format!("tcp://{}", server.local_addr().unwrap());
    let stop = ReconnectStop { on_refused: false, on_handshake_failed: true };
    let push = Push::builder().reconnect_interval(FAST).reconnect_stop(stop);
    let push = push.build(net.context()).unwrap();
    let monitor = push.monitor();
    push.connect(&addr).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let events = events_until(&monitor, "the end of attempts", is_stop);
    assert!(!events.iter().any(is_retry), "{events:?}");
    let told = format!("{:?}", events.last());
    assert!(told.contains("HTTP"), "{told}");
    stream.set_read_timeout(Some(LONG)).unwrap();
    // Whatever the end of the stream looks like, it ends.
    drop(stream.read_to_end(&mut Vec::new()));
}
