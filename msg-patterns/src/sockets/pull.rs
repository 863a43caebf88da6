use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use msg_proto::types::SocketType;
use msg_proto::wire::abilities;
use parking_lot::Mutex;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
use crate::engine::Core;
use crate::roles::puller::{Puller, Unacked};
use crate::{Context, Error, Message};

/// Receives the messages of all its peers, in turn.
///
/// Where the pusher asks for acknowledgement, a message counts as processed when this handle
/// receives its next one, when [`ack`](Pull::ack) is called, or when the socket is closed with
/// [`close`](Pull::close). Clone the handle for each thread that processes messages.
pub struct Pull {
    pub(super) handle: Arc<Handle<Puller>>,
    current: Mutex<Option<Unacked>>,
    /// Whether `current` may hold something; tells most calls that they need not look.
    has_current: AtomicBool,
}

common_calls!(Pull);

impl Socket for Pull {
    const TYPE: SocketType = SocketType::Pull;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let handle = Handle::open(context, options.0, abilities::ACKS, Puller::new())?;
        Ok(Self::of(handle))
    }
}

impl Clone for Pull {
    fn clone(&self) -> Self {
        Self::of(self.handle.clone())
    }
}

impl Pull {
    fn of(handle: Arc<Handle<Puller>>) -> Self {
        Self { handle, current: Mutex::new(None), has_current: AtomicBool::new(false) }
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

    /// Receives up to `max` messages behind those in `messages`, waiting for the first one; says how
    /// many came. Takes less for each than receiving them one by one. A
    /// message to be acknowledged comes alone.
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
        Ok(1 + self.pull_many(messages, max - 1))
    }

    pub(super) fn pull_many(&self, messages: &mut Vec<Message>, max: usize) -> usize {
        if self.has_current.load(Ordering::Relaxed) {
            return 0;
        }
        self.handle.recv_many(messages, max, |core| core.role.pull_at_once(&mut core.net))
    }

    /// Receives if a message is here now.
    ///
    /// # Errors
    /// `WouldBlock` or `Terminated`.
    pub fn try_recv(&self) -> Result<Message, Error> {
        match self.pull_at_once() {
            Some(message) => Ok(message),
            None => self.handle.try_recv_with(|core| self.pull(core)),
        }
    }

    fn recv_until(&self, patience: Patience) -> Result<Message, Error> {
        match self.pull_at_once() {
            Some(message) => Ok(message),
            None => self.handle.recv_until(patience, |core| self.pull(core)),
        }
    }

    /// As `pull`, when neither this message nor the last one has to be acknowledged.
    fn pull_at_once(&self) -> Option<Message> {
        if self.has_current.load(Ordering::Relaxed) {
            return None;
        }
        self.handle.shared.take_at_once(|core| core.role.pull_at_once(&mut core.net))
    }

    pub(super) fn pull(&self, core: &mut Core<Puller>) -> Option<Message> {
        let mut current = self.current.lock();
        if let Some(unacked) = current.take() {
            core.role.finish(&mut core.net, unacked);
        }
        let pulled = core.role.pull(&mut core.net);
        let (message, unacked) = pulled.unzip();
        *current = unacked.flatten();
        self.has_current.store(current.is_some(), Ordering::Relaxed);
        message
    }

    /// Says that the last message this handle received was processed.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn ack(&self) -> Result<(), Error> {
        let Some(unacked) = self.current.lock().take() else { return Ok(()) };
        self.handle.shared.command(|core| core.role.finish_now(&mut core.net, unacked))
    }

    /// Acknowledges the last message and closes the socket for all its handles; its ports are free
    /// when this returns. Messages that were not received are dropped; a pusher that asked for
    /// acknowledgement gives them to others.
    pub fn close(self) {
        // Terminated already: there is nobody to tell.
        drop(self.ack());
        self.handle.close();
    }
}
