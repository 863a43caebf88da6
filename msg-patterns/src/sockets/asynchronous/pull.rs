use std::future::{Future, poll_fn};

use super::{Place, close_async, receive};
use crate::{Error, Message, Pull};

impl Pull {
    /// As [`recv`](Pull::recv), for tasks. Dropped before it is ready, nothing was taken. A message
    /// to be acknowledged counts as processed when the next one is asked for.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
        receive(&self.handle, |core| self.pull(core))
    }

    /// As [`recv_many`](Pull::recv_many), for tasks. Dropped before it is ready, nothing was taken.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_many_async<'a>(
        &'a self,
        messages: &'a mut Vec<Message>,
        max: usize,
    ) -> impl Future<Output = Result<usize, Error>> + Send + 'a {
        let mut place = Place::new(&*self.handle);
        poll_fn(move |task| {
            if max == 0 {
                return std::task::Poll::Ready(Ok(0));
            }
            place.receive(task, |core| self.pull(core)).map_ok(|first| {
                messages.push(first);
                1 + self.pull_many(messages, max - 1)
            })
        })
    }

    fn before_close(&mut self) {
        // Terminated already: there is nobody to tell.
        drop(self.ack());
    }
}

close_async!(Pull, "the last message is acknowledged, those not received are dropped.");
