use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::task::{Context, Poll};

use msg_proto::requests::RequestId;

use super::{Outbox, Place, anything, close_async};
use crate::driver::{Awaits, Leaves};
use crate::engine::{Core, Room};
use crate::roles::requester::Requester;
use crate::sockets::Handle;
use crate::sockets::request::cancel;
use crate::{Error, Message, Req, SendError};

impl Req {
    /// As [`request`](Req::request), for tasks and without a time limit: wrap it in your executor's.
    /// Dropped before it is ready, the request is cancelled: it is not sent if that can be helped,
    /// and a late reply is dropped.
    ///
    /// # Errors
    /// `PeerGone`, `TooLong` or `Terminated`.
    pub fn request_async(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
        let mut outbox = Outbox::new(&self.handle, message.into());
        let mut asked = Asked { place: Place::new(&*self.handle), id: None };
        poll_fn(move |task| asked.poll(&mut outbox, task))
    }

    /// As [`send`](Req::send), for tasks; `recv_async` gets the reply. Dropped before it is ready,
    /// nothing was sent.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_async(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + '_ {
        let mut place = Place::new(&*self.handle);
        let mut outbox = Outbox::new(&self.handle, message.into());
        poll_fn(move |task| {
            let mut current = self.current.lock();
            if let Err(error) = self.make_way(&mut current) {
                return Poll::Ready(Err(
                    std::mem::replace(&mut outbox, Outbox::Empty).refused(error)
                ));
            }
            place.send(task, &mut outbox, &mut request).map_ok(|id| *current = Some(id))
        })
    }

    /// As [`recv`](Req::recv), for tasks. Dropped before it is ready, nothing was taken.
    ///
    /// # Errors
    /// As `recv`.
    pub fn recv_async(&self) -> impl Future<Output = Result<Message, Error>> + Send + '_ {
        let mut place = Place::new(&*self.handle);
        let mut awaited = None;
        poll_fn(move |task| {
            let id = match awaited {
                Some(id) => id,
                None => *awaited.insert(match self.under_way() {
                    Ok(id) => id,
                    Err(error) => return Poll::Ready(Err(error)),
                }),
            };
            let awaits = || Awaits::Reply(id.0);
            let found = place.look(task, awaits, Leaves::Now, |core| core.role.take_result(id));
            found.map(|found| {
                let result = found.map_err(|_| Error::terminated())?;
                self.end(id);
                result
            })
        })
    }

    fn before_close(&mut self) {}
}

close_async!(Req, "ready once what was accepted has left, or linger is over.");

/// A request that is cancelled when nobody waits for its reply any more.
struct Asked<H: Deref<Target = Handle<Requester>>> {
    place: Place<Requester, H>,
    id: Option<RequestId>,
}

impl<H: Deref<Target = Handle<Requester>>> Asked<H> {
    fn poll(
        &mut self,
        outbox: &mut Outbox,
        task: &mut Context<'_>,
    ) -> Poll<Result<Message, Error>> {
        let Self { place, id } = self;
        let asked = std::cell::Cell::new(*id);
        let awaits = || asked.get().map_or(anything(), |id| Awaits::Reply(id.0));
        let found = place.look(task, awaits, Leaves::Now, |core| {
            let id = match asked.get() {
                Some(id) => id,
                None => match ask(core, outbox)? {
                    Ok(id) => id,
                    Err(refused) => return Some(Err(refused.into())),
                },
            };
            asked.set(Some(id));
            core.role.take_result(id)
        });
        *id = asked.get();
        found.map(|found| {
            if found.is_ok() {
                *id = None;
            }
            found.unwrap_or_else(|_| Err(Error::terminated()))
        })
    }
}

impl<H: Deref<Target = Handle<Requester>>> Drop for Asked<H> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            cancel(self.place.handle(), id);
        }
    }
}

/// Sends what is in `outbox`, if there is room.
fn ask(core: &mut Core<Requester>, outbox: &mut Outbox) -> Option<Result<RequestId, SendError>> {
    match outbox {
        Outbox::Unsent(unsent) => unsent.attempt(core, &mut request),
        _ => {
            let refused = std::mem::replace(outbox, Outbox::Empty);
            Some(Err(refused.refused(Error::terminated())))
        }
    }
}

fn request(core: &mut Core<Requester>, message: Message) -> Result<RequestId, (Message, Room)> {
    core.role.request(&mut core.net, message)
}
