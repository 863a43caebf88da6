//! Two processes over TCP on loopback: round trips and a stream of 64-byte messages.
//!
//! Prints what each costs: time, processor time, context switches a round trip, messages a post. Run
//! with `cargo bench -p msg-patterns --bench measure`, and behind `--` with `round_trips` or `stream`
//! for one of them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use msg_patterns::{Bytes, Context, Pull, Push, Rep, Req};

const ROUND_TRIPS: usize = 20_000;
const STREAM: usize = 4_000_000;
const SIZE_BYTES: usize = 64;
const WATCHDOG: Duration = Duration::from_secs(120);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|arg| arg == "--peer").map(|at| &args[at + 1..]) {
        Some([kind, addr, ..]) if kind == "rep" => serve(addr),
        Some([_, addr, ..]) => push(addr),
        _ => {
            let wanted = |name: &str| match args.iter().skip(1).find(|arg| !arg.starts_with("--")) {
                Some(only) => only == name,
                None => true,
            };
            if wanted("round_trips") {
                round_trips();
            }
            if wanted("stream") {
                stream();
            }
        }
    }
}

fn round_trips() {
    let req = Req::new(&Context::new()).expect("a socket");
    let addr = req.bind("tcp://127.0.0.1:0").expect("a port").to_string();
    let mut peer = spawn("rep", &addr);
    let body = Bytes::from(vec![7; SIZE_BYTES]);
    for _ in 0..1_000 {
        req.request(body.clone(), WATCHDOG).expect("a reply");
    }
    let (before, start) = (context_switches(), Instant::now());
    let mut times: Vec<Duration> = (0..ROUND_TRIPS)
        .map(|_| {
            let start = Instant::now();
            req.request(body.clone(), WATCHDOG).expect("a reply");
            start.elapsed()
        })
        .collect();
    let (all, switches) = (start.elapsed(), context_switches() - before);
    times.sort_unstable();
    println!(
        "round trip of {SIZE_BYTES} B: p50 {:?}, p99 {:?}; {:.2} context switches of the client each; {:?} in all",
        times[ROUND_TRIPS / 2],
        times[ROUND_TRIPS * 99 / 100],
        switches as f64 / ROUND_TRIPS as f64,
        all,
    );
    req.request("end", WATCHDOG).expect("a reply");
    peer.wait().expect("the peer ends");
}

fn serve(addr: &str) {
    let rep = Rep::new(&Context::new()).expect("a socket");
    rep.connect(addr).expect("a peer");
    loop {
        let request = rep.recv_timeout(WATCHDOG).expect("a request");
        let last = request.first() == "end";
        rep.send(request).expect("a reply sent");
        if last {
            return rep.close();
        }
    }
}

fn stream() {
    let pull = Pull::new(&Context::new()).expect("a socket");
    let addr = pull.bind("tcp://127.0.0.1:0").expect("a port").to_string();
    let mut peer = spawn("push", &addr);
    pull.recv_timeout(WATCHDOG).expect("a message");
    let (before, start) = (processor_time(), Instant::now());
    for _ in 1..STREAM {
        pull.recv_timeout(WATCHDOG).expect("a message");
    }
    let rate = STREAM as f64 / start.elapsed().as_secs_f64();
    println!("stream of {SIZE_BYTES} B: {:.2} million messages a second", rate / 1e6);
    report_processor("receiver", processor_time() - before);
    peer.wait().expect("the peer ends");
}

fn push(addr: &str) {
    let push = Push::new(&Context::new()).expect("a socket");
    push.connect(addr).expect("a peer");
    let body = Bytes::from(vec![7; SIZE_BYTES]);
    push.send(body.clone()).expect("sent");
    let before = processor_time();
    for _ in 1..STREAM {
        push.send(body.clone()).expect("sent");
    }
    report_processor("sender", processor_time() - before);
    let counters = push.counters();
    println!("{:.0} messages a post", counters.sent as f64 / counters.posts as f64);
    push.close();
}

fn spawn(kind: &str, addr: &str) -> Child {
    let exe = std::env::current_exe().expect("this program");
    let args = ["--peer", kind, addr];
    Command::new(exe).args(args).stdin(Stdio::null()).spawn().expect("the peer starts")
}

fn report_processor(who: &str, time: Duration) {
    let each = time.as_secs_f64() / (STREAM as f64 / 1e6);
    println!("{who}: {each:.3} s of processor time for a million messages");
}

/// What all threads of this process took of the processors.
fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc is mounted");
    let times = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum::<u64>())
}

/// Voluntary and involuntary context switches of all threads of this process.
fn context_switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc is mounted");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
        .flat_map(|status| {
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            let counts: Vec<u64> =
                lines.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
            counts
        })
        .sum()
}
