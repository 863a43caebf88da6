use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use super::Outbox;
use super::place::send;
use super::stream::Waits;
use crate::driver::Ticket;
use crate::engine::Core;
use crate::roles::pusher::Pusher;
use crate::sockets::Sealed;
use crate::sockets::publishing::publish;
use crate::sockets::xsub;
use crate::{Dealer, ErrorKind, Message, Pair, Pub, Push, SendError, XPub, XSub};

/// A socket to send to, as a sink; made by `sink` of [`Pub`], [`Push`] and others that send. It is a
/// handle of its own to the socket.
///
/// A message that it takes leaves at once if there is room. Otherwise it waits in the sink, one at a
/// time; dropping the sink then drops it. Closing the sink sends what waits and leaves the socket
/// open.
///
/// ```
/// use futures_util::SinkExt;
/// use msg_patterns::{Context, Pull, Push};
///
/// # futures_lite::future::block_on(async {
/// let context = Context::new();
/// let pull = Pull::new(&context)?;
/// let push = Push::new(&context)?;
/// push.connect(&pull.bind("tcp://127.0.0.1:0")?.to_string())?;
/// push.sink().send("hello".into()).await?;
/// assert_eq!(pull.recv_async().await?.first(), "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "sinks do nothing unless polled"]
pub struct Outgoing<S: Drain> {
    socket: S,
    ticket: Ticket,
    waiting: Option<Held>,
}

/// A socket that is a sink. Implemented by sockets of this crate and by no other type.
pub trait Drain: Sealed + Unpin {
    #[doc(hidden)]
    fn send_now(&self, message: Message) -> Result<(), SendError>;
    #[doc(hidden)]
    fn hold(&self, message: Message) -> Held;
    #[doc(hidden)]
    fn poll_held(
        &self,
        place: &mut Waits<'_>,
        held: &mut Held,
        task: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>>;
    #[doc(hidden)]
    fn forget(&self, place: &mut Waits<'_>);
}

/// A message that waits in a sink.
#[doc(hidden)]
pub struct Held(Outbox);

impl<S: Drain> Outgoing<S> {
    fn poll_waiting(&mut self, task: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(Ok(())) };
        let sent = ready!(self.socket.poll_held(&mut Waits(&mut self.ticket), waiting, task));
        self.waiting = None;
        Poll::Ready(sent)
    }
}

impl<S: Drain> Sink<Message> for Outgoing<S> {
    type Error = SendError;

    fn poll_ready(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_waiting(task)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        match self.socket.send_now(message) {
            Err(refused) if may_wait(refused.kind()) => {
                self.waiting = Some(self.socket.hold(refused.message));
                Ok(())
            }
            done => done,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_waiting(task)
    }

    fn poll_close(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_waiting(task)
    }
}

impl<S: Drain> Drop for Outgoing<S> {
    fn drop(&mut self) {
        self.socket.forget(&mut Waits(&mut self.ticket));
    }
}

impl<S: Drain + std::fmt::Debug> std::fmt::Debug for Outgoing<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").field("socket", &self.socket).finish_non_exhaustive()
    }
}

fn may_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::NoPeer)
}

macro_rules! drain {
    ($socket:ident, $give:expr) => {
        impl Drain for $socket {
            fn send_now(&self, message: Message) -> Result<(), SendError> {
                self.try_send(message)
            }

            fn hold(&self, message: Message) -> Held {
                Held(Outbox::new(&self.handle, message))
            }

            fn poll_held(
                &self,
                place: &mut Waits<'_>,
                held: &mut Held,
                task: &mut Context<'_>,
            ) -> Poll<Result<(), SendError>> {
                send(&self.handle, place.0, task, &mut held.0, &mut $give)
            }

            fn forget(&self, place: &mut Waits<'_>) {
                self.handle.shared.forget(place.0);
            }
        }

        impl $socket {
            /// The socket as a sink.
            pub fn sink(&self) -> Outgoing<Self> {
                Outgoing { socket: self.clone(), ticket: None, waiting: None }
            }
        }
    };
}

drain!(Push, |core: &mut Core<Pusher>, message| core.role.push(&mut core.net, message));
drain!(Pub, publish);
drain!(Dealer, Dealer::give);
drain!(Pair, Pair::give);
drain!(XPub, publish);
drain!(XSub, xsub::give);
