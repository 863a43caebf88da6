//! One way through a proxy: what one socket receives goes to the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use super::control::{Counts, Passing};
use crate::driver::{Awaits, Leaves};
use crate::engine::{Core, Room};
use crate::roles::Role;
use crate::sockets::Handle;
use crate::sockets::asynchronous::Place;
use crate::{Error, Message, Upstream};

/// What is carried.
pub(super) trait Carried: Send {
    /// Bytes over all parts.
    fn size(&self) -> usize;
    /// It as a message; shares the bytes.
    fn copy(&self) -> Message;
}

impl Carried for Message {
    fn size(&self) -> usize {
        self.len()
    }

    fn copy(&self) -> Message {
        self.clone()
    }
}

impl Carried for Upstream {
    fn size(&self) -> usize {
        match self {
            Self::Subscription(subscription) => subscription.topic().len(),
            Self::Message { message, .. } => message.len(),
        }
    }

    fn copy(&self) -> Message {
        self.clone().into_message()
    }
}

/// Takes a copy of what passes, if it has room.
pub(super) type Capture = Box<dyn Fn(Message) -> bool + Send>;

/// Where a flow says what it did.
pub(super) struct Tap<'a> {
    pub(super) counts: &'a Counts,
    pub(super) passing: &'a Passing,
    pub(super) capture: Option<&'a Capture>,
}

/// One way, whatever its sockets are.
pub(super) trait Way: Send {
    /// Passes on what there is; ready only when a socket is over.
    fn poll(&mut self, task: &mut Context<'_>, tap: &Tap<'_>) -> Poll<Error>;
    /// Passes on what is held; ready once nothing is.
    fn poll_held(&mut self, task: &mut Context<'_>, tap: &Tap<'_>) -> Poll<Result<(), Error>>;
    /// The run has ended.
    fn end(&mut self);
}

type Take<A, T> = Box<dyn Fn(&mut Core<A>) -> Option<T> + Send>;
type Given<T> = Result<(), (T, Room)>;

/// One way between two sockets.
pub(super) struct Flow<A: Role, B: Role, T> {
    from: Place<A, Arc<Handle<A>>>,
    to: Place<B, Arc<Handle<B>>>,
    take: Take<A, T>,
    give: fn(&mut Core<B>, T) -> Given<T>,
    at_end: Option<Box<dyn Fn() + Send>>,
    /// What was taken and not given.
    held: Option<T>,
    /// The other side had room when last looked at.
    has_room: bool,
}

/// What became of what was held.
enum Became {
    Passed,
    Refused,
}

impl<A: Role, B: Role, T: Carried> Flow<A, B, T> {
    pub(super) fn new(
        from: &Arc<Handle<A>>,
        to: &Arc<Handle<B>>,
        take: impl Fn(&mut Core<A>) -> Option<T> + Send + 'static,
        give: fn(&mut Core<B>, T) -> Given<T>,
    ) -> Self {
        let (from, to) = (Place::new(from.clone()), Place::new(to.clone()));
        let take = Box::new(take);
        Self { from, to, take, give, at_end: None, held: None, has_room: false }
    }

    /// Calls `done` when a run ends with everything passed on that was taken.
    pub(super) fn at_end(mut self, done: impl Fn() + Send + 'static) -> Self {
        self.at_end = Some(Box::new(done));
        self
    }

    /// Waits until a small message finds room, so that others stay where they are.
    fn poll_room(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if !self.has_room {
            let look = |core: &mut Core<B>| core.role.has_room(&core.net).then_some(());
            ready!(self.to.receive(task, look))?;
            self.has_room = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_give(&mut self, task: &mut Context<'_>) -> Poll<Result<Became, Error>> {
        let Self { to, held, give, has_room, .. } = self;
        let attempt = |core: &mut Core<B>| {
            let became = give_held(core, held, *give);
            *has_room = core.role.has_room(&core.net);
            became
        };
        to.look(task, || Awaits::Anything, Leaves::WithOthers, attempt)
            .map_err(|_| Error::terminated())
    }
}

/// While one side is waited for, the other one may end.
fn poll_end<R: Role>(place: &mut Place<R, Arc<Handle<R>>>, task: &mut Context<'_>) -> Poll<Error> {
    let end = place.look(task, || Awaits::End, Leaves::Now, |_| None::<()>);
    end.map(|_| Error::terminated())
}

fn give_held<B: Role, T: Carried>(
    core: &mut Core<B>,
    held: &mut Option<T>,
    give: fn(&mut Core<B>, T) -> Given<T>,
) -> Option<Became> {
    let item = held.take()?;
    if item.size() > core.net.options.message_bytes_max {
        return Some(Became::Refused);
    }
    match give(core, item) {
        Ok(()) => Some(Became::Passed),
        Err((_, Room::TooLong | Room::Nobody)) => Some(Became::Refused),
        Err((item, _)) => {
            *held = Some(item);
            None
        }
    }
}

impl<A: Role, B: Role, T: Carried> Way for Flow<A, B, T> {
    fn poll(&mut self, task: &mut Context<'_>, tap: &Tap<'_>) -> Poll<Error> {
        loop {
            let given = self.poll_held(task, tap);
            let waited = if given.is_ready() { self.poll_room(task) } else { Poll::Pending };
            match (given, waited) {
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => {}
                (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => {
                    return Poll::Ready(error);
                }
                _ => return poll_end(&mut self.from, task),
            }
            match self.from.receive(task, &self.take) {
                Poll::Ready(Ok(item)) => {
                    self.held = Some(item);
                    tap.passing.held.store(1, Relaxed);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => return poll_end(&mut self.to, task),
            }
        }
    }

    fn poll_held(&mut self, task: &mut Context<'_>, tap: &Tap<'_>) -> Poll<Result<(), Error>> {
        let Some(item) = &self.held else { return Poll::Ready(Ok(())) };
        let (size, copy) = (item.size(), tap.capture.map(|_| item.copy()));
        let became = ready!(self.poll_give(task))?;
        tap.passing.held.store(0, Relaxed);
        match became {
            Became::Passed => tap.passed(size, copy),
            Became::Refused => add(&tap.counts.refused, 1),
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) {
        self.from.forget();
        self.to.forget();
        if let (None, Some(done)) = (&self.held, &self.at_end) {
            done();
        }
    }
}

impl Tap<'_> {
    fn passed(&self, size: usize, copy: Option<Message>) {
        add(&self.passing.messages, 1);
        add(&self.passing.bytes, size as u64);
        if let (Some(capture), Some(copy)) = (self.capture, copy) {
            let captured = capture(copy);
            add(if captured { &self.counts.captured } else { &self.counts.not_captured }, 1);
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Relaxed);
}
