//! Round trips of small messages between two processes, polling all the time, for comparison with
//! libfabric's own `fi_pingpong`.
//!
//! `ping_pong PROVIDER [BYTES] [COUNT]` starts its own peer and prints microseconds for one way, as
//! `fi_pingpong` does. Providers: tcp, shm and others that `fi_info -l` lists.

use std::process::{Command, ExitCode};
use std::time::Instant;

use fabric_core::{Addr, Domain, EpId, Error, Event, Fabric, Pool, Slot};
use fabric_libfabric::{LibfabricDomain, LibfabricFabric, LibfabricOptions};

/// Round trips before the clock starts.
const WARM_UP: usize = 1000;
const SLOT_BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(usual);
    let Some(first) = args.first() else {
        eprintln!("usage: ping_pong PROVIDER [BYTES] [COUNT]");
        return ExitCode::from(2);
    };
    let (bytes, count): (usize, usize) = (number(1, 64).min(SLOT_BYTES), number(2, 20_000));
    let done = match first.parse::<Addr>() {
        Ok(addr) => answer(&addr),
        Err(_) => ask(first, bytes, count),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One end.
struct End {
    domain: LibfabricDomain,
    events: Vec<Event>,
}

impl End {
    fn open(provider: &str) -> Result<Self, Error> {
        let options = LibfabricOptions { provider: Some(provider.into()), ..Default::default() };
        let mut domain = LibfabricFabric::new(options).open()?;
        let pool = Pool::new(SLOT_BYTES, 16).map_err(|error| Error::misuse(error.to_string()))?;
        for slot in std::iter::from_fn(|| pool.take()) {
            domain.post_recv(slot)?;
        }
        Ok(Self { domain, events: Vec::new() })
    }

    /// Polls until an event is of interest.
    fn next<T>(&mut self, mut want: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            self.domain.poll(&mut self.events, 16);
            if let Some(found) = self.events.drain(..).find_map(&mut want) {
                return found;
            }
        }
    }

    /// The next message, or nothing if the peer left.
    fn message(&mut self) -> Option<Slot> {
        self.next(|event| match event {
            Event::Received { slot, .. } => Some(Some(slot)),
            Event::Closed { .. } => Some(None),
            _ => None,
        })
    }

    /// Sends a message back and offers its memory again when it is there.
    fn send(&mut self, ep: EpId, bytes: bytes::Bytes) -> Result<(), Error> {
        self.domain.post_send(ep, bytes.into())?;
        self.domain.flush();
        Ok(())
    }
}

fn ask(provider: &str, bytes: usize, count: usize) -> Result<(), Error> {
    let mut end = End::open(provider)?;
    let host = if ["shm", "sm2"].contains(&provider) { "ping-pong" } else { "127.0.0.1" };
    let listener = end.domain.listen(&Addr::new(&format!("ofi+{provider}"), host, Some(0)))?;
    let failed =
        |error: std::io::Error| Error::misuse("the peer does not start").with_source(error);
    let mut peer = Command::new(std::env::current_exe().map_err(failed)?);
    let peer = peer.args([listener.addr.to_string(), bytes.to_string(), count.to_string()]);
    let mut peer = peer.spawn().map_err(failed)?;
    let ep = end.next(|event| match event {
        Event::Accepted { ep, .. } => Some(ep),
        _ => None,
    });
    let message = bytes::Bytes::from(vec![7; bytes]);
    let mut start = Instant::now();
    for round in 0..WARM_UP + count {
        if round == WARM_UP {
            start = Instant::now();
        }
        end.send(ep, message.clone())?;
        match end.message() {
            Some(slot) => drop(end.domain.post_recv(slot)?),
            None => return Err(Error::misuse("the peer left")),
        }
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / (2 * count) as f64;
    println!("ofi+{provider}: {bytes} bytes, {count} round trips, {micros:.2} usec one way");
    end.domain.close(ep);
    end.next(|event| matches!(event, Event::Closed { .. }).then_some(()));
    peer.wait().map_err(failed)?;
    Ok(())
}

fn answer(addr: &Addr) -> Result<(), Error> {
    let mut end = End::open(addr.scheme().trim_start_matches("ofi+"))?;
    let ep = end.domain.connect(addr)?;
    while let Some(slot) = end.message() {
        end.send(ep, bytes::Bytes::copy_from_slice(slot.filled()))?;
        end.domain.post_recv(slot)?;
    }
    Ok(())
}
