//! Proxies: what one socket receives, another one sends.

mod control;
mod flow;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::engine::{Core, Room};
use crate::roles::pusher::Pusher;
use crate::roles::router::Router as RouterRole;
use crate::roles::xsubscriber::XSubscriber;
use crate::sockets::{publishing, router, xpub};
use crate::{Dealer, Drain, Error, Message, Pull, Push, Router, RoutingId, Upstream, XPub, XSub};

pub use control::{Passed, ProxyControl, ProxyStats};

use control::Wanted;
use flow::{Capture, Flow, Tap, Way};

/// Carries messages between two sockets, both ways where they talk both ways. Bytes are not copied.
///
/// A message is taken only once the other side has room for a small one. So a side that is full, or
/// has no peer, holds the other one up, whose peers then see their own limits. What a publisher would
/// drop an [`XPub`] drops here too, unless it blocks when full.
///
/// The sockets stay the caller's: settings, addresses, monitors and closing. Once one of them is closed
/// the run ends.
///
/// ```
/// use msg_patterns::{Context, Proxy, Pull, Push};
///
/// let context = Context::new();
/// let (front, back) = (Pull::new(&context)?, Push::new(&context)?);
/// let (source, sink) = (Push::new(&context)?, Pull::new(&context)?);
/// source.connect(&front.bind("tcp://127.0.0.1:0")?.to_string())?;
/// sink.connect(&back.bind("tcp://127.0.0.1:0")?.to_string())?;
///
/// let mut proxy = Proxy::streamer(&front, &back);
/// let control = proxy.control();
/// let running = std::thread::spawn(move || proxy.run());
/// source.send("work")?;
/// assert_eq!(sink.recv()?.first(), "work");
/// control.stop();
/// assert_eq!(running.join().unwrap()?.to_back.messages, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Proxy {
    /// From front to back, and from back to front.
    ways: [Option<Box<dyn Way>>; 2],
    capture: Option<Capture>,
    control: ProxyControl,
}

impl Proxy {
    /// Publishers in front, subscribers behind: what is published goes down, subscriptions and messages
    /// of [`XSub`] go up.
    pub fn forwarder(front: &XSub, back: &XPub) -> Self {
        let down = Flow::new(&front.handle, &back.handle, XSub::take, publishing::publish);
        let up = Flow::new(&back.handle, &front.handle, xpub::take, send_up);
        Self::of([Some(Box::new(down)), Some(Box::new(up))])
    }

    /// Pushers in front, pullers behind. A message to be acknowledged is once it was passed on: when
    /// the next one is looked for, or the run ends.
    pub fn streamer(front: &Pull, back: &Push) -> Self {
        // What is to be acknowledged belongs to the handle that received it.
        let front = Arc::new(front.clone());
        let taking = front.clone();
        let take = move |core: &mut Core<_>| taking.pull(core);
        let way = Flow::new(&front.handle, &back.handle, take, push);
        // Terminated already: there is nobody to tell.
        let way = way.at_end(move || drop(front.ack()));
        Self::of([Some(Box::new(way)), None])
    }

    /// Who asks in front, who answers behind. Each message goes on behind the id of its peer, as
    /// [`RoutingId::before`] puts it.
    pub fn queue(front: &Router, back: &Dealer) -> Self {
        let there = Flow::new(&front.handle, &back.handle, take_request, Dealer::give);
        let back_again = Flow::new(&back.handle, &front.handle, Dealer::take, give_reply);
        Self::of([Some(Box::new(there)), Some(Box::new(back_again))])
    }

    fn of(ways: [Option<Box<dyn Way>>; 2]) -> Self {
        Self { ways, capture: None, control: ProxyControl::default() }
    }

    /// Gives a copy of all that passes to `socket`, either way, as it passes: subscriptions as
    /// [`Subscription::to_message`](crate::Subscription::to_message) has them, requests and replies
    /// behind their id. What the socket has no room for it misses, which is counted: capturing never
    /// holds anything up.
    #[must_use]
    pub fn capture<S: Drain + Clone + Send + 'static>(mut self, socket: &S) -> Self {
        let socket = socket.clone();
        self.capture = Some(Box::new(move |copy| socket.send_now(copy).is_ok()));
        self
    }

    /// Steers it, also before and between its runs.
    pub fn control(&self) -> ProxyControl {
        self.control.clone()
    }

    /// Carries until it is told to stop; says what was done since the proxy was made. The thread
    /// sleeps while nothing can be carried.
    ///
    /// # Errors
    /// `Terminated` once one of its sockets is closed.
    pub fn run(&mut self) -> Result<ProxyStats, Error> {
        block_on(self.run_async())
    }

    /// As [`run`](Self::run), for tasks. Dropped at any time it loses nothing: what it had taken the
    /// next run passes on first.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_async(&mut self) -> impl Future<Output = Result<ProxyStats, Error>> + Send + '_ {
        poll_fn(|task| self.poll(task))
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<ProxyStats, Error>> {
        let done = match self.control.watch(task.waker()) {
            Wanted::Run => self.poll_ways(|way, tap| way.poll(task, tap).map(Err)),
            Wanted::Pause => return Poll::Pending,
            Wanted::Stop => self.poll_ways(|way, tap| way.poll_held(task, tap)),
            Wanted::Leave => Poll::Ready(Ok(())),
        };
        done.map(|done| {
            self.ways.iter_mut().flatten().for_each(|way| way.end());
            self.control.end();
            done.map(|()| self.control.stats())
        })
    }

    /// Polls both ways; ready once both are, or one has failed.
    fn poll_ways(
        &mut self,
        mut poll: impl FnMut(&mut dyn Way, &Tap<'_>) -> Poll<Result<(), Error>>,
    ) -> Poll<Result<(), Error>> {
        let Self { ways, capture, control } = self;
        let counts = control.counts();
        let mut all = Poll::Ready(Ok(()));
        for (way, passing) in ways.iter_mut().zip(&counts.passed) {
            let Some(way) = way else { continue };
            match poll(&mut **way, &Tap { counts, passing, capture: capture.as_ref() }) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => all = Poll::Pending,
            }
        }
        all
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("stats", &self.control.stats()).finish_non_exhaustive()
    }
}

/// A subscription is made as if it were this side's own; a message goes up whatever it begins with.
fn send_up(core: &mut Core<XSubscriber>, item: Upstream) -> Result<(), (Upstream, Room)> {
    let Core { net, role } = core;
    match item {
        Upstream::Subscription(told) if told.subscribes() => role.subscribe(net, told.topic()),
        Upstream::Subscription(told) => role.unsubscribe(net, told.topic()),
        Upstream::Message { message, .. } => role.send_up(net, message),
    }
    Ok(())
}

fn push(core: &mut Core<Pusher>, message: Message) -> Result<(), (Message, Room)> {
    core.role.push(&mut core.net, message)
}

fn take_request(core: &mut Core<RouterRole>) -> Option<Message> {
    router::take(core).map(|(id, message)| id.before(message))
}

/// A message that carries no id can go nowhere.
fn give_reply(core: &mut Core<RouterRole>, reply: Message) -> Result<(), (Message, Room)> {
    match RoutingId::split(reply) {
        Some((id, message)) => {
            router::give(core, &id, message).map_err(|(message, room)| (id.before(message), room))
        }
        None => Err((Message::from(""), Room::Nobody)),
    }
}

/// Runs a future on this thread, which sleeps while it waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
