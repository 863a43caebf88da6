//! Writing out what comes, for whoever only receives.

use std::time::{Duration, Instant};

use msg_patterns::{Error, ErrorKind, Message};

use crate::args::{Store, Tuning};
use crate::exit::Failure;
use crate::output::Output;
use crate::socket::Inbound;
use crate::tally::Tally;

/// How often a quiet socket is asked whether its peers are gone.
const GONE_POLL: Duration = Duration::from_millis(20);

/// Receives until the count is reached, peers are gone or the time limit passes.
///
/// # Errors
/// `TimedOut` when nothing came or the count was not reached; what receiving and writing say.
pub(crate) fn receive_all(
    socket: &impl Inbound,
    store: &Store,
    tuning: &Tuning,
    output: &mut Output,
    tally: &mut Tally,
) -> Result<(), Failure> {
    while tuning.count.is_none_or(|count| tally.messages() < count) {
        match next(socket, store.until_gone, tuning.timeout, || output.flush())? {
            Came::Message(message) => tally.add(output.write(&message)?),
            Came::Gone => return ended(tuning.count, tally, "its peers have gone"),
            Came::Nothing => return ended(tuning.count, tally, "the time limit is over"),
        }
    }
    output.flush()
}

/// Whether the end of what comes is a success.
pub(crate) fn ended(count: Option<u64>, tally: &Tally, why: &str) -> Result<(), Failure> {
    match (tally.messages(), count) {
        (0, _) => Err(Failure::TimedOut(format!("nothing came: {why}"))),
        (_, None) => Ok(()),
        (came, Some(count)) => {
            Err(Failure::TimedOut(format!("{came} of {count} messages came: {why}")))
        }
    }
}

/// What a wait ended with.
pub(crate) enum Came {
    Message(Message),
    Gone,
    Nothing,
}

/// The next message; `idle` is called before a wait.
pub(crate) fn next(
    socket: &impl Inbound,
    until_gone: bool,
    timeout: Option<Duration>,
    mut idle: impl FnMut() -> Result<(), Failure>,
) -> Result<Came, Failure> {
    if let Some(message) = some(socket.try_recv())? {
        return Ok(Came::Message(message));
    }
    idle()?;
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        let slice = if until_gone { left.min(GONE_POLL) } else { left };
        // Asked before receiving: who has gone sends no more.
        let gone = until_gone && are_gone(socket);
        match some(socket.recv_timeout(if gone { Duration::ZERO } else { slice }))? {
            Some(message) => return Ok(Came::Message(message)),
            None if gone => return Ok(Came::Gone),
            None if left <= slice => return Ok(Came::Nothing),
            None => {}
        }
    }
}

fn some(received: Result<Message, Error>) -> Result<Option<Message>, Failure> {
    match received {
        Ok(message) => Ok(Some(message)),
        Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn are_gone(socket: &impl Inbound) -> bool {
    let counters = socket.counters();
    counters.connects > 0 && counters.connects == counters.disconnects
}
