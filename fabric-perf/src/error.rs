//! Why a measurement did not come about.

use msg_patterns::{ErrorKind, SendError, fabric_core};

/// Why a measurement did not come about, in one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan makes no sense, or not on this fabric.
    #[error("{0}")]
    Plan(String),
    /// A socket failed.
    #[error("{0}")]
    Socket(#[from] msg_patterns::Error),
    /// A domain failed.
    #[error("{0}")]
    Fabric(#[from] fabric_core::Error),
    /// The host refuses something.
    #[error("{0}")]
    Host(String),
    /// The other side failed, or speaks otherwise.
    #[error("the other side: {0}")]
    Peer(String),
    /// Nothing moved for a long time.
    #[error("{0}")]
    TimedOut(String),
    /// What arrived is not what was sent.
    #[error("{0}")]
    Wrong(String),
}

impl Error {
    /// Whether the other side did not answer or go on in time.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Socket(error) => error.kind() == ErrorKind::TimedOut,
            Self::TimedOut(_) => true,
            _ => false,
        }
    }

    /// Whether this only says that the other side is gone, which may know better why.
    pub(crate) fn may_be_known_to_peer(&self) -> bool {
        match self {
            Self::Socket(error) => {
                matches!(error.kind(), ErrorKind::Terminated | ErrorKind::PeerGone)
            }
            Self::Peer(_) => true,
            _ => false,
        }
    }

    pub(crate) fn host(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |error| Self::Host(format!("{what}: {error}"))
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Self::Socket(error.error)
    }
}

impl<B> From<fabric_core::Rejected<B>> for Error {
    fn from(rejected: fabric_core::Rejected<B>) -> Self {
        Self::Fabric(rejected.error)
    }
}
