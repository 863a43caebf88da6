use std::future::{Future, poll_fn};

use super::{Place, close_async, receive, send};
use crate::engine::Core;
use crate::roles::publisher::Publishes;
use crate::roles::xpublisher::XPublisher;
use crate::sockets::MatchingListener;
use crate::sockets::publishing::publish;
use crate::sockets::xpub::{give, take};
use crate::{Error, Message, Pub, SendError, Subscription, Upstream, XPub};

macro_rules! publishing_async {
    ($socket:ident) => {
        impl $socket {
            /// As [`send`](Self::send), for tasks: ready at once, or with
            /// [`OnFull::Block`](crate::OnFull) when all matching subscribers have room. Dropped
            /// before, nothing was sent.
            ///
            /// # Errors
            /// As `send`.
            pub fn send_async(
                &self,
                message: impl Into<Message>,
            ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
                send(&self.handle, message.into(), publish)
            }

            /// As [`wait_matching`](Self::wait_matching), for tasks and without a time limit.
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
                    let matching = core.role.publisher().matching(&core.net, &subject);
                    (matching >= subscribers).then_some(())
                })
            }

            fn before_close(&mut self) {}
        }

        close_async!($socket, "ready once what was accepted has left, or linger is over.");
    };
}

publishing_async!(Pub);
publishing_async!(XPub);

impl XPub {
    /// As [`recv`](XPub::recv), for tasks. Dropped before it is ready, nothing was taken.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_async(&self) -> impl Future<Output = Result<Upstream, Error>> + Send + '_ {
        receive(&self.handle, take)
    }

    /// As [`send_to`](XPub::send_to), for tasks. Dropped before it is ready, nothing was sent.
    ///
    /// # Errors
    /// As `send_to`.
    pub fn send_to_async<M: Into<Message>>(
        &self,
        to: &Subscription,
        message: M,
    ) -> impl Future<Output = Result<(), SendError>> + Send + use<'_, M> {
        let to = to.clone();
        send(&self.handle, message.into(), move |core: &mut Core<XPublisher>, message| {
            give(core, &to, message)
        })
    }
}

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
