//! ZeroMQ's messaging patterns over any fabric: PUB/SUB, PUSH/PULL,
//! REQ/REP, DEALER/ROUTER, PAIR, and XPUB/XSUB.
//!
//! A [`Context`] holds the providers and one background thread; sockets are made in it with
//! builders. The scheme of an address chooses the provider: `tcp://127.0.0.1:5555`. Calls drive
//! their socket on the caller's own thread; the background thread takes over only when no call
//! does.
//!
//! ```
//! use msg_patterns::{Context, Pull, Push};
//!
//! let context = Context::new();
//! let pull = Pull::new(&context)?;
//! let addr = pull.bind("tcp://127.0.0.1:0")?;
//! let push = Push::new(&context)?;
//! push.connect(&addr.to_string())?;
//! push.send("hello")?;
//! assert_eq!(pull.recv()?.first(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The semantic rules, their numbers and their sources stand in `docs/patterns.md`.
//!
//! # Features
//!
//! - `tcp` (default): `tcp://` addresses.
//! - `verbs`: RDMA behind `verbs://` addresses; needs the RDMA libraries to build.
//! - `softroce`: RDMA on soft-RoCE links behind `softroce://` addresses, and all of `verbs`.
//! - `libfabric`: libfabric's providers behind `ofi+tcp://`, `ofi+shm://` and others; the library is loaded
//!   at run time.
//! - `metrics`: counters and histograms through the `metrics` facade, by `Context::publish_metrics`.
//! - `serde`: [`Settings`] in files; values in messages by a codec of your own (`Codec`, `Typed`).
//! - `json`: values in messages as JSON, and `serde`.
//! - `postcard`: values in messages as postcard, and `serde`.
//! - `tokio`: sockets made inside a tokio runtime are driven by it, without a thread of their own.

#![forbid(unsafe_code)]

mod backend;
mod background;
mod configure;
mod context;
mod descriptors;
mod driver;
mod engine;
mod error;
mod ids;
mod message;
#[cfg(feature = "metrics")]
mod metrics;
mod monitor;
mod options;
mod roles;
mod routing;
#[cfg(feature = "tokio")]
mod runtime;
mod sockets;
mod subscription;
#[cfg(feature = "serde")]
mod typed;
pub mod units;

#[cfg(feature = "metrics")]
pub use self::metrics::{Metric, MetricKind};
#[cfg(feature = "json")]
pub use self::typed::Json;
#[cfg(feature = "postcard")]
pub use self::typed::Postcard;
#[cfg(feature = "serde")]
pub use self::typed::{
    Cause, Codec, CodecError, Encoder, Typed, TypedRecvError, TypedSendError, Undecoded,
};
pub use bytes::Bytes;
pub use configure::{Setting, Settings};
pub use context::Context;
pub use descriptors::reserve_descriptors;
pub use error::{Error, ErrorKind, SendError};
pub use fabric_core::{self, Addr};
pub use message::{Message, Part};
pub use monitor::{Counters, Monitor, MonitorEvent, PeerId, PeerStats};
pub use msg_proto::fault::Fault;
pub use options::{Builder, Linger, Notify, OnFull, ReconnectStop};
pub use routing::RoutingId;
pub use sockets::{
    Dealer, MatchingListener, Pair, Pub, Pull, Push, Rep, Req, Request, Router, Socket, Sub, XPub,
    XSub,
};
pub use sockets::{Drain, Incoming, MonitorStream, Outgoing, Source};
pub use sockets::{Passed, Proxy, ProxyControl, ProxyStats};
pub use sockets::{PollKey, Poller, Readiness, Receives, Sends};
pub use subscription::{Subscription, Upstream};
