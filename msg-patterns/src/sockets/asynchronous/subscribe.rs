use std::future::{Future, poll_fn};

use super::{Place, close_async, receive, send};
use crate::sockets::xsub::{checked, give};
use crate::{Error, Message, SendError, Sub, XSub};

macro_rules! receiving_async {
    ($socket:ident) => {
        impl $socket {
            /// As [`recv`](Self::recv), for tasks. Dropped before it is ready, nothing was taken.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
                receive(&self.handle, Self::take)
            }

            /// As [`recv_many`](Self::recv_many), for tasks. Dropped before it is ready, nothing was
            /// taken.
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
                    place.receive(task, Self::take).map_ok(|first| {
                        messages.push(first);
                        1 + self.receive_many(messages, max - 1)
                    })
                })
            }

            fn before_close(&mut self) {}
        }
    };
}

receiving_async!(Sub);
receiving_async!(XSub);

impl XSub {
    /// As [`send`](XSub::send), for tasks: ready at once. Dropped before it is polled, nothing was
    /// sent.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_async(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
        let message = checked(message.into());
        async move { send(&self.handle, message?, give).await }
    }
}

close_async!(Sub, "its ports are free when it is ready.");
close_async!(XSub, "ready once what was accepted has left, or linger is over.");
