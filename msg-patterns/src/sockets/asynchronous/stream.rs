use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::anything;
use crate::driver::{Leaves, Shared, Ticket};
use crate::engine::Core;
use crate::roles::Role;
use crate::sockets::Sealed;
use crate::sockets::reply::receive;
use crate::sockets::router::take;
use crate::sockets::xpub;
use crate::{
    Dealer, Message, Pair, Pull, Rep, Request, Router, RoutingId, Sub, Upstream, XPub, XSub,
};

/// What comes in at a socket, as a stream; made by `stream` of [`Sub`], [`Pull`], [`Rep`] and
/// other sockets that receive. It is a handle of its own to the socket. It ends when the socket is closed or its context shuts down.
///
/// ```
/// use futures_util::StreamExt;
/// use msg_patterns::{Context, Pull, Push};
///
/// # futures_lite::future::block_on(async {
/// let context = Context::new();
/// let pull = Pull::new(&context)?;
/// let push = Push::new(&context)?;
/// push.connect(&pull.bind("tcp://127.0.0.1:0")?.to_string())?;
/// push.send_async("first").await?;
/// push.send_async("second").await?;
/// let two: Vec<_> = pull.stream().take(2).collect().await;
/// assert_eq!(two[1].first(), "second");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<S: Source> {
    socket: S,
    ticket: Ticket,
}

/// A socket whose messages come as a stream. Implemented by sockets of this crate and by no other
/// type.
pub trait Source: Sealed + Unpin {
    /// What comes.
    type Item;
    #[doc(hidden)]
    fn poll_item(&self, place: &mut Waits<'_>, task: &mut Context<'_>) -> Poll<Option<Self::Item>>;
    #[doc(hidden)]
    fn forget(&self, place: &mut Waits<'_>);
}

/// The place of the task that waits.
#[doc(hidden)]
#[derive(Debug)]
pub struct Waits<'a>(pub(super) &'a mut Ticket);

impl<S: Source> Stream for Incoming<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Self { socket, ticket } = &mut *self;
        socket.poll_item(&mut Waits(ticket), task)
    }
}

impl<S: Source> Drop for Incoming<S> {
    fn drop(&mut self) {
        self.socket.forget(&mut Waits(&mut self.ticket));
    }
}

fn look<R: Role, T>(
    shared: &Shared<R>,
    place: &mut Waits<'_>,
    task: &mut Context<'_>,
    attempt: impl FnMut(&mut Core<R>) -> Option<T>,
) -> Poll<Option<T>> {
    shared.poll(place.0, anything, Leaves::Now, task, attempt).map(Result::ok)
}

macro_rules! source {
    ($socket:ident, $item:ty, $take:expr, $(#[$doc:meta])*) => {
        impl Source for $socket {
            type Item = $item;

            fn poll_item(
                &self,
                place: &mut Waits<'_>,
                task: &mut Context<'_>,
            ) -> Poll<Option<$item>> {
                let take = $take;
                look(&self.handle.shared, place, task, |core| take(self, core))
            }

            fn forget(&self, place: &mut Waits<'_>) {
                self.handle.shared.forget(place.0);
            }
        }

        impl $socket {
            $(#[$doc])*
            pub fn stream(&self) -> Incoming<Self> {
                Incoming { socket: self.clone(), ticket: None }
            }
        }
    };
}

source!(
    Sub,
    Message,
    |_: &Sub, core: &mut Core<crate::roles::subscriber::Subscriber>| Sub::take(core),
    /// What matches the subscriptions, as a stream.
);
source!(
    XSub,
    Message,
    |_: &XSub, core: &mut Core<crate::roles::xsubscriber::XSubscriber>| XSub::take(core),
    /// The messages as a stream.
);
source!(
    XPub,
    Upstream,
    |_: &XPub, core: &mut Core<crate::roles::xpublisher::XPublisher>| xpub::take(core),
    /// What comes up from subscribers, as a stream.
);
source!(
    Pull,
    Message,
    Pull::pull,
    /// The messages as a stream. One to be acknowledged counts as processed when the stream is asked
    /// for the next.
);
source!(
    Dealer,
    Message,
    |_: &Dealer, core: &mut Core<crate::roles::dealer::Dealer>| Dealer::take(core),
    /// The messages as a stream.
);
source!(
    Pair,
    Message,
    |_: &Pair, core: &mut Core<crate::roles::pair::Pair>| Pair::take(core),
    /// The messages as a stream.
);
source!(
    Router,
    (RoutingId, Message),
    |_: &Router, core: &mut Core<crate::roles::router::Router>| take(core),
    /// The messages as a stream, each with the id of its peer.
);
source!(
    Rep,
    Request,
    |rep: &Rep, core: &mut Core<crate::roles::replier::Replier>| {
        receive(core).map(|found| Request::of(found, rep.handle.clone()))
    },
    /// The requests as a stream, each to be answered at any time.
);
