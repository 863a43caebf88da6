use std::future::{Future, poll_fn};

use super::{Place, close_async, send};
use crate::{Message, Push, SendError};

impl Push {
    /// As [`send`](Push::send), for tasks: ready once a peer with room has the message. Dropped
    /// before, nothing was sent.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_async(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
        let push = |core: &mut crate::engine::Core<crate::roles::pusher::Pusher>, message| {
            core.role.push(&mut core.net, message)
        };
        send(&self.handle, message.into(), push)
    }

    fn before_close(&mut self) {}
}

close_async!(Push, "ready once what was accepted has left, or linger is over.");
