//! What the two sides say to each other about a run.

use std::time::Duration;

use msg_patterns::{ErrorKind, Message, Req};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::cost::Usage;
use crate::memory::Held;
use crate::plan::Task;

/// Raised with every change of these messages.
pub(crate) const VERSION: u32 = 2;

/// How long nothing may move before a run is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What the measuring side asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Get ready for a run.
    Start {
        /// Must be the same on both sides.
        version: u32,
        /// The run.
        task: Task,
    },
    /// The next figures of the run, as soon as they are there.
    Next,
    /// The run is over: close what it had open.
    Done,
}

/// What the serving side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Connect there.
    Ready {
        /// Its address with its real port.
        addr: String,
    },
    /// Figures.
    Figures(Figures),
    /// As you wish.
    Done,
    /// It did not work out.
    Failed {
        /// Why, in one line.
        why: String,
    },
}

/// What the serving side found out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Messages that these figures are about.
    pub(crate) messages: u64,
    /// What they took.
    pub(crate) usage: Usage,
    /// What the process holds now.
    pub(crate) held: Held,
    /// Dropped for subscribers without room.
    pub(crate) dropped: u64,
}

/// The measuring end of the control connection.
#[derive(Debug)]
pub(crate) struct Control(Req);

impl Control {
    pub(crate) fn new(socket: Req) -> Self {
        Self(socket)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// `Peer` with what went wrong there, or when nobody answers.
    pub(crate) fn ask(&self, request: &Request, patience: Duration) -> Result<Answer, Error> {
        let reply = self.0.request(encode(request)?, patience).map_err(explain)?;
        match decode(&reply)? {
            Answer::Failed { why } => Err(Error::Peer(why)),
            answer => Ok(answer),
        }
    }
}

fn explain(error: msg_patterns::Error) -> Error {
    match error.kind() {
        ErrorKind::Terminated | ErrorKind::PeerGone => Error::Peer("it is gone".into()),
        ErrorKind::TimedOut => Error::TimedOut(format!("the other side does not answer: {error}")),
        _ => error.into(),
    }
}

/// As a message.
///
/// # Errors
/// `Wrong`, which only a number that is none could cause.
pub(crate) fn encode(value: &impl Serialize) -> Result<Message, Error> {
    let json = serde_json::to_vec(value);
    json.map(Message::from).map_err(|error| Error::Wrong(format!("cannot be said: {error}")))
}

/// From a message.
///
/// # Errors
/// `Peer` when it is none of ours.
pub(crate) fn decode<T: DeserializeOwned>(message: &Message) -> Result<T, Error> {
    let value = serde_json::from_slice(message.first());
    value.map_err(|_| Error::Peer("it does not speak as `fabric perf serve` does".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let figures = Figures { messages: 7, dropped: 1, ..Figures::default() };
        let said = Answer::Figures(figures);
        assert_eq!(decode::<Answer>(&encode(&said).unwrap()).unwrap(), said);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "{}", "hello", "{\"Start\":{}}"] {
            assert!(matches!(decode::<Request>(&Message::from(text)), Err(Error::Peer(_))));
        }
    }
}
