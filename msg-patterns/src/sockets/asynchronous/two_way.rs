use std::future::{Future, poll_fn};

use super::{Place, close_async, receive, send};
use crate::{Dealer, Error, Message, Pair, SendError};

macro_rules! two_way_async {
    ($socket:ident, $room:literal) => {
        impl $socket {
            #[doc = concat!("As [`send`](Self::send), for tasks: ready once ", $room)]
            /// has the message. Dropped before, nothing was sent.
            ///
            /// # Errors
            /// As `send`.
            pub fn send_async(
                &self,
                message: impl Into<Message>,
            ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
                send(&self.handle, message.into(), Self::give)
            }

            /// As [`recv`](Self::recv), for tasks. Dropped before it is ready, nothing was taken.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
                receive(&self.handle, Self::take)
            }

            fn before_close(&mut self) {}
        }

        close_async!($socket, "ready once what was accepted has left, or linger is over.");
    };
}

two_way_async!(Dealer, "a peer with room");
two_way_async!(Pair, "the peer");
