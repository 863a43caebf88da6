use std::sync::Arc;
use std::time::Duration;

use msg_proto::types::SocketType;
use msg_proto::wire::IDENTITY_BYTES_MAX;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
use crate::engine::{Core, Room};
use crate::roles::router::Router as Role;
use crate::{Context, Error, ErrorKind, Message, RoutingId, SendError};

/// Receives from all of its peers, in turn, and sends each message to the peer that it names.
///
/// Talks to [`Dealer`](crate::Dealer), [`Req`](crate::Req) and other routers. The id of what a `Req`
/// asked names the request too: what is sent there is the reply to it.
///
/// A message that no peer can be found for, or whose peer has no room, is dropped and counted, and
/// monitors are told. With `mandatory` it is handed back instead.
///
/// ```no_run
/// # use msg_patterns::{Context, Router};
/// let router = Router::new(&Context::new())?;
/// router.bind("tcp://*:5560")?;
/// let (from, message) = router.recv()?;
/// router.send_to(&from, message)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Router {
    pub(super) handle: Arc<Handle<Role>>,
}

common_calls!(Router);

impl Socket for Router {
    const TYPE: SocketType = SocketType::Router;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Role::new(&options.0);
        Ok(Self { handle: Handle::open(context, options.0, 0, role)? })
    }
}

impl Router {
    /// As `connect`, with a name for the peer, whatever it calls itself: it can be sent to at once
    /// (ZMQ_CONNECT_ROUTING_ID).
    ///
    /// # Errors
    /// As `connect`, and `Invalid` if the name is empty, over 255 bytes, begins with a zero byte or
    /// is taken.
    pub fn connect_as(&self, addr: &str, name: &RoutingId) -> Result<(), Error> {
        self.handle.at(addr, |core, place| {
            let bytes = name.name();
            let legal = (1..=IDENTITY_BYTES_MAX).contains(&bytes.len()) && bytes[0] != 0;
            if !legal || core.role.knows(bytes) {
                let text = "the name is no identity, or taken: choose another one";
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            core.role.name_next(Some(bytes.clone()));
            let done = core.connect(place);
            core.role.name_next(None);
            done
        })
    }

    /// Sends to the peer that `to` names. Waits only with `mandatory`, while that peer has no room;
    /// without it, never.
    ///
    /// # Errors
    /// The message with `TooLong` or `Terminated`; with `mandatory`, `NoPeer`.
    pub fn send_to(&self, to: &RoutingId, message: impl Into<Message>) -> Result<(), SendError> {
        self.send_until(to, message.into(), Patience::Endless)
    }

    /// As `send_to`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// As `send_to`, and `TimedOut`.
    pub fn send_to_timeout(
        &self,
        to: &RoutingId,
        message: impl Into<Message>,
        timeout: Duration,
    ) -> Result<(), SendError> {
        self.send_until(to, message.into(), Patience::For(timeout))
    }

    /// As `send_to`, without waiting.
    ///
    /// # Errors
    /// As `send_to`; with `mandatory`, `WouldBlock`.
    pub fn try_send_to(
        &self,
        to: &RoutingId,
        message: impl Into<Message>,
    ) -> Result<(), SendError> {
        let message = message.into();
        if self.send_at_once(to, &message) {
            return Ok(());
        }
        self.handle.try_send_with(message, |core, message| give(core, to, message))
    }

    fn send_at_once(&self, to: &RoutingId, message: &Message) -> bool {
        self.handle.shared.send_at_once(|core| core.role.send_at_once(&mut core.net, to, message))
    }

    fn send_until(
        &self,
        to: &RoutingId,
        message: Message,
        mut patience: Patience,
    ) -> Result<(), SendError> {
        if self.send_at_once(to, &message) {
            return Ok(());
        }
        self.handle.send_with(message, &mut patience, |core, message| give(core, to, message))
    }

    /// Whether a small message would reach the peer that `to` names: it is there and has room.
    pub fn has_room_for(&self, to: &RoutingId) -> bool {
        self.handle.shared.look(|core| core.role.way(&core.net, to, 0).0 == Room::Yes)
    }

    /// Receives, waiting for a message; the id says from whom it is.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn recv(&self) -> Result<(RoutingId, Message), Error> {
        self.recv_until(Patience::Endless)
    }

    /// As `recv`, waiting for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<(RoutingId, Message), Error> {
        self.recv_until(Patience::For(timeout))
    }

    /// As `recv`, if a message is here now.
    ///
    /// # Errors
    /// `WouldBlock` or `Terminated`.
    pub fn try_recv(&self) -> Result<(RoutingId, Message), Error> {
        match self.take_at_once() {
            Some(found) => Ok(found),
            None => self.handle.try_recv_with(take),
        }
    }

    fn recv_until(&self, patience: Patience) -> Result<(RoutingId, Message), Error> {
        match self.take_at_once() {
            Some(found) => Ok(found),
            None => self.handle.recv_until(patience, take),
        }
    }

    fn take_at_once(&self) -> Option<(RoutingId, Message)> {
        self.handle.shared.take_at_once(|core| core.role.receive_at_once(&mut core.net))
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free. Messages that were not received are dropped.
    pub fn close(self) {
        self.handle.close();
    }
}

pub(super) fn give(
    core: &mut Core<Role>,
    to: &RoutingId,
    message: Message,
) -> Result<(), (Message, Room)> {
    core.role.send_to(&mut core.net, to, message)
}

pub(super) fn take(core: &mut Core<Role>) -> Option<(RoutingId, Message)> {
    core.role.receive(&mut core.net)
}
