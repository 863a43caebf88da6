use std::sync::Arc;
use std::time::Duration;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
use crate::engine::Core;
use crate::roles::pusher::Pusher;
use crate::{Context, Error, Message, SendError};

/// Hands each message to one of its peers, in turn, skipping those without room.
///
/// ```no_run
/// # use msg_patterns::{Context, Push};
/// let push = Push::new(&Context::new())?;
/// push.connect("tcp://127.0.0.1:5557")?;
/// push.send("work")?;
/// push.close();
/// # Ok::<(), msg_patterns::Error>(())
/// ```
#[derive(Clone)]
pub struct Push {
    pub(super) handle: Arc<Handle<Pusher>>,
}

common_calls!(Push);

impl Socket for Push {
    const TYPE: SocketType = SocketType::Push;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Pusher::new(options.0.acknowledge);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl Push {
    /// Sends, waiting for a peer with room. `Ok` means queued, not delivered.
    ///
    /// # Errors
    /// The message with `TooLong` or `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        self.send_until(message.into(), Patience::Endless)
    }

    /// Sends, waiting for a peer with room for at most `timeout`.
    ///
    /// # Errors
    /// As `send`, and `TimedOut`.
    pub fn send_timeout(
        &self,
        message: impl Into<Message>,
        timeout: Duration,
    ) -> Result<(), SendError> {
        self.send_until(message.into(), Patience::For(timeout))
    }

    /// Sends all of `messages` in order, as [`send`](Self::send) would, for less each.
    ///
    /// # Errors
    /// As `send`, with the first message that was not sent; those before it were, and those behind it
    /// are dropped.
    pub fn send_many<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), SendError> {
        let send = |message| self.send_until(message, Patience::Endless);
        self.handle.send_many(messages, push_at_once, send)
    }

    /// Sends if a peer has room now.
    ///
    /// # Errors
    /// As `send`, and `NoPeer` or `WouldBlock`.
    pub fn try_send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let message = message.into();
        if self.send_at_once(&message) {
            return Ok(());
        }
        self.handle.try_send_with(message, |core, message| core.role.push(&mut core.net, message))
    }

    fn send_at_once(&self, message: &Message) -> bool {
        self.handle.shared.send_at_once(|core| push_at_once(core, message))
    }

    fn send_until(&self, message: Message, mut patience: Patience) -> Result<(), SendError> {
        if self.send_at_once(&message) {
            return Ok(());
        }
        self.handle.send_with(message, &mut patience, |core, message| {
            core.role.push(&mut core.net, message)
        })
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted (with
    /// `acknowledge`: until it was processed); then its ports are free.
    pub fn close(self) {
        self.handle.close();
    }
}

#[inline]
fn push_at_once(core: &mut Core<Pusher>, message: &Message) -> bool {
    core.role.push_at_once(&mut core.net, message)
}
