//! A request and its reply between two processes, over the fabric that the address names.

#[path = "../../fabric-verbs/benches/trips/mod.rs"]
mod trips;

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use msg_patterns::{Bytes, Context, Rep, Req};
use trips::{Args, SIZE_BYTES, Side, WARM_UP, report};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Longer than any trip takes, so that nobody sleeps.
const POLL: Duration = Duration::from_secs(10);
const WATCHDOG: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    let Some(args) = Args::parse() else { return Ok(()) };
    match args.side {
        Side::Listen => listen(&args),
        Side::Connect => connect(&args),
    }
}

/// Replies until it is asked to end.
fn listen(args: &Args) -> Outcome<()> {
    let rep = Rep::builder().busy_poll(poll_time(args)).build(&Context::new())?;
    println!("listening at {}", rep.bind(&args.addr)?);
    std::io::stdout().flush()?;
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

fn connect(args: &Args) -> Outcome<()> {
    let req = Req::builder().busy_poll(poll_time(args)).build(&Context::new())?;
    req.connect(&args.addr)?;
    let body = Bytes::from(vec![7; SIZE_BYTES]);
    let mut times = Vec::with_capacity(args.trips);
    let mut start = Instant::now();
    for trip in 0..WARM_UP + args.trips {
        req.request(body.clone(), WATCHDOG)?;
        let now = Instant::now();
        if trip >= WARM_UP {
            times.push(now - start);
        }
        start = now;
    }
    report(times);
    req.request(Bytes::new(), WATCHDOG)?;
    req.close();
    Ok(())
}

fn poll_time(args: &Args) -> Duration {
    if args.sleep { Duration::ZERO } else { POLL }
}
