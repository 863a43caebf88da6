//! The sockets: what users hold.

mod asynchronous;
mod common;
mod dealer;
mod matching;
mod pair;
mod proxy;
mod publish;
mod publishing;
mod pull;
mod push;
mod readiness;
mod receiving;
mod reply;
mod request;
mod router;
mod subscribe;
mod two_way;
mod xpub;
mod xsub;

pub use asynchronous::{Drain, Incoming, MonitorStream, Outgoing, Source};
pub use dealer::Dealer;
pub use matching::MatchingListener;
pub use pair::Pair;
pub use proxy::{Passed, Proxy, ProxyControl, ProxyStats};
pub use publish::Pub;
pub use pull::Pull;
pub use push::Push;
pub use readiness::{PollKey, Poller, Readiness, Receives, Sends};
pub use reply::{Rep, Request};
pub use request::Req;
pub use router::Router;
pub use subscribe::Sub;
pub use xpub::XPub;
pub use xsub::XSub;

pub(crate) use common::Handle;

use msg_proto::types::SocketType;

use crate::options::Options;
use crate::{Context, Error};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// A socket that a [`Builder`](crate::Builder) makes. Implemented by the sockets of this crate and
/// by no other type.
pub trait Socket: Sized + Sealed {
    #[doc(hidden)]
    const TYPE: SocketType;
    #[doc(hidden)]
    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error>;
}

/// The settings as a builder hands them over.
#[doc(hidden)]
#[derive(Debug)]
pub struct OpenOptions(pub(crate) Options);
