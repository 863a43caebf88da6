//! Round trips between two processes over bare domains:
//!
//! ```sh
//! cargo run --release -p fabric-tcp --example pingpong [ROUNDS] [BYTES]
//! ```
//!
//! Prints the time and the client's context switches per round trip. The client is the process that
//! starts; run it under `strace -c` to count its system calls.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use fabric_core::{Addr, Domain, EpId, Event, Fabric, Pool, SendBuf, Slot};
use fabric_tcp::{TcpDomain, TcpFabric};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--echo") {
        return echo(&args[1].parse()?, args[2].parse()?);
    }
    args.extend(["20000", "64"].map(String::from).into_iter().skip(args.len()));
    measure(args[0].parse()?, args[1].parse()?)
}

/// Listens, has another process echo, and measures.
fn measure(rounds: u32, bytes: usize) -> Outcome<()> {
    let mut domain = TcpFabric::default().open()?;
    let listener = domain.listen(&"tcp://127.0.0.1:0".parse()?)?;
    let mut echo = start_echo(&listener.addr, bytes)?;
    let ep = endpoint(&mut domain)?;
    offer(&mut domain, Slot::alloc(bytes)?)?;
    let mut buf = SendBuf::from(bytes::Bytes::from(vec![7; bytes]));
    let (start, switches) = (Instant::now(), context_switches());
    for _ in 0..rounds {
        domain.post_send(ep, buf).map_err(|rejected| rejected.error)?;
        buf = one_trip(&mut domain)?;
    }
    let (time, switches) = (start.elapsed(), context_switches() - switches);
    println!("{rounds} round trips of {bytes} bytes: {:?} each", time / rounds);
    println!("{:.2} context switches each", switches as f64 / f64::from(rounds));
    domain.close(ep);
    drop(domain);
    echo.wait()?;
    Ok(())
}

/// Waits for the buffer of the send and for the answer.
fn one_trip(domain: &mut TcpDomain) -> Outcome<SendBuf> {
    let (mut events, mut buf, mut answered) = (Vec::new(), None, false);
    while buf.is_none() || !answered {
        domain.wait(None)?;
        domain.poll(&mut events, 16);
        for event in events.drain(..) {
            match event {
                Event::Sent { buf: back, .. } => buf = Some(back),
                Event::Received { slot, .. } => {
                    offer(domain, slot)?;
                    answered = true;
                }
                Event::Closed { why, .. } => return Err(why.into()),
                _ => {}
            }
        }
    }
    buf.ok_or_else(|| "no buffer".into())
}

/// Sends every message back in the slot it came in.
fn echo(addr: &Addr, bytes: usize) -> Outcome<()> {
    let mut domain = TcpFabric::default().open()?;
    domain.connect(addr)?;
    let pool = Pool::new(bytes, 3)?;
    let slot = || pool.take().ok_or("a pool of three is enough for one message at a time");
    offer(&mut domain, slot()?)?;
    let mut events = Vec::new();
    loop {
        domain.wait(None)?;
        domain.poll(&mut events, 16);
        for event in events.drain(..) {
            match event {
                Event::Received { ep, slot: message, .. } => {
                    offer(&mut domain, slot()?)?;
                    domain
                        .post_send(ep, SendBuf::from(message))
                        .map_err(|rejected| rejected.error)?;
                }
                Event::Closed { .. } => return Ok(()),
                _ => {}
            }
        }
    }
}

fn offer(domain: &mut TcpDomain, slot: Slot) -> Outcome<()> {
    domain.post_recv(slot).map_err(|rejected| rejected.error)?;
    Ok(())
}

fn start_echo(addr: &Addr, bytes: usize) -> Outcome<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--echo").arg(addr.to_string()).arg(bytes.to_string());
    Ok(command.stdin(Stdio::null()).spawn()?)
}

/// The endpoint of the first peer that connects.
fn endpoint(domain: &mut TcpDomain) -> Outcome<EpId> {
    let mut events = Vec::new();
    loop {
        domain.wait(None)?;
        domain.poll(&mut events, 16);
        for event in events.drain(..) {
            if let Event::Accepted { ep, .. } = event {
                return Ok(ep);
            }
        }
    }
}

/// Voluntary context switches of this process so far.
fn context_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
