use std::sync::Arc;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::publishing::publishing_calls;
use super::{Handle, MatchingListener, OpenOptions, Socket};
use crate::roles::publisher::Publisher;
use crate::{Context, Error};

/// Sends each message to every peer that subscribed to the beginning of its first part.
///
/// ```no_run
/// # use msg_patterns::{Context, Message, Pub};
/// let publisher = Pub::new(&Context::new())?;
/// publisher.bind("tcp://127.0.0.1:5556")?;
/// publisher.send(Message::from_parts(["weather.berlin", "7 °C"]))?;
/// # Ok::<(), msg_patterns::Error>(())
/// ```
#[derive(Clone)]
pub struct Pub {
    pub(super) handle: Arc<Handle<Publisher>>,
}

common_calls!(Pub);

impl Socket for Pub {
    const TYPE: SocketType = SocketType::Pub;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Publisher::new(&options.0);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

publishing_calls!(Pub);

impl Pub {
    /// Follows how many connected subscribers would get a message whose first part is `subject`.
    pub fn matching_listener(&self, subject: impl AsRef<[u8]>) -> MatchingListener {
        MatchingListener::new(self.handle.clone(), subject.as_ref())
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free.
    pub fn close(self) {
        self.handle.close();
    }
}
