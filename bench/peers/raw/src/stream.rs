//! A one-way stream.

use std::io;
use std::net::TcpStream;

use common::{Args, Meter, ready, wait_end};

use crate::frames::{BATCH_BYTES, In, Out};
use crate::socket::{accept, connect, listen, read_some, write_all};

/// Sends everything.
pub fn send(args: &Args) -> io::Result<()> {
    let stream = connect(args)?;
    let body = vec![b'x'; args.size];
    let mut out = Out::new();
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        if is_batch(args) { out.put(&stream, &body)? } else { write_all(&stream, &body)? }
    }
    out.flush(&stream)?;
    meter.stream(args.count);
    wait_end();
    Ok(())
}

/// Receives everything. The clock runs from the read that ends the warming up.
pub fn receive(args: &Args) -> io::Result<()> {
    let listener = listen(args)?;
    ready();
    let stream = accept(&listener, args)?;
    let mut reader = Reader::new(args);
    let (mut came, mut began) = (0, None);
    while came < args.total() {
        came += reader.read(&stream)?;
        if began.is_none() && came >= args.warm() {
            began = Some((Meter::begin(), came));
        }
    }
    if let Some((meter, before)) = began {
        meter.stream(came - before);
    }
    Ok(())
}

enum Reader {
    Frames(In),
    Bytes { buffer: Vec<u8>, size: usize, rest: usize },
}

impl Reader {
    fn new(args: &Args) -> Self {
        if is_batch(args) {
            return Self::Frames(In::new(args.size));
        }
        let buffer = vec![0; args.size.max(4 * BATCH_BYTES)];
        Self::Bytes { buffer, size: args.size, rest: 0 }
    }

    /// Reads once; how many messages are whole now.
    fn read(&mut self, stream: &TcpStream) -> io::Result<u64> {
        match self {
            Self::Frames(frames) => frames.read(stream).map(|came| came.frames),
            Self::Bytes { buffer, size, rest } => {
                let bytes = *rest + read_some(stream, buffer)?;
                *rest = bytes % *size;
                Ok((bytes / *size) as u64)
            }
        }
    }
}

fn is_batch(args: &Args) -> bool {
    args.transport == "tcp-batch"
}
