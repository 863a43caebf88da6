//! One publisher, many subscribers: every batch is written to each of them.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use common::{Args, Meter, ready, wait_end};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::frames::{In, Out};
use crate::socket::{accept, connect, listen};

/// Events taken at once.
const EVENTS_MAX: usize = 64;

/// Publishes to all, and a frame without bytes at the end.
pub fn publish(args: &Args) -> io::Result<()> {
    let listener = listen(args)?;
    ready();
    let peers = (0..args.peers).map(|_| accept(&listener, args)).collect::<Result<Vec<_>, _>>()?;
    let body = vec![b'x'; args.size];
    let mut out = Out::new();
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        if !out.fits(&body) {
            out.flush_to_all(&peers)?;
        }
        out.append(&body);
    }
    out.flush_to_all(&peers)?;
    out.append(&[]);
    out.flush_to_all(&peers)?;
    meter.stream(args.count * args.peers as u64);
    wait_end();
    Ok(())
}

/// Subscribes many times, on one thread.
pub fn subscribe(args: &Args) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut seats = Vec::with_capacity(args.peers);
    for index in 0..args.peers {
        let stream = connect(args)?;
        epoll::add(&epoll, stream.as_fd(), EventData::new_u64(index as u64), EventFlags::IN)?;
        seats.push((stream, In::new(args.size)));
    }
    let warm = args.warm() * args.peers as u64;
    let (mut came, mut ended, mut began) = (0, 0, None);
    let mut events = Vec::with_capacity(EVENTS_MAX);
    while ended < args.peers as u64 {
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let (frames, ends) = read(&mut seats, event)?;
            came += frames;
            ended += ends;
        }
        if began.is_none() && came >= warm {
            began = Some((Meter::begin(), came));
        }
    }
    if let Some((meter, before)) = began {
        meter.fanout(came, args.total() * args.peers as u64, came - before);
    }
    Ok(())
}

fn read(seats: &mut [(TcpStream, In)], event: Event) -> io::Result<(u64, u64)> {
    let (stream, frames) = &mut seats[event.data.u64() as usize];
    let came = frames.read(stream)?;
    Ok((came.frames, came.empty))
}
