use std::sync::Arc;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::two_way::two_way_calls;
use super::{Handle, OpenOptions, Socket};
use crate::roles::dealer::Dealer as Role;
use crate::{Context, Error};

/// Sends each message to one of its peers, in turn, and receives from all of them, in turn: asks and
/// answers without waiting.
///
/// Talks to [`Router`](crate::Router), to another `Dealer` and to [`Rep`](crate::Rep). To a `Rep` it
/// sends an empty part before the body, and may send parts of its own before that, which come back
/// with the reply; what has no empty part the `Rep` discards (RFC 28).
///
/// ```no_run
/// # use msg_patterns::{Context, Dealer, Message};
/// let dealer = Dealer::new(&Context::new())?;
/// dealer.connect("tcp://127.0.0.1:5560")?;
/// dealer.send(Message::from_parts(["first", "", "ping"]))?;
/// dealer.send(Message::from_parts(["second", "", "ping"]))?;
/// assert_eq!(dealer.recv()?.parts(), ["first", "", "pong"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Dealer {
    pub(super) handle: Arc<Handle<Role>>,
}

common_calls!(Dealer);
two_way_calls!(Dealer, Role, "a peer with room");

impl Socket for Dealer {
    const TYPE: SocketType = SocketType::Dealer;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        Ok(Self { handle: Handle::open(context, options.0, 0, Role::new())? })
    }
}
