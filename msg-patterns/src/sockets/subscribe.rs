use std::sync::Arc;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::receiving::receiving_calls;
use super::{Handle, OpenOptions, Socket};
use crate::engine::Core;
use crate::roles::publisher::TOPIC_BYTES_MAX;
use crate::roles::subscriber::Subscriber;
use crate::{Context, Error, ErrorKind, Message};

/// Receives what matches its subscriptions, of all its publishers, in turn.
///
/// ```no_run
/// # use msg_patterns::{Context, Sub};
/// let sub = Sub::new(&Context::new())?;
/// sub.connect("tcp://127.0.0.1:5556")?;
/// sub.subscribe("weather.")?;
/// println!("{:?}", sub.recv()?);
/// # Ok::<(), msg_patterns::Error>(())
/// ```
#[derive(Clone)]
pub struct Sub {
    pub(super) handle: Arc<Handle<Subscriber>>,
}

common_calls!(Sub);
receiving_calls!(Sub);

impl Socket for Sub {
    const TYPE: SocketType = SocketType::Sub;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Subscriber::new(options.0.invert_matching);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl Sub {
    /// Subscribes to all messages whose first part begins with `topic`, byte for byte; the empty
    /// topic is all. Applies to every present and later publisher. Subscribing twice takes two
    /// `unsubscribe` to undo.
    ///
    /// # Errors
    /// `TooLong` for a topic over 32 KiB, `Terminated`.
    pub fn subscribe(&self, topic: impl AsRef<[u8]>) -> Result<(), Error> {
        let topic = topic.as_ref();
        check(topic)?;
        self.handle.shared.command(|core| core.role.subscribe(&mut core.net, topic))
    }

    /// Takes one `subscribe` back. Unsubscribing what was not subscribed does nothing.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn unsubscribe(&self, topic: impl AsRef<[u8]>) -> Result<(), Error> {
        let topic = topic.as_ref();
        self.handle.shared.command(|core| core.role.unsubscribe(&mut core.net, topic))
    }

    /// How many messages publishers said they dropped for this subscriber; per publisher in
    /// [`peers`](Sub::peers).
    pub fn lost(&self) -> u64 {
        self.counters().lost
    }

    /// Closes the socket for all its handles; its ports are free when this returns.
    pub fn close(self) {
        self.handle.close();
    }

    #[inline(always)]
    fn take_at_once(core: &mut Core<Subscriber>) -> Option<Message> {
        core.role.receive_at_once(&mut core.net)
    }

    pub(super) fn take(core: &mut Core<Subscriber>) -> Option<Message> {
        core.role.receive(&mut core.net)
    }
}

/// # Errors
/// `TooLong` for a topic over its limit.
pub(super) fn check(topic: &[u8]) -> Result<(), Error> {
    if topic.len() <= TOPIC_BYTES_MAX {
        return Ok(());
    }
    let text = format!("a topic has at most {TOPIC_BYTES_MAX} bytes, this has {}", topic.len());
    Err(Error::new(ErrorKind::TooLong, text))
}
