use std::sync::Arc;
use std::time::Duration;

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
    handle: Arc<Handle<Puller>>,
    current: Mutex<Option<Unacked>>,
}

common_calls!(Pull);

impl Socket for Pull {
    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let handle = Handle::open(context, options.0, abilities::ACKS, Puller::new())?;
        Ok(Self { handle, current: Mutex::new(None) })
    }
}

impl Clone for Pull {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), current: Mutex::new(None) }
    }
}

impl Pull {
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

    /// Receives if a message is here now.
    ///
    /// # Errors
    /// `WouldBlock` or `Terminated`.
    pub fn try_recv(&self) -> Result<Message, Error> {
        self.handle.try_recv_with(|core| self.pull(core))
    }

    fn recv_until(&self, patience: Patience) -> Result<Message, Error> {
        self.handle.recv_until(patience, |core| self.pull(core))
    }

    fn pull(&self, core: &mut Core<Puller>) -> Option<Message> {
        let mut current = self.current.lock();
        if let Some(unacked) = current.take() {
            core.role.finish(&mut core.net, unacked);
        }
        let (message, unacked) = core.role.pull(&mut core.net)?;
        *current = unacked;
        Some(message)
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
