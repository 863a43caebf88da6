//! Settings of a socket.

use std::marker::PhantomData;
use std::time::Duration;

use fabric_core::ErrorKind as FabricErrorKind;

pub(crate) use crate::configure::Options;
use crate::sockets::{OpenOptions, Socket};
use crate::{Context, Error, ErrorKind, Setting};

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

/// Which of its peers' comings and goings a router receives as empty messages (libzmq:
/// ZMQ_ROUTER_NOTIFY).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify {
    /// A peer is there: before all its messages.
    pub on_connect: bool,
    /// A peer is gone: behind all its messages that can still be received.
    pub on_disconnect: bool,
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

/// Settings for a socket of type `S`; [`build`](Builder::build) makes it.
///
/// All settings but the high-water marks stay as they are once the socket has an address. High-water
/// marks count whole messages and bytes; 0 is no limit. The same settings can be written in an address
/// (`tcp://host:5555?hwm=1000&linger=5s`), a file or the environment: `docs/configuration.md`.
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

impl<S: Socket> Builder<S> {
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
    /// # Errors
    /// `Invalid` if the settings make no sense together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |text: &str| Err(Error::new(ErrorKind::Invalid, text));
        Setting::all().iter().try_for_each(|setting| setting.check(self))?;
        if self.conflate && (self.history > 0 || self.on_full == OnFull::Block) {
            return invalid("conflate keeps one message only: it cannot go with history or Block");
        }
        if self.invert_matching && self.history > 0 {
            return invalid("history goes by topics: it cannot go with invert_matching");
        }
        Ok(())
    }
}
