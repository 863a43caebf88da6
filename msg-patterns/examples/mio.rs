//! A socket in a mio loop, beside whatever else is in there.
//!
//! Run with `cargo run -p msg-patterns --example mio`.

use std::error::Error;
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use msg_patterns::{Context, ErrorKind, Pull, Push, Receives};

const SOCKET: Token = Token(0);
const TASKS: usize = 5;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new();
    let pull = Pull::new(&context)?;
    let push = Push::new(&context)?;
    push.connect(&pull.bind("tcp://127.0.0.1:0")?.to_string())?;

    let readable = pull.readable()?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut SourceFd(&readable.as_raw_fd()), SOCKET, Interest::READABLE)?;
    for task in 0..TASKS {
        push.send(format!("task {task}"))?;
    }

    let (mut events, mut done) = (Events::with_capacity(8), 0);
    while done < TASKS {
        poll.poll(&mut events, None)?;
        for _event in events.iter().filter(|event| event.token() == SOCKET) {
            // mio tells of changes only: take all that is there.
            loop {
                match pull.try_recv() {
                    Ok(message) => println!("{message:?}"),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                done += 1;
            }
        }
    }
    Ok(())
}
