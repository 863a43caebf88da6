//! `fabric pub`.

use std::collections::HashSet;
use std::time::Duration;

use msg_patterns::{Bytes, Message, OnFull, Pub};

use super::send::send_all;
use crate::args::{Global, PubArgs, WhenFull};
use crate::exit::Failure;
use crate::input::Input;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Publishes what comes in.
///
/// # Errors
/// Why it did not publish everything.
pub(crate) fn run(args: &PubArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let mut input = Input::open(&args.feed, &args.tuning, &stage.interrupt)?;
    let builder = args.tuning.apply(Pub::builder()).on_full(on_full(args)).history(args.history);
    let socket = stage.open(builder, &args.ends, Side::Bind)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, input.total());
    let outcome = publish_all(args, &socket, &mut input, &mut tally);
    stage.finish("pub", socket, tally, outcome).map(drop)
}

fn on_full(args: &PubArgs) -> OnFull {
    match args.when_full {
        WhenFull::Drop => OnFull::Drop,
        WhenFull::Block => OnFull::Block,
    }
}

fn publish_all(
    args: &PubArgs,
    socket: &Pub,
    input: &mut Input,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let timeout = args.tuning.timeout.unwrap_or(Duration::MAX);
    let mut topics = Topics::new(&args.topic);
    let mut crowd = Crowd::new(args.wait_subscribers, args.topic.len());
    send_all(input, tally, |body| {
        let message = topics.head(body);
        crowd.wait(socket, &message, timeout)?;
        Ok(socket.send_timeout(message, timeout)?)
    })
}

/// Gives messages their topics, in turn.
struct Topics {
    topics: Vec<Bytes>,
    next: usize,
}

impl Topics {
    fn new(topics: &[String]) -> Self {
        Self { topics: topics.iter().map(|topic| topic.clone().into()).collect(), next: 0 }
    }

    fn head(&mut self, body: Message) -> Message {
        let Some(topic) = self.topics.get(self.next) else { return body };
        self.next = (self.next + 1) % self.topics.len();
        Message::from_parts([topic.clone()].into_iter().chain(body.into_parts()))
    }
}

/// Waits for subscribers, once for each topic.
struct Crowd {
    subscribers: usize,
    to_wait: usize,
    waited: HashSet<Bytes>,
}

impl Crowd {
    /// Without topics of its own, only the first message is waited for.
    fn new(subscribers: usize, topics: usize) -> Self {
        let to_wait = if subscribers == 0 { 0 } else { topics.max(1) };
        Self { subscribers, to_wait, waited: HashSet::new() }
    }

    fn wait(&mut self, socket: &Pub, message: &Message, timeout: Duration) -> Result<(), Failure> {
        if self.to_wait == 0 || !self.waited.insert(message.first().clone()) {
            return Ok(());
        }
        self.to_wait -= 1;
        Ok(socket.wait_matching(message.first(), self.subscribers, timeout)?)
    }
}
