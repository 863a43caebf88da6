//! What all sockets have: addresses, monitors, counters, closing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{self, Poll};
use std::time::Duration;

use bytes::Bytes;
use fabric_core::Addr;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::background::Driven;
use crate::context::Lease;
use crate::driver::{Patience, Shared, Stop, Tells, Ticket};
use crate::engine::{Core, Net, Room};
use crate::monitor::{Counters, Monitor, PeerStats, TARGET};
use crate::options::{Linger, Options};
use crate::roles::Role;
use crate::{Context, Error, ErrorKind, Message, Readiness, SendError};

/// Longest that dropping the last handle of a socket waits for what was accepted.
const DROP_LINGER_MAX: Duration = Duration::from_secs(2);

/// Messages handed over with one lock.
const MESSAGES_AT_ONCE: usize = 32;

/// A call that takes a while, as a span of `tracing`.
macro_rules! span {
    ($role:ident, $name:literal $(, $addr:ident)?) => {
        tracing::debug_span!(target: TARGET, $name, socket_type = $role::TYPE.name() $(, $addr)?)
    };
}

/// One socket, held by all handles to it.
pub(crate) struct Handle<R: Role> {
    pub(crate) shared: Arc<Shared<R>>,
    message_bytes_max: AtomicUsize,
    /// Its place in the context, until it is closed.
    lease: Mutex<Option<Lease>>,
}

impl<R: Role> Handle<R> {
    pub(crate) fn open(
        context: &Context,
        options: Options,
        abilities: u8,
        role: R,
    ) -> Result<Arc<Self>, Error> {
        let lease = context.lease()?;
        let message_bytes_max = AtomicUsize::new(options.message_bytes_max);
        let net = Net::new::<R>(options, abilities, lease.backends.clone());
        let shared = Arc::new(Shared::new(Core { net, role }, lease.background.clone()));
        let driven: Arc<dyn Driven> = shared.clone();
        lease.context().add(&driven, &lease)?;
        #[cfg(feature = "metrics")]
        {
            let measured = Arc::downgrade(&shared);
            lease.context().measure(measured);
        }
        Ok(Arc::new(Self { shared, message_bytes_max, lease: Mutex::new(Some(lease)) }))
    }

    pub(crate) fn bind(&self, addr: &str) -> Result<Addr, Error> {
        let _span = span!(R, "bind", addr).entered();
        self.at(addr, |core, place| core.net.bind(place))
    }

    pub(crate) fn connect(&self, addr: &str) -> Result<(), Error> {
        let _span = span!(R, "connect", addr).entered();
        self.at(addr, |core, place| core.connect(place))
    }

    /// Uses an address, which may have settings of the socket in it.
    pub(super) fn at<T>(
        &self,
        addr: &str,
        go: impl FnOnce(&mut Core<R>, &Addr) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let addr: Addr = addr.parse()?;
        self.shared.command(|core| {
            let given = core.net.given(addr)?;
            let done = core.at(&given, go);
            self.message_bytes_max.store(core.net.options.message_bytes_max, Ordering::Relaxed);
            done
        })?
    }

    pub(crate) fn unbind(&self, addr: &str) -> Result<(), Error> {
        let addr: Addr = addr.parse()?;
        self.shared.command(|core| core.unbind(&core.net.given(addr)?.place))?
    }

    pub(crate) fn disconnect(&self, addr: &str) -> Result<(), Error> {
        let addr: Addr = addr.parse()?;
        self.shared.command(|core| core.disconnect(&core.net.given(addr)?.place))?
    }

    pub(crate) fn last_endpoint(&self) -> Option<Addr> {
        self.shared.look(|core| core.net.last_endpoint())
    }

    pub(crate) fn monitor(&self) -> Monitor {
        let socket: Weak<Shared<R>> = Arc::downgrade(&self.shared);
        self.shared.look(|core| core.net.monitors.add(socket))
    }

    pub(crate) fn readiness(&self, tells: Tells) -> Result<Readiness, Error> {
        let socket: Weak<Shared<R>> = Arc::downgrade(&self.shared);
        Ok(Readiness::new(self.shared.add_signal(tells)?, socket))
    }

    pub(crate) fn counters(&self) -> Counters {
        self.shared.look(|core| core.net.counted())
    }

    pub(crate) fn peers(&self) -> Vec<PeerStats> {
        self.shared.look(|core| core.net.peer_stats())
    }

    pub(crate) fn set_send_hwm(&self, messages: usize) -> Result<(), Error> {
        self.shared.command(|core| core.net.options.send_hwm = messages)
    }

    pub(crate) fn set_recv_hwm(&self, messages: usize) -> Result<(), Error> {
        self.shared.command(|core| core.net.set_recv_hwm(messages))
    }

    pub(crate) fn close(&self) {
        let _span = span!(R, "close").entered();
        self.shared.close(self.shared.linger_setting());
        self.leave_context();
    }

    /// Begins to close, if nobody has; says whether the socket is closed.
    pub(crate) fn poll_close(&self, ticket: &mut Ticket, task: &mut task::Context<'_>) -> Poll<()> {
        self.shared.poll_close(ticket, || self.lease.lock().take(), task)
    }

    fn leave_context(&self) {
        drop(self.lease.lock().take());
    }

    /// Sends with `attempt`, waiting for room as long as `patience` lasts.
    pub(crate) fn send_with<T>(
        &self,
        message: Message,
        patience: &mut Patience,
        mut attempt: impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)>,
    ) -> Result<T, SendError> {
        let mut unsent = Unsent::new(self.checked(message)?);
        let stop = match self.shared.send(|core| unsent.attempt(core, &mut attempt)) {
            Some(Some(done)) => return done,
            None => Stop::Terminated,
            Some(None) => {
                match self.shared.drive(patience, |core| unsent.attempt(core, &mut attempt)) {
                    Ok(done) => return done,
                    Err(stop) => stop,
                }
            }
        };
        let error = stopped(stop, unsent.room);
        Err(unsent.refused(error))
    }

    /// Sends with `attempt` if there is room now.
    pub(crate) fn try_send_with<T>(
        &self,
        message: Message,
        mut attempt: impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)>,
    ) -> Result<T, SendError> {
        let mut unsent = Unsent::new(self.checked(message)?);
        // The second attempt sees what has arrived meanwhile, such as credit.
        for turn in [false, true] {
            let done = self.shared.send(|core| {
                if turn {
                    core.turn();
                }
                unsent.attempt(core, &mut attempt)
            });
            match done {
                Some(Some(done)) => return done,
                Some(None) => {}
                None => return Err(unsent.refused(Error::terminated())),
            }
        }
        let error = no_room(unsent.room);
        Err(unsent.refused(error))
    }

    /// Sends all of `messages`: as many at a time as `at_once` takes, and by `send` where it takes
    /// none.
    pub(crate) fn send_many<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
        at_once: impl Fn(&mut Core<R>, &Message) -> bool + Copy,
        send: impl Fn(Message) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        let mut messages = messages.into_iter().map(Into::into);
        let mut next = SmallVec::<[Message; MESSAGES_AT_ONCE]>::new();
        loop {
            // The caller's iterator does not run with the lock held.
            next.extend(messages.by_ref().take(MESSAGES_AT_ONCE));
            if next.is_empty() {
                return Ok(());
            }
            let mut rest = 0;
            while rest < next.len() {
                rest += self.shared.send_many_at_once(&next[rest..], at_once);
                if let Some(message) = next.get_mut(rest) {
                    send(std::mem::replace(message, Message::single(Bytes::new())))?;
                    rest += 1;
                }
            }
            next.clear();
        }
    }

    /// Adds up to `max` messages that `take` finds to `messages`; says how many.
    pub(crate) fn recv_many(
        &self,
        messages: &mut Vec<Message>,
        max: usize,
        mut take: impl FnMut(&mut Core<R>) -> Option<Message>,
    ) -> usize {
        let before = messages.len();
        self.shared.take_at_once(|core| {
            messages.extend(std::iter::from_fn(|| take(core)).take(max));
            (messages.len() > before).then_some(())
        });
        messages.len() - before
    }

    pub(super) fn checked(&self, message: Message) -> Result<Message, SendError> {
        let bytes_max = self.message_bytes_max.load(Ordering::Relaxed);
        if message.len() <= bytes_max {
            return Ok(message);
        }
        let text = format!(
            "the message has {} bytes, the limit is {bytes_max}: raise message_bytes_max on both sides",
            message.len()
        );
        Err(SendError::new(message, Error::new(ErrorKind::TooLong, text)))
    }

    /// Receives with `attempt`, waiting as long as `patience` lasts.
    pub(crate) fn recv_until<T>(
        &self,
        mut patience: Patience,
        attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Result<T, Error> {
        self.shared.drive(&mut patience, attempt).map_err(|stop| match stop {
            Stop::TimedOut => Error::timed_out("no message came"),
            Stop::Terminated => Error::terminated(),
        })
    }

    /// Receives with `attempt` if something is there now.
    pub(crate) fn try_recv_with<T>(
        &self,
        mut attempt: impl FnMut(&mut Core<R>) -> Option<T>,
    ) -> Result<T, Error> {
        let found = self.shared.send(|core| {
            attempt(core).or_else(|| {
                core.turn();
                attempt(core)
            })
        });
        found.ok_or_else(Error::terminated)?.ok_or_else(Error::would_block)
    }
}

/// A message that is tried to be sent, and why it was not yet.
pub(crate) struct Unsent {
    message: Option<Message>,
    room: Room,
}

impl Unsent {
    pub(super) fn new(message: Message) -> Self {
        Self { message: Some(message), room: Room::Full }
    }

    /// The outcome, or nothing if it is to be tried again.
    pub(super) fn attempt<R, T>(
        &mut self,
        core: &mut Core<R>,
        attempt: &mut impl FnMut(&mut Core<R>, Message) -> Result<T, (Message, Room)>,
    ) -> Option<Result<T, SendError>> {
        match attempt(core, self.message.take()?) {
            Ok(value) => Some(Ok(value)),
            Err((message, Room::TooLong)) => Some(Err(too_long_for_peer(message))),
            Err((message, Room::Nobody)) => Some(Err(nobody(message))),
            Err((message, room)) => {
                *self = Self { message: Some(message), room };
                None
            }
        }
    }

    pub(super) fn refused(self, error: Error) -> SendError {
        // Invariant: an attempt that takes the message either ends the call or gives it back.
        SendError::new(self.message.unwrap_or_else(|| Message::from("")), error)
    }
}

impl<R: Role> Drop for Handle<R> {
    fn drop(&mut self) {
        let linger = match self.shared.linger_setting() {
            Linger::Forever => Linger::For(DROP_LINGER_MAX),
            Linger::For(limit) => Linger::For(limit.min(DROP_LINGER_MAX)),
            Linger::No => Linger::No,
        };
        self.shared.close_dropped(linger, || self.lease.lock().take());
    }
}

fn no_room(room: Room) -> Error {
    match room {
        Room::Down => Error::new(ErrorKind::NoPeer, "no peer is there to send to: connect or bind"),
        _ => Error::new(
            ErrorKind::WouldBlock,
            "every peer is at its high-water mark: wait with send",
        ),
    }
}

fn stopped(stop: Stop, room: Room) -> Error {
    match (stop, room) {
        (Stop::Terminated, _) => Error::terminated(),
        (Stop::TimedOut, Room::Down) => Error::timed_out("no peer was there to send to"),
        (Stop::TimedOut, _) => Error::timed_out("every peer stayed at its high-water mark"),
    }
}

fn nobody(message: Message) -> SendError {
    let text = "no peer has that name, or it waits for no such reply: learn names by recv";
    SendError::new(message, Error::new(ErrorKind::NoPeer, text))
}

fn too_long_for_peer(message: Message) -> SendError {
    let text = format!(
        "the message has {} bytes, more than the peer takes: raise message_bytes_max there",
        message.len()
    );
    SendError::new(message, Error::new(ErrorKind::TooLong, text))
}

impl Net {
    fn set_recv_hwm(&mut self, messages: usize) {
        self.options.recv_hwm = messages;
        for peer in self.peer_ids() {
            self.renew_window(peer);
        }
    }

    fn counted(&mut self) -> Counters {
        self.count_all();
        self.counters
    }

    fn peer_stats(&mut self) -> Vec<PeerStats> {
        self.count_all();
        self.peer_ids()
            .into_iter()
            .map(|id| {
                let peer = self.peer(id);
                let caps = self.ports[peer.port].domain.caps();
                PeerStats {
                    peer: id,
                    addr: peer.addr.clone(),
                    identity: peer.identity.clone(),
                    provider: caps.provider,
                    device: caps.device.clone(),
                    up: peer.is_up(),
                    queued: peer.queue.len(),
                    sent: peer.sent,
                    received: peer.received,
                    dropped: peer.dropped,
                    lost: peer.lost,
                }
            })
            .collect()
    }
}

/// The calls that every socket has.
macro_rules! common_calls {
    ($socket:ident) => {
        impl $crate::sockets::Sealed for $socket {}

        impl $socket {
            /// Settings for such a socket.
            pub fn builder() -> $crate::Builder<Self> {
                $crate::Builder::new()
            }

            /// A socket with the default settings.
            ///
            /// # Errors
            /// As [`Builder::build`](crate::Builder::build).
            pub fn new(context: &$crate::Context) -> Result<Self, $crate::Error> {
                Self::builder().build(context)
            }

            /// Listens at `addr`, such as `tcp://127.0.0.1:5555`, `tcp://*:0` or `tcp://eth0:5555`,
            /// and gives the address with its real port. May be called any number of times, also
            /// together with `connect`. The first address may have settings of the socket in its
            /// query, such as `tcp://*:0?hwm=1000&linger=5s`; later ones may repeat them.
            ///
            /// # Errors
            /// `Address`, `AddrInUse`, `Unsupported`, `Limit`, or `Invalid` for what is wrong with a
            /// setting, in one line that says what to do.
            pub fn bind(&self, addr: &str) -> Result<$crate::Addr, $crate::Error> {
                self.handle.bind(addr)
            }

            /// Connects to `addr`, now or as soon as somebody listens there, and again whenever
            /// the connection breaks. Settings in its query are as in `bind`.
            ///
            /// # Errors
            /// `Address`, `Unsupported`, `Limit` or `Invalid`. That nobody listens there is no error.
            pub fn connect(&self, addr: &str) -> Result<(), $crate::Error> {
                self.handle.connect(addr)
            }

            /// Stops listening at an address as `bind` or `last_endpoint` gave it. Connected peers
            /// stay.
            ///
            /// # Errors
            /// `Invalid` if the socket does not listen there.
            pub fn unbind(&self, addr: &str) -> Result<(), $crate::Error> {
                self.handle.unbind(addr)
            }

            /// Leaves an address as it was given to `connect`: what is queued for it still leaves
            /// within linger, what arrived from it and was not received is dropped.
            ///
            /// # Errors
            /// `Invalid` if the socket is not connected there.
            pub fn disconnect(&self, addr: &str) -> Result<(), $crate::Error> {
                self.handle.disconnect(addr)
            }

            /// The address of the last `bind` or `connect`, with its real port.
            pub fn last_endpoint(&self) -> Option<$crate::Addr> {
                self.handle.last_endpoint()
            }

            /// What happens to the socket's connections from now on.
            pub fn monitor(&self) -> $crate::Monitor {
                self.handle.monitor()
            }

            /// The socket's counters.
            pub fn counters(&self) -> $crate::Counters {
                self.handle.counters()
            }

            /// The socket's peers.
            pub fn peers(&self) -> Vec<$crate::PeerStats> {
                self.handle.peers()
            }

            /// Changes how many messages are queued for each peer; 0 is no limit. Acts at once and
            /// drops nothing.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn set_send_hwm(&self, messages: usize) -> Result<(), $crate::Error> {
                self.handle.set_send_hwm(messages)
            }

            /// Changes how many messages each peer may send ahead; 0 is no limit. More is granted
            /// at once; what was granted is not taken back.
            ///
            /// # Errors
            /// `Terminated`.
            pub fn set_recv_hwm(&self, messages: usize) -> Result<(), $crate::Error> {
                self.handle.set_recv_hwm(messages)
            }
        }

        impl std::fmt::Debug for $socket {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($socket))
                    .field("last_endpoint", &self.handle.last_endpoint())
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use common_calls;
