use std::future::{Future, poll_fn};

use super::{Place, close_async, receive, send};
use crate::sockets::MatchingListener;
use crate::sockets::publish::publish;
use crate::{Error, Message, Pub, SendError};

impl Pub {
    /// As [`send`](Pub::send), for tasks: ready at once, or with [`OnFull::Block`](crate::OnFull)
    /// when all matching subscribers have room. Dropped before, nothing was sent.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_async(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
        send(&self.handle, message.into(), publish)
    }

    /// As [`wait_matching`](Pub::wait_matching), for tasks and without a time limit.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn wait_matching_async(
        &self,
        subject: impl AsRef<[u8]>,
        subscribers: usize,
    ) -> impl Future<Output = Result<(), Error>> + Send + '_ {
        let subject = subject.as_ref().to_vec();
        receive(&self.handle, move |core| {
            (core.role.matching(&core.net, &subject) >= subscribers).then_some(())
        })
    }

    fn before_close(&mut self) {}
}

close_async!(Pub, "ready once what was accepted has left, or linger is over.");

impl MatchingListener {
    /// As [`next_change`](MatchingListener::next_change), for tasks and without a time limit.
    /// Dropped before it is ready, no change was noticed.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn next_change_async(&mut self) -> impl Future<Output = Result<usize, Error>> + Send + '_ {
        let Self { handle, subject, seen } = self;
        receive(handle, |core| {
            let count = core.role.matching(&core.net, subject);
            (count != *seen).then(|| {
                *seen = count;
                count
            })
        })
    }
}
