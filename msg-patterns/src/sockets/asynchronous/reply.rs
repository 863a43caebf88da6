use std::future::{Future, poll_fn};
use std::task::Poll;

use super::{Place, close_async, receive};
use crate::sockets::reply::{RECEIVE, receive as receive_request};
use crate::{Error, Message, Rep, Request};

impl Rep {
    /// As [`recv`](Rep::recv), for tasks; [`send`](Rep::send), which never waits, answers. Dropped
    /// before it is ready, nothing was taken.
    ///
    /// # Errors
    /// As `recv`.
    pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
        let mut place = Place::new(&*self.handle);
        poll_fn(move |task| {
            if let Err(error) = self.turn.begin_to_receive() {
                return Poll::Ready(Err(error));
            }
            let found = place.receive(task, receive_request);
            let next = match &found {
                Poll::Ready(Ok((_, ticket))) => ticket.0,
                _ => RECEIVE,
            };
            self.turn.end(next);
            found.map_ok(|(message, _)| message)
        })
    }

    /// As [`next_request`](Rep::next_request), for tasks and without a time limit. Dropped before it
    /// is ready, nothing was taken.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn next_request_async(&self) -> impl Future<Output = Result<Request, Error>> + Send + '_ {
        let request = |found| Request::of(found, self.handle.clone());
        receive(&self.handle, move |core| receive_request(core).map(request))
    }

    fn before_close(&mut self) {}
}

close_async!(Rep, "ready once replies have left, or linger is over.");
