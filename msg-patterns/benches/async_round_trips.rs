//! A request and its reply, by tasks of tokio's runtime of one thread, beside blocking calls.
//!
//! Two processes, as in `round_trips`: `--listen ADDR` and `--connect ADDR`, each with `--by tasks`
//! (with the feature `tokio` no thread of ours runs) or `--by calls`. `--trips N` sets how many.
//! The side that connects prints times in nanoseconds and the threads of its process.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use msg_patterns::{Bytes, Context, Message, Rep, Req};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIZE_BYTES: usize = 64;
const WARM_UP: usize = 1000;
const TRIPS: usize = 20_000;
const WATCHDOG: Duration = Duration::from_secs(60);

struct Args {
    listens: bool,
    addr: String,
    by_tasks: bool,
    trips: usize,
}

fn main() -> Outcome<()> {
    let Some(args) = Args::read() else { return Ok(()) };
    match (args.by_tasks, args.listens) {
        (true, true) => runtime()?.block_on(listen_by_tasks(&args)),
        (true, false) => runtime()?.block_on(connect_by_tasks(&args)),
        (false, true) => listen_by_calls(&args),
        (false, false) => connect_by_calls(&args),
    }
}

impl Args {
    /// `None` when started without an address, as `cargo bench` does.
    fn read() -> Option<Self> {
        let all: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = all.iter().position(|arg| arg == name)?;
            all.get(at + 1).cloned()
        };
        let (listens, addr) = match (value("--listen"), value("--connect")) {
            (Some(addr), _) => (true, addr),
            (None, addr) => (false, addr?),
        };
        let trips = value("--trips").and_then(|trips| trips.parse().ok()).unwrap_or(TRIPS);
        Some(Self { listens, addr, by_tasks: value("--by")? == "tasks", trips })
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn rep(args: &Args) -> Outcome<Rep> {
    let rep = Rep::new(&Context::new())?;
    println!("listening at {}", rep.bind(&args.addr)?);
    std::io::stdout().flush()?;
    Ok(rep)
}

fn req(args: &Args) -> Outcome<Req> {
    let req = Req::new(&Context::new())?;
    req.connect(&args.addr)?;
    Ok(req)
}

/// Replies until it is asked to end.
async fn listen_by_tasks(args: &Args) -> Outcome<()> {
    let rep = rep(args)?;
    loop {
        let request = rep.recv_async().await?;
        let is_last = request.first().is_empty();
        rep.send(request)?;
        if is_last {
            rep.close_async().await;
            return Ok(());
        }
    }
}

fn listen_by_calls(args: &Args) -> Outcome<()> {
    let rep = rep(args)?;
    loop {
        let request = rep.recv_timeout(WATCHDOG)?;
        let is_last = request.first().is_empty();
        rep.send(request)?;
        if is_last {
            rep.close();
            return Ok(());
        }
    }
}

async fn connect_by_tasks(args: &Args) -> Outcome<()> {
    let req = req(args)?;
    let mut times = Times::new(args);
    for _ in 0..WARM_UP + args.trips {
        req.request_async(times.body()).await?;
        times.add();
    }
    times.report();
    req.request_async("").await?;
    req.close_async().await;
    Ok(())
}

fn connect_by_calls(args: &Args) -> Outcome<()> {
    let req = req(args)?;
    let mut times = Times::new(args);
    for _ in 0..WARM_UP + args.trips {
        req.request(times.body(), WATCHDOG)?;
        times.add();
    }
    times.report();
    req.request("", WATCHDOG)?;
    req.close();
    Ok(())
}

/// Times of round trips, without those to warm up.
struct Times {
    body: Bytes,
    trips: Vec<Duration>,
    start: Instant,
}

impl Times {
    fn new(args: &Args) -> Self {
        let trips = Vec::with_capacity(WARM_UP + args.trips);
        Self { body: vec![7; SIZE_BYTES].into(), trips, start: Instant::now() }
    }

    fn body(&self) -> Message {
        self.body.clone().into()
    }

    fn add(&mut self) {
        let now = Instant::now();
        self.trips.push(now - self.start);
        self.start = now;
    }

    fn report(mut self) {
        let mut trips = self.trips.split_off(WARM_UP);
        trips.sort_unstable();
        let at =
            |part: f64| trips.get((trips.len() as f64 * part) as usize).map(Duration::as_nanos);
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let (half, most) = (at(0.5).unwrap_or(0), at(0.99).unwrap_or(0));
        println!("p50_ns={half} p99_ns={most} threads={threads}");
    }
}
