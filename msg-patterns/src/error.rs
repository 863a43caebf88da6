//! Errors of sockets: a kind to branch on and one line that says what to do.

use std::fmt;

use fabric_core::{AddrError, Error as FabricError, ErrorKind as FabricErrorKind};

use crate::Message;

/// What went wrong, to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing could be done without waiting: no message, or no room (`try_*`).
    WouldBlock,
    /// There is no peer to send to (`try_send`).
    NoPeer,
    /// The time limit of the call is over.
    TimedOut,
    /// The call does not fit the state: a second request before the reply, a reply without a request.
    State,
    /// The socket was closed or its context shut down.
    Terminated,
    /// The address cannot be used.
    Address,
    /// Somebody else listens at that address.
    AddrInUse,
    /// No provider serves the scheme, or it was not compiled in.
    Unsupported,
    /// The message is over a limit of this socket or its peer.
    TooLong,
    /// A setting or a call makes no sense.
    Invalid,
    /// A limit of the context or the host is in the way.
    Limit,
    /// The peer that held the request is gone.
    PeerGone,
    /// The fabric failed; the source says how.
    Fabric,
}

/// The error of every call but sends, which hand the message back in a [`SendError`].
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<FabricError>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn terminated() -> Self {
        Self::new(ErrorKind::Terminated, "the socket is closed: make a new one")
    }

    pub(crate) fn timed_out(waited_for: &str) -> Self {
        Self::new(ErrorKind::TimedOut, format!("the time limit is over: {waited_for}"))
    }

    pub(crate) fn would_block() -> Self {
        Self::new(ErrorKind::WouldBlock, "no message is here yet: wait with recv")
    }

    /// As it is, saying where the mistake stands.
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// What to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl From<FabricError> for Error {
    fn from(source: FabricError) -> Self {
        let kind = match source.kind() {
            FabricErrorKind::Address => ErrorKind::Address,
            FabricErrorKind::AddrInUse => ErrorKind::AddrInUse,
            FabricErrorKind::Unsupported => ErrorKind::Unsupported,
            FabricErrorKind::Misuse => ErrorKind::Invalid,
            FabricErrorKind::Host => ErrorKind::Limit,
            _ => ErrorKind::Fabric,
        };
        Self { kind, message: source.to_string(), source: Some(source) }
    }
}

impl From<AddrError> for Error {
    fn from(error: AddrError) -> Self {
        Self::new(ErrorKind::Address, error.to_string())
    }
}

/// A send that was not done: the message comes back untouched.
#[derive(Debug)]
pub struct SendError {
    /// What was to be sent.
    pub message: Message,
    /// Why it was not.
    pub error: Error,
}

impl SendError {
    pub(crate) fn new(message: Message, error: Error) -> Self {
        Self { message, error }
    }

    /// What to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        error.error
    }
}
