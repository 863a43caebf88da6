use std::future::{Future, poll_fn};

use super::{Place, close_async, receive, send};
use crate::sockets::router::{give, take};
use crate::{Error, Message, Router, RoutingId, SendError};

impl Router {
    /// As [`send_to`](Router::send_to), for tasks. Dropped before it is ready, nothing was sent.
    ///
    /// # Errors
    /// As `send_to`.
    pub fn send_to_async<M: Into<Message>>(
        &self,
        to: &RoutingId,
        message: M,
    ) -> impl Future<Output = Result<(), SendError>> + Send + use<'_, M> {
        let to = to.clone();
        send(&self.handle, message.into(), move |core, message| give(core, &to, message))
    }

    /// As [`recv`](Router::recv), for tasks. Dropped before it is ready, nothing was taken.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_async(
        &self,
    ) -> impl Future<Output = Result<(RoutingId, Message), Error>> + Send + '_ {
        receive(&self.handle, take)
    }

    fn before_close(&mut self) {}
}

close_async!(Router, "ready once what was accepted has left, or linger is over.");
