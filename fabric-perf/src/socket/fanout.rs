//! One publisher on the serving side, many subscribers on the measuring one, on one thread.

use std::thread;
use std::time::{Duration, Instant};

use msg_patterns::{ErrorKind, Message, OnFull, Pub, Sub};

use super::{batches, body, check, tuned};
use crate::Error;
use crate::control::{Figures, PATIENCE};
use crate::cost::{Meter, Usage};
use crate::memory::Held;
use crate::plan::{Task, WhenFull};
use crate::progress::tell;
use crate::serve::Part;
use crate::session::Run;

/// Messages taken from one subscriber before the next one's turn.
const TURN: usize = 256;

/// How long to sleep at one subscriber when none has a message.
const NAP: Duration = Duration::from_millis(20);

/// How often the publisher looks whether everything left.
const DRAIN_POLL: Duration = Duration::from_millis(1);

/// What the subscribers found out.
pub(crate) struct Found {
    /// Messages that arrived, all subscribers together, those before the clock ran included.
    pub(crate) arrived: u64,
    /// Those that arrived while the clock ran.
    pub(crate) timed: u64,
    pub(crate) usage: Usage,
}

/// A subscriber, until it has seen the end.
struct Seat {
    socket: Sub,
    ended: bool,
}

/// Subscribes and receives everything.
pub(crate) fn measure(run: &Run<'_>) -> Result<Found, Error> {
    let mut audience = Audience::seat(run)?;
    // The publisher begins once it has seen all subscriptions.
    run.figures()?;
    audience.listen()
}

struct Audience<'a> {
    run: &'a Run<'a>,
    meter: Meter,
    seats: Vec<Seat>,
    buffer: Vec<Message>,
    arrived: u64,
    timed_from: Option<u64>,
}

impl<'a> Audience<'a> {
    fn seat(run: &'a Run<'a>) -> Result<Self, Error> {
        let meter = Meter::new(run.task.counted);
        let seats = (0..run.task.peers).map(|_| seat(run)).collect::<Result<Vec<_>, Error>>()?;
        if let Some(first) = seats.first() {
            run.watch(first.socket.monitor())?;
        }
        Ok(Self { run, meter, seats, buffer: Vec::new(), arrived: 0, timed_from: None })
    }

    fn listen(&mut self) -> Result<Found, Error> {
        let mut moved = Instant::now();
        while let Some(open) = self.seats.iter().position(|seat| !seat.ended) {
            if self.pass()? || self.nap(open)? {
                moved = Instant::now();
            } else if moved.elapsed() > PATIENCE {
                return Err(Error::TimedOut("nothing arrived for a minute".into()));
            }
        }
        let timed = self.arrived - self.timed_from.unwrap_or(self.arrived);
        Ok(Found { arrived: self.arrived, timed, usage: self.meter.end() })
    }

    /// One turn of everybody; whether anything came.
    fn pass(&mut self) -> Result<bool, Error> {
        if self.run.task.settings.batch > 1 {
            return self.pass_in_batches();
        }
        let mut came = false;
        for at in 0..self.seats.len() {
            for _ in 0..TURN {
                let seat = &self.seats[at];
                let received = if seat.ended { break } else { seat.socket.try_recv() };
                match received {
                    Ok(message) => self.take(at, &message)?,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                came = true;
            }
        }
        Ok(came)
    }

    fn pass_in_batches(&mut self) -> Result<bool, Error> {
        let mut messages = std::mem::take(&mut self.buffer);
        let mut came = false;
        for at in 0..self.seats.len() {
            let seat = &self.seats[at];
            if seat.ended {
                continue;
            }
            match seat.socket.recv_many_timeout(&mut messages, TURN, Duration::ZERO) {
                Ok(_) => came = true,
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                Err(error) => return Err(error.into()),
            }
            messages.drain(..).try_for_each(|message| self.take(at, &message))?;
        }
        self.buffer = messages;
        Ok(came)
    }

    /// Everybody gets the same, so who waits at one subscriber misses little at the others.
    fn nap(&mut self, at: usize) -> Result<bool, Error> {
        match self.seats[at].socket.recv_timeout(NAP) {
            Ok(message) => self.take(at, &message).map(|()| true),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, at: usize, message: &Message) -> Result<(), Error> {
        let task = &self.run.task;
        if is_end(message) {
            self.seats[at].ended = true;
            return Ok(());
        }
        check(message, task)?;
        self.arrived += 1;
        if self.timed_from.is_none() && self.arrived >= task.warm * task.peers as u64 {
            self.timed_from = Some(self.arrived);
            self.meter.begin();
        }
        tell(self.run.session.progress, self.arrived);
        Ok(())
    }
}

fn seat(run: &Run<'_>) -> Result<Seat, Error> {
    let socket = tuned(Sub::builder(), &run.task.settings).build(&run.context)?;
    socket.subscribe("")?;
    socket.connect(&run.addr.to_string())?;
    Ok(Seat { socket, ended: false })
}

/// Publishes once all subscribers are there.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    let task = &part.task;
    let mut meter = Meter::new(task.counted);
    let on_full = match task.settings.when_full {
        WhenFull::Drop => OnFull::Drop,
        WhenFull::Block => OnFull::Block,
    };
    let builder = tuned(Pub::builder(), &task.settings).on_full(on_full);
    let socket = builder.build(&part.context)?;
    part.ready(&socket.bind(&part.addr.to_string())?);
    socket.wait_matching("", task.peers, PATIENCE)?;
    part.report(Figures { held: Held::now(), ..Figures::default() });
    publish(task, &socket, &mut meter)?;
    let (usage, held) = (meter.end(), Held::now());
    drain(&socket);
    socket.send(end())?;
    let dropped = socket.counters().dropped;
    part.report(Figures { messages: task.count, usage, held, dropped });
    part.hold();
    Ok(())
}

fn publish(task: &Task, socket: &Pub, meter: &mut Meter) -> Result<(), Error> {
    let body = body(task);
    for batch in batches(task) {
        if batch.done == task.warm {
            meter.begin();
        }
        match batch.len {
            1 => socket.send(body.clone())?,
            len => socket.send_many((0..len).map(|_| body.clone()))?,
        }
    }
    Ok(())
}

/// Waits until the queues are empty, so that there is room for the end in each.
fn drain(socket: &Pub) {
    while socket.peers().iter().any(|peer| peer.up && peer.queued > 0) {
        thread::sleep(DRAIN_POLL);
    }
}

/// Nothing else that is published has two parts.
fn end() -> Message {
    Message::from_parts(["end", ""])
}

fn is_end(message: &Message) -> bool {
    message.parts().len() == 2
}
