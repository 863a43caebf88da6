use std::sync::Arc;
use std::time::Duration;

use msg_proto::replies::Ticket;
use parking_lot::Mutex;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
use crate::engine::Core;
use crate::roles::replier::Replier;
use crate::{Context, Error, ErrorKind, Message, SendError};

/// Answers the requests of all its peers, in turn.
///
/// With `recv` and `send` a handle alternates between the two. To serve several requests at once,
/// clone the handle for each thread, or take [`Request`]s with [`next_request`](Rep::next_request)
/// and answer them in any order.
pub struct Rep {
    handle: Arc<Handle<Replier>>,
    turn: Mutex<Turn>,
}

/// What a handle may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Receive,
    /// A thread is receiving.
    Receiving,
    Answer(Ticket),
}

common_calls!(Rep);

impl Socket for Rep {
    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let handle = Handle::open(context, options.0, 0, Replier::new())?;
        Ok(Self { handle, turn: Mutex::new(Turn::Receive) })
    }
}

impl Clone for Rep {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), turn: Mutex::new(Turn::Receive) }
    }
}

impl Rep {
    /// Receives a request, waiting for one; `send` answers it.
    ///
    /// # Errors
    /// `State` (the last request is still to be answered, or another thread is receiving with this
    /// handle) or `Terminated`.
    pub fn recv(&self) -> Result<Message, Error> {
        self.recv_until(Patience::Endless)
    }

    /// As `recv`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// As `recv`, and `TimedOut`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Message, Error> {
        self.recv_until(Patience::For(timeout))
    }

    /// As `recv`, if a request is here now.
    ///
    /// # Errors
    /// As `recv`, and `WouldBlock`.
    pub fn try_recv(&self) -> Result<Message, Error> {
        self.recv_by(|handle| handle.try_recv_with(receive))
    }

    fn recv_until(&self, patience: Patience) -> Result<Message, Error> {
        self.recv_by(|handle| handle.recv_until(patience, receive))
    }

    fn recv_by(
        &self,
        receive: impl FnOnce(&Handle<Replier>) -> Result<(Message, Ticket), Error>,
    ) -> Result<Message, Error> {
        self.turn.lock().begin_to_receive()?;
        let found = receive(&self.handle);
        *self.turn.lock() =
            found.as_ref().map_or(Turn::Receive, |(_, ticket)| Turn::Answer(*ticket));
        found.map(|(message, _)| message)
    }

    /// Answers the request that this handle received last. Never waits: if the asker is gone or
    /// has no room, the reply is dropped and counted.
    ///
    /// # Errors
    /// The message with `State` (there is no such request), `TooLong` or `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let message = message.into();
        let mut turn = self.turn.lock();
        let Turn::Answer(ticket) = *turn else {
            let text = "no request is to be answered: receive one first";
            return Err(SendError::new(message, Error::new(ErrorKind::State, text)));
        };
        answer(&self.handle, ticket, message)?;
        *turn = Turn::Receive;
        Ok(())
    }

    /// Receives a request that can be answered at any time, on any thread; waits for at most
    /// `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn next_request(&self, timeout: Duration) -> Result<Request, Error> {
        let (message, ticket) = self.handle.recv_until(Patience::For(timeout), receive)?;
        Ok(Request { message, ticket, handle: self.handle.clone(), answered: false })
    }

    /// Closes the socket for all its handles: waits up to linger for replies to leave; then its
    /// ports are free.
    pub fn close(self) {
        self.handle.close();
    }
}

impl Drop for Rep {
    /// The request that this handle received last will not be answered.
    fn drop(&mut self) {
        if let Turn::Answer(ticket) = *self.turn.get_mut() {
            abandon(&self.handle, ticket);
        }
    }
}

fn abandon(handle: &Handle<Replier>, ticket: Ticket) {
    // Terminated already: there is nothing to abandon.
    drop(handle.shared.command(|core| core.role.abandon(ticket)));
}

/// A request that waits for its reply. Dropping it unanswered leaves the asker to its time limit.
pub struct Request {
    message: Message,
    ticket: Ticket,
    handle: Arc<Handle<Replier>>,
    answered: bool,
}

impl Request {
    /// What was asked.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Answers it, as [`Rep::send`] does.
    ///
    /// # Errors
    /// The reply with `TooLong` or `Terminated`.
    pub fn reply(mut self, message: impl Into<Message>) -> Result<(), SendError> {
        answer(&self.handle, self.ticket, message.into())?;
        self.answered = true;
        Ok(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.answered {
            abandon(&self.handle, self.ticket);
        }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("message", &self.message).finish_non_exhaustive()
    }
}

impl Turn {
    fn begin_to_receive(&mut self) -> Result<(), Error> {
        let text = match self {
            Self::Receive => {
                *self = Self::Receiving;
                return Ok(());
            }
            Self::Receiving => "another thread is receiving with this handle: clone it",
            Self::Answer(_) => "the last request is to be answered first: call send",
        };
        Err(Error::new(ErrorKind::State, text))
    }
}

fn receive(core: &mut Core<Replier>) -> Option<(Message, Ticket)> {
    core.role.receive(&mut core.net)
}

fn answer(handle: &Handle<Replier>, ticket: Ticket, message: Message) -> Result<(), SendError> {
    handle.send_with(message, &mut Patience::Endless, |core, message| {
        core.role.reply(&mut core.net, ticket, message)
    })
}
