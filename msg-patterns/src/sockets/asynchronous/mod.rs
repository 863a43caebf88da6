//! The calls that wait, for tasks: no thread sleeps for them.
//!
//! Each future has its whole effect in the poll that says it is ready. Dropped before, it has sent
//! and taken nothing.

mod events;
mod place;
mod publish;
mod pull;
mod push;
mod reply;
mod request;
mod router;
mod sink;
mod stream;
mod subscribe;
#[cfg(all(test, feature = "tcp"))]
mod tests;
mod two_way;

use std::future::{Future, poll_fn};

use super::Handle;
use super::common::Unsent;
use crate::driver::{Awaits, Leaves};
use crate::engine::{Core, Room};
use crate::roles::Role;
use crate::{Error, Message, SendError};

pub use events::MonitorStream;
pub(super) use place::Place;
pub use sink::{Drain, Outgoing};
pub use stream::{Incoming, Source};

/// Receives with `attempt`.
pub(super) fn receive<'a, R: Role, T>(
    handle: &'a Handle<R>,
    mut attempt: impl FnMut(&mut Core<R>) -> Option<T> + Send + 'a,
) -> impl Future<Output = Result<T, Error>> + Send + 'a {
    let mut place = Place::new(handle);
    poll_fn(move |task| place.receive(task, &mut attempt))
}

/// Sends with `attempt`.
pub(super) fn send<'a, R: Role, T: 'a>(
    handle: &'a Handle<R>,
    message: Message,
    mut attempt: impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)> + Send + 'a,
) -> impl Future<Output = Result<T, SendError>> + Send + 'a {
    let mut place = Place::new(handle);
    let mut unsent = Outbox::new(handle, message);
    poll_fn(move |task| place.send(task, &mut unsent, &mut attempt))
}

/// A message on its way into a socket.
pub(crate) enum Outbox {
    Unsent(Unsent),
    /// It cannot be sent at all.
    Refused(SendError),
    /// It has left, or was handed back.
    Empty,
}

impl Outbox {
    pub(super) fn new<R: Role>(handle: &Handle<R>, message: Message) -> Self {
        match handle.checked(message) {
            Ok(message) => Self::Unsent(Unsent::new(message)),
            Err(refused) => Self::Refused(refused),
        }
    }

    fn refused(self, error: Error) -> SendError {
        match self {
            Self::Unsent(unsent) => unsent.refused(error),
            Self::Refused(refused) => refused,
            Self::Empty => SendError::new(Message::from(""), error),
        }
    }
}

/// What is waited for where anything that happens may be it.
fn anything() -> Awaits {
    Awaits::Anything
}

macro_rules! close_async {
    ($socket:ident, $doc:literal) => {
        impl $socket {
            /// Closes the socket for all its handles, as [`close`](Self::close) does:
            #[doc = $doc]
            ///
            /// Once polled it goes on by itself: dropped then, the socket still closes within its
            /// linger. Dropped before, it is as if the socket were dropped.
            pub fn close_async(self) -> impl Future<Output = ()> + Send {
                let mut place = Place::new(self.handle.clone());
                let mut socket = Some(self);
                poll_fn(move |task| {
                    if let Some(socket) = &mut socket {
                        socket.before_close();
                    }
                    let closed = place.close(task);
                    if closed.is_ready() {
                        socket = None;
                    }
                    closed
                })
            }
        }
    };
}
use close_async;

/// Which of a task's sends gather with others.
fn leaves<R: Role>() -> Leaves {
    if R::GATHERS { Leaves::WithOthers } else { Leaves::Now }
}
