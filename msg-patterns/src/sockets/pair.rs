use std::sync::Arc;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::two_way::two_way_calls;
use super::{Handle, OpenOptions, Socket};
use crate::roles::pair::Pair as Role;
use crate::{Context, Error};

/// Talks to exactly one peer, another `Pair`.
///
/// While it has a peer, or is connecting to one, it refuses others, whose monitors are told so; they
/// try again, and one of them takes its place when the peer is gone (RFC 31).
///
/// ```
/// # use msg_patterns::{Context, Pair};
/// let context = Context::new();
/// let [one, other] = [Pair::new(&context)?, Pair::new(&context)?];
/// one.connect(&other.bind("tcp://127.0.0.1:0")?.to_string())?;
/// one.send("ping")?;
/// other.send("pong")?;
/// assert_eq!((other.recv()?.first(), one.recv()?.first()), (&"ping".into(), &"pong".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pair {
    pub(super) handle: Arc<Handle<Role>>,
}

common_calls!(Pair);
two_way_calls!(Pair, Role, "a peer, and for room with it");

impl Socket for Pair {
    const TYPE: SocketType = SocketType::Pair;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        Ok(Self { handle: Handle::open(context, options.0, 0, Role::new())? })
    }
}
