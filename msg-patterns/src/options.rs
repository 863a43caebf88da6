//! Settings of a socket.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use fabric_core::ErrorKind as FabricErrorKind;

use crate::sockets::{OpenOptions, Socket};
use crate::{Context, Error, ErrorKind};

/// How long `close` waits for what was accepted and has not reached the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// Until everything was handed over (libzmq: −1).
    Forever,
    /// At most so long.
    For(Duration),
    /// Not at all: what is unsent is dropped and counted.
    No,
}

/// What a publisher does with a message for a subscriber that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFull {
    /// Drop it for that subscriber, count it, and tell the subscriber.
    #[default]
    Drop,
    /// Wait until every matching subscriber has room; `try_send` says `WouldBlock`. A peer that is
    /// being connected to counts as matching until it has said what it wants.
    Block,
}

/// When a broken or failed connection is not tried again (libzmq: ZMQ_RECONNECT_STOP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconnectStop {
    /// Nobody listens there.
    pub on_refused: bool,
    /// The peer was there and the greeting failed.
    pub on_handshake_failed: bool,
}

impl ReconnectStop {
    /// Whether an attempt that failed in the fabric like this is the last one.
    pub(crate) fn covers(self, failure: FabricErrorKind) -> bool {
        match failure {
            FabricErrorKind::Refused => self.on_refused,
            FabricErrorKind::Protocol => self.on_handshake_failed,
            _ => false,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) send_hwm: usize,
    pub(crate) send_hwm_bytes: usize,
    pub(crate) recv_hwm: usize,
    pub(crate) recv_hwm_bytes: usize,
    pub(crate) linger: Linger,
    pub(crate) reconnect_interval: Option<Duration>,
    pub(crate) reconnect_interval_max: Duration,
    pub(crate) reconnect_stop: ReconnectStop,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) heartbeat_timeout: Option<Duration>,
    pub(crate) heartbeat_ttl: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) message_bytes_max: usize,
    pub(crate) busy_poll: Duration,
    pub(crate) identity: Bytes,
    pub(crate) immediate: bool,
    pub(crate) on_full: OnFull,
    pub(crate) history: usize,
    pub(crate) conflate: bool,
    pub(crate) invert_matching: bool,
    pub(crate) acknowledge: bool,
    pub(crate) retry: bool,
    pub(crate) resend_after: Option<Duration>,
    pub(crate) relaxed: bool,
    pub(crate) subscriptions_max: usize,
    pub(crate) peers_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            send_hwm: 1000,
            send_hwm_bytes: 64 << 20,
            recv_hwm: 1000,
            recv_hwm_bytes: 64 << 20,
            linger: Linger::Forever,
            reconnect_interval: Some(Duration::from_millis(100)),
            reconnect_interval_max: Duration::ZERO,
            reconnect_stop: ReconnectStop::default(),
            heartbeat_interval: Duration::ZERO,
            heartbeat_timeout: None,
            heartbeat_ttl: Duration::ZERO,
            handshake_timeout: Duration::from_secs(30),
            message_bytes_max: 64 << 20,
            busy_poll: Duration::ZERO,
            identity: Bytes::new(),
            immediate: false,
            on_full: OnFull::Drop,
            history: 0,
            conflate: false,
            invert_matching: false,
            acknowledge: false,
            retry: false,
            resend_after: None,
            relaxed: false,
            subscriptions_max: 400_000,
            peers_max: 65_536,
        }
    }
}

/// Settings for a socket of type `S`; [`build`](Builder::build) makes it.
///
/// All settings but the high-water marks stay as they are once the socket is built. High-water
/// marks count whole messages and bytes; 0 is no limit.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build"]
pub struct Builder<S> {
    pub(crate) options: Options,
    socket: PhantomData<fn() -> S>,
}

impl<S> Builder<S> {
    pub(crate) fn new() -> Self {
        Self { options: Options::default(), socket: PhantomData }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $name: $type) -> Self {
            self.options.$name = $name;
            self
        }
    )*};
}

impl<S: Socket> Builder<S> {
    setters! {
        /// Messages queued for each peer beyond what it granted; default 1000 (ZMQ_SNDHWM).
        send_hwm: usize;
        /// Bytes queued for each peer beyond what it granted; default 64 MiB. A single larger
        /// message is still taken when nothing else is queued.
        send_hwm_bytes: usize;
        /// Messages granted to each peer: what waits here to be received; default 1000 (ZMQ_RCVHWM).
        recv_hwm: usize;
        /// Bytes granted to each peer; default 64 MiB. A single larger message is still granted
        /// while half of it is free.
        recv_hwm_bytes: usize;
        /// How long `close` waits; default [`Linger::Forever`] (ZMQ_LINGER).
        linger: Linger;
        /// Wait before the first attempt to connect again, plus a random part below it; default
        /// 100 ms, `None` is never (ZMQ_RECONNECT_IVL).
        reconnect_interval: Option<Duration>;
        /// The wait doubles up to this; default 0: it stays the same (ZMQ_RECONNECT_IVL_MAX).
        reconnect_interval_max: Duration;
        /// When not to connect again; default: always connect again.
        reconnect_stop: ReconnectStop;
        /// How often each peer is asked for a sign of life; default 0: never
        /// (ZMQ_HEARTBEAT_IVL).
        heartbeat_interval: Duration;
        /// How long a peer may stay silent after a question; default: the interval
        /// (ZMQ_HEARTBEAT_TIMEOUT).
        heartbeat_timeout: Option<Duration>;
        /// How long the peer should let this side stay silent; default 0: for ever. Rounded down
        /// to tenths of a second, at most 6553.5 s (ZMQ_HEARTBEAT_TTL).
        heartbeat_ttl: Duration;
        /// How long the greeting of a new connection may take; default 30 s (ZMQ_HANDSHAKE_IVL).
        handshake_timeout: Duration;
        /// Largest message taken, in bytes over all parts; default 64 MiB. A peer that sends a
        /// larger one is disconnected; a larger one handed to `send` is refused (ZMQ_MAXMSGSIZE).
        message_bytes_max: usize;
        /// How long to poll without sleeping before a call sleeps; default 0. Costs a core while it
        /// lasts and saves the wake-up.
        busy_poll: Duration;
        /// Queue only for peers that are connected, not for those being connected to (ZMQ_IMMEDIATE).
        immediate: bool;
        /// Most peers at a time; further ones are refused; default 65,536.
        peers_max: usize;
    }

    /// A name told to peers, up to 255 bytes, not starting with a zero byte (ZMQ_ROUTING_ID).
    pub fn identity(mut self, identity: impl Into<Bytes>) -> Self {
        self.options.identity = identity.into();
        self
    }

    /// Makes the socket.
    ///
    /// # Errors
    /// `Invalid` if the settings make no sense together, `Terminated` if the context was shut down,
    /// `Limit` if it has too many sockets or no memory is left.
    pub fn build(self, context: &Context) -> Result<S, Error> {
        self.options.check()?;
        S::open(context, OpenOptions(self.options))
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let invalid = |text: &str| Err(Error::new(ErrorKind::Invalid, text));
        if self.identity.len() > 255 || self.identity.first() == Some(&0) {
            return invalid("an identity has up to 255 bytes and does not start with a zero byte");
        }
        if self.message_bytes_max == 0 {
            return invalid("message_bytes_max must be at least 1");
        }
        if self.reconnect_interval == Some(Duration::ZERO) {
            return invalid("reconnect_interval must be over 0; None means never");
        }
        if self.handshake_timeout.is_zero() {
            return invalid("handshake_timeout must be over 0");
        }
        if self.conflate && (self.history > 0 || self.on_full == OnFull::Block) {
            return invalid("conflate keeps one message only: it cannot go with history or Block");
        }
        if self.invert_matching && self.history > 0 {
            return invalid("history goes by topics: it cannot go with invert_matching");
        }
        Ok(())
    }

    /// A high-water mark as a number to compare with: 0 means none.
    pub(crate) fn limit(hwm: usize) -> u64 {
        if hwm == 0 { u64::MAX } else { hwm as u64 }
    }
}
