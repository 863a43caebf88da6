use std::future::{Future, poll_fn};

use super::{Place, close_async, receive};
use crate::{Error, Message, Sub};

impl Sub {
    /// As [`recv`](Sub::recv), for tasks. Dropped before it is ready, nothing was taken.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
        receive(&self.handle, |core| core.role.receive(&mut core.net))
    }

    /// As [`recv_many`](Sub::recv_many), for tasks. Dropped before it is ready, nothing was taken.
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
            place.receive(task, |core| core.role.receive(&mut core.net)).map_ok(|first| {
                messages.push(first);
                1 + self.receive_many(messages, max - 1)
            })
        })
    }

    fn before_close(&mut self) {}
}

close_async!(Sub, "its ports are free when it is ready.");
