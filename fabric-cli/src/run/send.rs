//! Sending what comes in, for whoever only sends.

use std::thread;
use std::time::{Duration, Instant};

use msg_patterns::Message;

use crate::exit::Failure;
use crate::input::Input;
use crate::socket::Endpoint;
use crate::stage::Stage;
use crate::tally::Tally;

const PEER_POLL: Duration = Duration::from_millis(5);

/// Sends everything with `send`.
///
/// # Errors
/// Why it did not.
pub(crate) fn send_all(
    input: &mut Input,
    tally: &mut Tally,
    mut send: impl FnMut(Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(message) = input.next()? {
        tally.start();
        send(message.clone())?;
        tally.add(message.parts());
    }
    Ok(())
}

/// Waits until `count` peers are there, for at most `timeout`.
///
/// # Errors
/// `TimedOut` or `Interrupted`.
pub(crate) fn wait_peers(
    stage: &Stage,
    socket: &impl Endpoint,
    count: usize,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    while present(socket) < count {
        if stage.interrupt.is_hit() {
            return Err(Failure::Interrupted);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            let text = format!("{} of {count} peers came in time", present(socket));
            return Err(Failure::TimedOut(text));
        }
        thread::sleep(PEER_POLL);
    }
    Ok(())
}

fn present(socket: &impl Endpoint) -> usize {
    socket.peers().iter().filter(|peer| peer.up).count()
}

/// What a close may still have dropped, as a failure.
pub(crate) fn all_left(dropped: u64) -> Result<(), Failure> {
    if dropped == 0 {
        return Ok(());
    }
    Err(Failure::TimedOut(format!(
        "no peer took {dropped} of the messages in time: start one that pulls, or raise --linger"
    )))
}
