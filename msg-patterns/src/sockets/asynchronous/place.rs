use std::ops::Deref;
use std::task::{Context, Poll};

use super::{Outbox, anything, leaves};
use crate::driver::{Awaits, Leaves, Stop, Ticket};
use crate::engine::{Core, Room};
use crate::roles::Role;
use crate::sockets::Handle;
use crate::{Error, Message, SendError};

/// The place of a task that waits in a socket; given back when it is dropped.
pub(crate) struct Place<R: Role, H: Deref<Target = Handle<R>>> {
    handle: H,
    ticket: Ticket,
}

impl<R: Role, H: Deref<Target = Handle<R>>> Place<R, H> {
    pub(crate) fn new(handle: H) -> Self {
        Self { handle, ticket: None }
    }

    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    /// Looks with `attempt`; ready once that gives something or the socket is over.
    pub(crate) fn receive<T>(
        &mut self,
        task: &mut Context<'_>,
        attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Poll<Result<T, Error>> {
        self.look(task, anything, Leaves::Now, attempt).map_err(|_| Error::terminated())
    }

    /// As `receive`, for what becomes of a request that `awaits` names once it has begun.
    pub(crate) fn look<T>(
        &mut self,
        task: &mut Context<'_>,
        awaits: impl Fn() -> Awaits,
        leaves: Leaves,
        attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Poll<Result<T, Stop>> {
        self.handle.shared.poll(&mut self.ticket, awaits, leaves, task, attempt)
    }

    /// Sends what is in `outbox` with `attempt`.
    pub(crate) fn send<T>(
        &mut self,
        task: &mut Context<'_>,
        outbox: &mut Outbox,
        attempt: &mut impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)>,
    ) -> Poll<Result<T, SendError>> {
        send(&self.handle, &mut self.ticket, task, outbox, attempt)
    }

    /// The task waits no more.
    pub(crate) fn forget(&mut self) {
        self.handle.shared.forget(&mut self.ticket);
    }

    pub(crate) fn close(&mut self, task: &mut Context<'_>) -> Poll<()> {
        self.handle.poll_close(&mut self.ticket, task)
    }
}

impl<R: Role, H: Deref<Target = Handle<R>>> Drop for Place<R, H> {
    fn drop(&mut self) {
        self.handle.shared.forget(&mut self.ticket);
    }
}

/// Sends what is in `outbox` with `attempt`.
pub(super) fn send<R: Role, T>(
    handle: &Handle<R>,
    ticket: &mut Ticket,
    task: &mut Context<'_>,
    outbox: &mut Outbox,
    attempt: &mut impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)>,
) -> Poll<Result<T, SendError>> {
    let sent = match outbox {
        Outbox::Unsent(unsent) => {
            let try_it = |core: &mut Core<R>| unsent.attempt(core, attempt);
            handle.shared.poll(ticket, anything, leaves::<R>(), task, try_it)
        }
        _ => Poll::Ready(Err(Stop::Terminated)),
    };
    sent.map(|sent| {
        let outbox = std::mem::replace(outbox, Outbox::Empty);
        sent.unwrap_or_else(|_| Err(outbox.refused(Error::terminated())))
    })
}
