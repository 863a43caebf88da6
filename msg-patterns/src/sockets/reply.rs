use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use msg_proto::replies::Ticket;
use msg_proto::types::SocketType;

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
    pub(super) handle: Arc<Handle<Replier>>,
    pub(super) turn: Turn,
}

/// What a handle may do next: receive, nothing while a thread is at it, or answer a ticket, whose
/// number it then is.
#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU64);

/// No ticket has these numbers: theirs begin at 1.
pub(super) const RECEIVE: u64 = 0;
const BUSY: u64 = u64::MAX;

common_calls!(Rep);

impl Socket for Rep {
    const TYPE: SocketType = SocketType::Rep;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let handle = Handle::open(context, options.0, 0, Replier::new())?;
        Ok(Self { handle, turn: Turn::default() })
    }
}

impl Clone for Rep {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), turn: Turn::default() }
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
        self.turn.begin_to_receive()?;
        let found = receive(&self.handle);
        self.turn.end(found.as_ref().map_or(RECEIVE, |(_, ticket)| ticket.0));
        found.map(|(message, _)| message)
    }

    /// Answers the request that this handle received last. Never waits: if the asker is gone or
    /// has no room, the reply is dropped and counted.
    ///
    /// # Errors
    /// The message with `State` (there is no such request), `TooLong` or `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let message = message.into();
        let Some(ticket) = self.turn.begin_to_answer() else {
            let text = "no request is to be answered: receive one first";
            return Err(SendError::new(message, Error::new(ErrorKind::State, text)));
        };
        let answered = answer(&self.handle, ticket, message);
        self.turn.end(if answered.is_ok() { RECEIVE } else { ticket.0 });
        answered
    }

    /// Receives a request that can be answered at any time, on any thread; waits for at most
    /// `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn next_request(&self, timeout: Duration) -> Result<Request, Error> {
        let found = self.handle.recv_until(Patience::For(timeout), receive)?;
        Ok(Request::of(found, self.handle.clone()))
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
        if let Some(ticket) = self.turn.begin_to_answer() {
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
    pub(super) fn of((message, ticket): (Message, Ticket), handle: Arc<Handle<Replier>>) -> Self {
        Self { message, ticket, handle, answered: false }
    }

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
    pub(super) fn begin_to_receive(&self) -> Result<(), Error> {
        let text = match self.0.compare_exchange(RECEIVE, BUSY, Acquire, Relaxed) {
            Ok(_) => return Ok(()),
            Err(BUSY) => "another thread is using this handle: clone it",
            Err(_) => "the last request is to be answered first: call send",
        };
        Err(Error::new(ErrorKind::State, text))
    }

    /// The request to be answered, if there is one and no other thread is at it.
    fn begin_to_answer(&self) -> Option<Ticket> {
        let ticket = self.0.load(Acquire);
        let is_one = ticket != RECEIVE && ticket != BUSY;
        let mine = is_one && self.0.compare_exchange(ticket, BUSY, Acquire, Relaxed).is_ok();
        mine.then_some(Ticket(ticket))
    }

    /// What is next, once a thread is done.
    pub(super) fn end(&self, next: u64) {
        self.0.store(next, Release);
    }
}

pub(super) fn receive(core: &mut Core<Replier>) -> Option<(Message, Ticket)> {
    core.role.receive(&mut core.net)
}

fn answer(handle: &Handle<Replier>, ticket: Ticket, message: Message) -> Result<(), SendError> {
    handle.send_with(message, &mut Patience::Endless, |core, message| {
        core.role.reply(&mut core.net, ticket, message)
    })
}
