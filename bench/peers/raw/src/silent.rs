//! Many silent peers, and one that streams.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{Args, Grown, Held, Meter, go, ready, wait_end, wait_go};

use crate::frames::{In, Out};
use crate::socket::{accept, connect, listen, read_exact, write_all};

/// Long enough for the server to have measured its memory without silent peers.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// A buffer of so many bytes for each peer is the least that a server of frames has.
const PEER_BYTES: usize = 4096;

/// Receives greetings, then the stream.
pub fn serve(args: &Args) -> io::Result<()> {
    let listener = listen(args)?;
    ready();
    let active = greeted(&listener, args)?;
    let before = Held::now();
    let mut silent = Vec::with_capacity(args.peers);
    let mut first = None;
    for _ in 0..args.peers {
        let mut buffer = In::with_capacity(PEER_BYTES);
        buffer.touch();
        silent.push((greeted(&listener, args)?, buffer));
        first.get_or_insert_with(Instant::now);
    }
    let greetings = first.map(|first| first.elapsed()).unwrap_or_default();
    let grown = before.grown();
    go();
    receive(args, &active, grown, greetings)
}

fn greeted(listener: &TcpListener, args: &Args) -> io::Result<TcpStream> {
    let stream = accept(listener, args)?;
    read_exact(&stream, &mut [0])?;
    Ok(stream)
}

fn receive(args: &Args, active: &TcpStream, grown: Grown, greetings: Duration) -> io::Result<()> {
    let mut frames = In::new(args.size);
    let (mut came, mut began) = (0, None);
    while came < args.total() {
        came += frames.read(active)?.frames;
        if began.is_none() && came >= args.warm() {
            began = Some((Meter::begin(), came));
        }
    }
    if let Some((meter, before)) = began {
        meter.idle(came - before, args.peers, grown, greetings);
    }
    Ok(())
}

/// Connects the silent peers, then streams.
pub fn connect_all(args: &Args) -> io::Result<()> {
    let active = greet(args)?;
    thread::sleep(SETTLE_TIME);
    let before = Held::now();
    let silent = (0..args.peers).map(|_| greet(args)).collect::<Result<Vec<_>, _>>()?;
    wait_go();
    let (grown, meter) = (before.grown(), Meter::begin());
    let body = vec![b'x'; args.size];
    let mut out = Out::new();
    for _ in 0..args.total() {
        out.put(&active, &body)?;
    }
    out.flush(&active)?;
    meter.silent(args.peers, grown);
    wait_end();
    drop(silent);
    Ok(())
}

fn greet(args: &Args) -> io::Result<TcpStream> {
    let stream = connect(args)?;
    write_all(&stream, b"h")?;
    Ok(stream)
}
