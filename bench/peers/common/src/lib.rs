//! What all drivers have in common: the contract with `cargo xtask bench`.
//!
//! ```text
//! DRIVER ROLE TRANSPORT PORT SIZE COUNT PEERS
//! ```
//!
//! Roles are `lat-server`, `lat-client`, `bw-server`, `bw-client`, `fanout-server` (the publisher),
//! `fanout-client` (all subscribers), `idle-server` and `idle-client`. A server listens at the port
//! of 127.0.0.1, says READY and prints its figures as one JSON object at the end; a client prints
//! its own. A tenth of COUNT comes before, to warm up. Who says GO has the other side's standard
//! input get one byte. Sockets stay open until standard input ends.

use std::fs;
use std::io::{self, Read, Write};
use std::process::exit;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The command line.
#[derive(Debug, Clone)]
pub struct Args {
    /// What to do.
    pub role: String,
    /// How, where a driver knows several ways.
    pub transport: String,
    /// Where the server listens.
    pub port: u16,
    /// Bytes of each message.
    pub size: usize,
    /// Messages, without those that warm up.
    pub count: u64,
    /// Subscribers, or silent peers.
    pub peers: usize,
    /// When the program began.
    pub started: Instant,
}

impl Args {
    /// Reads the command line; ends the program if it makes no sense.
    pub fn read() -> Self {
        let started = Instant::now();
        raise_descriptor_limit();
        parse(started).unwrap_or_else(|| fail("usage: ROLE TRANSPORT PORT SIZE COUNT PEERS"))
    }

    /// The server's address, as ZeroMQ writes it.
    pub fn url(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }

    /// Messages that warm up.
    pub fn warm(&self) -> u64 {
        self.count / 10 + 1
    }

    /// All messages.
    pub fn total(&self) -> u64 {
        self.warm() + self.count
    }
}

fn parse(started: Instant) -> Option<Args> {
    let mut words = std::env::args().skip(1);
    let (role, transport) = (words.next()?, words.next()?);
    let (port, size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (count, peers) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Args { role, transport, port, size, count, peers, started })
}

fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Ends the program with one line.
pub fn fail(why: impl std::fmt::Display) -> ! {
    eprintln!("{why}");
    exit(2)
}

/// The server listens.
pub fn ready() {
    say("READY");
}

/// The other side may go on.
pub fn go() {
    say("GO");
}

/// Waits until the other side says GO.
pub fn wait_go() {
    let _ = io::stdin().read(&mut [0]);
}

/// Waits until nobody needs the sockets any more.
pub fn wait_end() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// What a part of a run used.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    at: Instant,
    cpu: Duration,
    switches: u64,
}

impl Meter {
    /// Begins.
    pub fn begin() -> Self {
        Self { at: Instant::now(), cpu: cpu_time(), switches: context_switches() }
    }

    /// Of two that began, the one that began first.
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if a.at <= b.at { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// The figures of a stream of `count` messages that ends now.
    pub fn stream(&self, count: u64) {
        report(json!({ "count": count }), self);
    }

    /// The figures of `delivered` messages, of `expected`, where those before the clock ran count
    /// for neither rate.
    pub fn fanout(&self, delivered: u64, expected: u64, timed: u64) {
        let fields = json!({ "delivered": delivered, "expected": expected, "count": timed });
        report(fields, self);
    }

    /// The figures of a stream among `peers` silent ones.
    pub fn idle(&self, count: u64, peers: usize, held: Grown, greetings: Duration) {
        let rate = (peers - 1) as f64 / greetings.as_secs_f64();
        let rate = if peers > 1 { json!(rate) } else { Value::Null };
        let memory = held.per_peer(peers);
        let fields = json!({ "count": count, "set_ups_s": rate, "bytes_per_peer": memory });
        report(fields, self);
    }

    /// What a side holds for each silent peer.
    pub fn silent(&self, peers: usize, held: Grown) {
        report(json!({ "bytes_per_peer": held.per_peer(peers) }), self);
    }
}

fn report(mut fields: Value, meter: &Meter) {
    fields["seconds"] = json!(meter.at.elapsed().as_secs_f64());
    fields["cpu_s"] = json!(cpu_time().saturating_sub(meter.cpu).as_secs_f64());
    fields["switches"] = json!(context_switches().saturating_sub(meter.switches));
    say(&fields.to_string());
}

/// Times of round trips.
#[derive(Debug)]
pub struct Times {
    args: Args,
    ns: Vec<u64>,
    done: u64,
    first_reply: Duration,
    meter: Meter,
}

impl Times {
    /// Nothing yet.
    pub fn new(args: &Args) -> Self {
        let (ns, meter) = (Vec::with_capacity(args.count as usize), Meter::begin());
        Self { args: args.clone(), ns, done: 0, first_reply: Duration::ZERO, meter }
    }

    /// A round trip that began then is over.
    pub fn add(&mut self, began: Instant) {
        let ns = began.elapsed().as_nanos() as u64;
        if self.done == 0 {
            self.first_reply = self.args.started.elapsed();
        }
        if self.done >= self.args.warm() {
            self.ns.push(ns);
        }
        self.done += 1;
        if self.done == self.args.warm() {
            self.meter = Meter::begin();
        }
    }

    /// Says what they are.
    pub fn report(mut self) {
        let meter = self.meter;
        self.ns.sort_unstable();
        let at = |quantile: f64| {
            let index = (self.ns.len() as f64 * quantile).ceil() as usize;
            self.ns.get(index.saturating_sub(1)).map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        let fields = json!({
            "count": self.ns.len(),
            "min_us": at(0.0),
            "p50_us": at(0.5),
            "p90_us": at(0.9),
            "p99_us": at(0.99),
            "p99_9_us": at(0.999),
            "max_us": at(1.0),
            "first_reply_us": self.first_reply.as_secs_f64() * 1e6,
        });
        report(fields, &meter);
    }
}

/// Memory before silent peers came.
#[derive(Debug, Clone, Copy)]
pub struct Held(u64);

/// Memory that came with them.
#[derive(Debug, Clone, Copy)]
pub struct Grown(f64);

impl Held {
    /// What this process holds.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Self(kib.unwrap_or(0) << 10)
    }

    /// What came since.
    pub fn grown(self) -> Grown {
        Grown(Self::now().0 as f64 - self.0 as f64)
    }
}

impl Grown {
    fn per_peer(self, peers: usize) -> f64 {
        self.0 / peers.max(1) as f64
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Of all threads, voluntary or not.
fn context_switches() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let statuses = tasks.flatten().map(|task| fs::read_to_string(task.path().join("status")));
    let count = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let counts = |status: String| {
        let lines = status.lines().filter(|line| line.contains("ctxt_switches:"));
        lines.filter_map(count).sum::<u64>()
    };
    statuses.flatten().map(counts).sum()
}
