use std::sync::Arc;
use std::time::Duration;

use msg_proto::types::SocketType;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
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
        if topic.len() > TOPIC_BYTES_MAX {
            let text =
                format!("a topic has at most {TOPIC_BYTES_MAX} bytes, this has {}", topic.len());
            return Err(Error::new(ErrorKind::TooLong, text));
        }
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

    /// Receives, waiting for a message.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv(&self) -> Result<Message, Error> {
        self.recv_until(Patience::Endless)
    }

    /// Receives, waiting for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Message, Error> {
        self.recv_until(Patience::For(timeout))
    }

    fn recv_until(&self, patience: Patience) -> Result<Message, Error> {
        match self.receive_at_once() {
            Some(message) => Ok(message),
            None => self.handle.recv_until(patience, |core| core.role.receive(&mut core.net)),
        }
    }

    fn receive_at_once(&self) -> Option<Message> {
        self.handle.shared.take_at_once(|core| core.role.receive_at_once(&mut core.net))
    }

    /// Receives up to `max` messages behind those in `messages`, waiting for the first one; says how
    /// many came. Takes less for each than receiving them one by one.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv_many(&self, messages: &mut Vec<Message>, max: usize) -> Result<usize, Error> {
        self.recv_many_until(messages, max, Patience::Endless)
    }

    /// As `recv_many`, waiting for the first one for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn recv_many_timeout(
        &self,
        messages: &mut Vec<Message>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, Error> {
        self.recv_many_until(messages, max, Patience::For(timeout))
    }

    fn recv_many_until(
        &self,
        messages: &mut Vec<Message>,
        max: usize,
        patience: Patience,
    ) -> Result<usize, Error> {
        if max == 0 {
            return Ok(0);
        }
        messages.push(self.recv_until(patience)?);
        Ok(1 + self.receive_many(messages, max - 1))
    }

    pub(super) fn receive_many(&self, messages: &mut Vec<Message>, max: usize) -> usize {
        self.handle.recv_many(messages, max, |core| core.role.receive_at_once(&mut core.net))
    }

    /// Receives if a message is here now.
    ///
    /// # Errors
    /// `WouldBlock` or `Terminated`.
    pub fn try_recv(&self) -> Result<Message, Error> {
        match self.receive_at_once() {
            Some(message) => Ok(message),
            None => self.handle.try_recv_with(|core| core.role.receive(&mut core.net)),
        }
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
}
