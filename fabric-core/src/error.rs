//! One concrete error, sorted by who can act on it.

use std::error::Error as StdError;
use std::fmt;

/// What went wrong, to branch on. The message says what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call breaks the contract: unknown endpoint, too many bytes, wrong state.
    Misuse,
    /// The address cannot be used: bad port, name that does not resolve, no such interface.
    Address,
    /// Somebody else listens at that address.
    AddrInUse,
    /// The provider or device does not offer this.
    Unsupported,
    /// Nobody listens at the peer's address.
    Refused,
    /// No route to the peer.
    Unreachable,
    /// The peer did not answer in time.
    TimedOut,
    /// The connection broke: the peer died or dropped it.
    Reset,
    /// The peer closed the connection in an orderly way.
    Closed,
    /// The peer speaks another protocol or breaks this one.
    Protocol,
    /// Remote memory was not exposed for this: key, bounds, access or revocation.
    Access,
    /// The peer had no receive posted, or one too short.
    NoReceive,
    /// A queue is full: complete something first, then try again.
    Full,
    /// The operation was flushed because its endpoint or domain closed; the close carries the cause.
    Flushed,
    /// No device, no permission, or a limit of the host.
    Host,
    /// The provider reports something this library has no name for; see the source.
    Provider,
}

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The program that made the call.
    Caller,
    /// The peer or the way to it.
    Peer,
    /// Nobody: try again when something completed.
    Busy,
    /// The administrator of this host.
    Host,
    /// The provider; keep the source for its maintainers.
    Provider,
}

impl ErrorKind {
    /// Who can act on errors of this kind.
    pub fn blame(self) -> Blame {
        match self {
            Self::Misuse | Self::Address | Self::Unsupported => Blame::Caller,
            Self::Refused
            | Self::Unreachable
            | Self::TimedOut
            | Self::Reset
            | Self::Closed
            | Self::Protocol
            | Self::Access
            | Self::NoReceive => Blame::Peer,
            Self::Full | Self::Flushed => Blame::Busy,
            Self::AddrInUse | Self::Host => Blame::Host,
            Self::Provider => Blame::Provider,
        }
    }
}

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// The error of every fabric: a kind to branch on, one line that says what to do, and the
/// provider's own error as source.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Source>,
}

impl Error {
    /// An error of `kind` with a one-line `message` that says what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    /// The same with the provider's error kept as source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// A broken rule of the contract.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// What to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The one-line message, without the source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Who can act on it.
    pub fn blame(&self) -> Blame {
        self.0.kind.blame()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// A refused post: the buffer comes back with the reason, so that the caller may retry, drop or
/// queue it.
#[derive(Debug)]
pub struct Rejected<B> {
    /// What was to be posted, untouched.
    pub buf: B,
    /// Why it was not.
    pub error: Error,
}

impl<B> Rejected<B> {
    /// `buf` refused because of `error`.
    pub fn new(buf: B, error: Error) -> Self {
        Self { buf, error }
    }
}

impl<B> From<Rejected<B>> for Error {
    fn from(rejected: Rejected<B>) -> Self {
        rejected.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_display_is_one_line_and_names_the_source() {
        let source = std::io::Error::from_raw_os_error(111);
        let error =
            Error::new(ErrorKind::Refused, "nobody listens at 127.0.0.1:1").with_source(source);
        let text = error.to_string();
        assert!(text.starts_with("nobody listens at 127.0.0.1:1 ("), "{text}");
        assert!(!text.contains('\n'));
        assert!(StdError::source(&error).is_some());
    }

    #[test]
    fn every_kind_has_somebody_to_act() {
        assert_eq!(ErrorKind::Full.blame(), Blame::Busy);
        assert_eq!(ErrorKind::Refused.blame(), Blame::Peer);
        assert_eq!(ErrorKind::AddrInUse.blame(), Blame::Host);
    }
}
