//! Whole sockets over TCP, both ends in this thread.

use std::time::{Duration, Instant};

use fabric_tcp::TcpFabric;
use msg_patterns::{Bytes, Context, Pub, Pull, Push, Rep, Req, Sub};

use crate::measured;
use crate::stepped::{Clock, SteppedFabric};

const ANYWHERE: &str = "tcp://127.0.0.1:0";
const WATCHDOG: Duration = Duration::from_secs(120);
const SIZE_BYTES: usize = 64;
/// Messages at a time: fewer than the credit that is granted at first.
const BATCH: u64 = 400;
/// Messages at a time to many, so few that no subscriber is short of credit while the background
/// thread has not heard its grant.
const BATCH_TO_MANY: u64 = 80;
const TURNS: u64 = 20;
/// Turns before it counts, until all memory is there.
const WARM: u64 = 3;

/// Which calls count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sending,
    Receiving,
    Both,
}

/// A call that finds nothing to receive: one turn of the engine.
pub(crate) fn turn() -> u64 {
    let net = Net::new();
    let (_push, pull) = net.pipe();
    for _ in 0..TURNS {
        measured(|| pull.try_recv().expect_err("nothing was sent"));
    }
    TURNS
}

/// A 64-byte message handed to PUSH.
pub(crate) fn push() -> u64 {
    pipeline(Part::Sending)
}

/// A 64-byte message received by PULL.
pub(crate) fn pull() -> u64 {
    pipeline(Part::Receiving)
}

/// A 64-byte message from PUSH to PULL.
pub(crate) fn stream() -> u64 {
    pipeline(Part::Both)
}

/// The same, many at a time.
pub(crate) fn stream_many() -> u64 {
    let net = Net::new();
    let (push, pull) = net.pipe();
    let body = body();
    let mut messages = Vec::with_capacity(BATCH as usize);
    for turn in 0..WARM + TURNS {
        counted(turn >= WARM, || {
            push.send_many((0..BATCH).map(|_| body.clone())).expect("sent");
            net.clock.step();
            push.send(body.clone()).expect("sent");
            let mut left = BATCH as usize + 1;
            while left > 0 {
                left -= pull.recv_many_timeout(&mut messages, left, WATCHDOG).expect("messages");
                messages.clear();
            }
        });
    }
    TURNS * (BATCH + 1)
}

/// A 64-byte message published to one subscriber.
pub(crate) fn publish() -> u64 {
    fan_out(1, BATCH, Part::Sending)
}

/// A 64-byte message received by SUB.
pub(crate) fn deliver() -> u64 {
    fan_out(1, BATCH, Part::Receiving)
}

/// A 64-byte message published to 64 subscribers, for each of them.
pub(crate) fn publish_64() -> u64 {
    fan_out(64, BATCH_TO_MANY, Part::Sending)
}

/// A request and its reply, both ends.
pub(crate) fn round_trip() -> u64 {
    let net = Net::new();
    let rep = Rep::new(&net.context).expect("a socket");
    let addr = rep.bind(ANYWHERE).expect("a port").to_string();
    let req = Req::new(&net.context).expect("a socket");
    req.connect(&addr).expect("a peer");
    let body = body();
    for turn in 0..WARM + TURNS {
        counted(turn >= WARM, || {
            req.send(body.clone()).expect("sent");
            let request = rep.recv_timeout(WATCHDOG).expect("a request");
            rep.send(request).expect("answered");
            req.recv_timeout(WATCHDOG).expect("a reply");
        });
        net.clock.step();
    }
    TURNS
}

fn pipeline(part: Part) -> u64 {
    let net = Net::new();
    let (push, pull) = net.pipe();
    let body = body();
    for turn in 0..WARM + TURNS {
        counted(turn >= WARM && part != Part::Receiving, || {
            (0..BATCH).for_each(|_| push.send(body.clone()).expect("sent"));
            // A call that does not gather lets the batch leave.
            net.clock.step();
            push.send(body.clone()).expect("sent");
        });
        counted(turn >= WARM && part != Part::Sending, || {
            (0..=BATCH).for_each(|_| drop(pull.recv_timeout(WATCHDOG).expect("a message")));
        });
    }
    TURNS * (BATCH + 1)
}

fn fan_out(subscribers: u64, batch: u64, part: Part) -> u64 {
    let net = Net::new();
    let publisher = Pub::new(&net.context).expect("a socket");
    let addr = publisher.bind(ANYWHERE).expect("a port").to_string();
    let subs: Vec<Sub> = (0..subscribers).map(|_| net.subscriber(&addr)).collect();
    publisher.wait_matching("", subs.len(), WATCHDOG).expect("subscribers");
    let body = body();
    for turn in 0..WARM + TURNS {
        counted(turn >= WARM && part != Part::Receiving, || {
            (0..batch).for_each(|_| publisher.send(body.clone()).expect("sent"));
            net.clock.step();
            publisher.send(body.clone()).expect("sent");
        });
        for sub in &subs {
            counted(turn >= WARM && part != Part::Sending, || {
                (0..=batch).for_each(|_| drop(sub.recv_timeout(WATCHDOG).expect("a message")));
            });
        }
    }
    TURNS * (batch + 1) * subscribers
}

fn counted<T>(counts: bool, run: impl FnOnce() -> T) -> T {
    if counts { measured(run) } else { run() }
}

fn body() -> Bytes {
    Bytes::from(vec![7; SIZE_BYTES])
}

struct Net {
    context: Context,
    clock: Clock,
}

impl Net {
    fn new() -> Self {
        let clock = Clock::default();
        let tcp = TcpFabric::default();
        let fabric = SteppedFabric { tcp, clock: clock.clone(), start: Instant::now() };
        Self { context: Context::new().with_fabric(fabric), clock }
    }

    /// A pair between which one message has passed.
    fn pipe(&self) -> (Push, Pull) {
        let pull = Pull::new(&self.context).expect("a socket");
        let addr = pull.bind(ANYWHERE).expect("a port").to_string();
        let push = Push::new(&self.context).expect("a socket");
        push.connect(&addr).expect("a peer");
        push.send("first").expect("sent");
        pull.recv_timeout(WATCHDOG).expect("a message");
        self.clock.step();
        (push, pull)
    }

    fn subscriber(&self, addr: &str) -> Sub {
        let sub = Sub::new(&self.context).expect("a socket");
        sub.connect(addr).expect("a peer");
        sub.subscribe("").expect("subscribed");
        sub
    }
}
