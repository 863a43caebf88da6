use std::sync::Arc;
use std::time::Duration;

use msg_proto::requests::RequestId;
use msg_proto::types::SocketType;
use parking_lot::Mutex;

use super::common::common_calls;
use super::{Handle, OpenOptions, Socket};
use crate::driver::Patience;
use crate::roles::requester::Requester;
use crate::{Context, Error, ErrorKind, Message, SendError};

/// Asks one of its peers, in turn, and gets the reply.
///
/// [`request`](Req::request) does both in one call. With `send` and `recv` a handle alternates
/// between the two. Each clone is a handle of its own over the same connections: so many requests
/// can be under way at once, each with its own reply.
///
/// ```no_run
/// # use msg_patterns::{Context, Req};
/// # use std::time::Duration;
/// let req = Req::new(&Context::new())?;
/// req.connect("tcp://127.0.0.1:5558")?;
/// let reply = req.request("ping", Duration::from_secs(1))?;
/// # Ok::<(), msg_patterns::Error>(())
/// ```
pub struct Req {
    pub(super) handle: Arc<Handle<Requester>>,
    pub(super) current: Mutex<Option<RequestId>>,
}

common_calls!(Req);

impl Socket for Req {
    const TYPE: SocketType = SocketType::Req;

    fn open(context: &Context, options: OpenOptions) -> Result<Self, Error> {
        let role = Requester::new(&options.0);
        let handle = Handle::open(context, options.0, 0, role)?;
        Ok(Self { handle, current: Mutex::new(None) })
    }
}

impl Clone for Req {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), current: Mutex::new(None) }
    }
}

impl Req {
    /// Sends a request and waits for its reply, for at most `timeout` in all.
    ///
    /// # Errors
    /// `TimedOut`, `PeerGone`, `TooLong` or `Terminated`.
    pub fn request(
        &self,
        message: impl Into<Message>,
        timeout: Duration,
    ) -> Result<Message, Error> {
        // What it waited for room is part of it.
        let mut patience = Patience::For(timeout);
        let id = self.begin(message.into(), &mut patience)?;
        let found = self.handle.recv_until(patience, |core| core.role.take_result(id));
        found.unwrap_or_else(|error| {
            self.cancel(id);
            Err(if error.kind() == ErrorKind::TimedOut {
                Error::timed_out("no reply came")
            } else {
                error
            })
        })
    }

    /// Sends a request, waiting for a peer with room; `recv` gets the reply.
    ///
    /// # Errors
    /// The message with `State` (the last reply is still to be received), `TooLong` or
    /// `Terminated`.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        self.send_until(message.into(), Patience::Endless)
    }

    /// As `send`, waiting for at most `timeout`.
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

    /// As `send`, if a peer has room now.
    ///
    /// # Errors
    /// As `send`, and `NoPeer` or `WouldBlock`.
    pub fn try_send(&self, message: impl Into<Message>) -> Result<(), SendError> {
        let mut current = self.current.lock();
        let message = self.may_send(&mut current, message.into())?;
        let id = self
            .handle
            .try_send_with(message, |core, message| core.role.request(&mut core.net, message))?;
        *current = Some(id);
        Ok(())
    }

    fn send_until(&self, message: Message, mut patience: Patience) -> Result<(), SendError> {
        let mut current = self.current.lock();
        let message = self.may_send(&mut current, message)?;
        *current = Some(self.begin(message, &mut patience)?);
        Ok(())
    }

    fn may_send(
        &self,
        current: &mut Option<RequestId>,
        message: Message,
    ) -> Result<Message, SendError> {
        match self.make_way(current) {
            Ok(()) => Ok(message),
            Err(error) => Err(SendError::new(message, error)),
        }
    }

    /// Strict alternation, unless relaxed.
    pub(super) fn make_way(&self, current: &mut Option<RequestId>) -> Result<(), Error> {
        match current.take() {
            Some(id) if self.is_relaxed() => self.cancel(id),
            Some(id) => {
                *current = Some(id);
                let text = "the reply to the last request comes first: call recv, or set relaxed";
                return Err(Error::new(ErrorKind::State, text));
            }
            None => {}
        }
        Ok(())
    }

    fn is_relaxed(&self) -> bool {
        self.handle.shared.look(|core| core.net.options.relaxed)
    }

    fn begin(&self, message: Message, patience: &mut Patience) -> Result<RequestId, SendError> {
        self.handle
            .send_with(message, patience, |core, message| core.role.request(&mut core.net, message))
    }

    /// Receives the reply to the last `send`, waiting for it.
    ///
    /// # Errors
    /// `State` (nothing was sent), `PeerGone` or `Terminated`.
    pub fn recv(&self) -> Result<Message, Error> {
        self.recv_until(Patience::Endless)
    }

    /// As `recv`, waiting for at most `timeout`. After `TimedOut` it can be called again.
    ///
    /// # Errors
    /// As `recv`, and `TimedOut`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Message, Error> {
        self.recv_until(Patience::For(timeout))
    }

    /// As `recv`, if the reply is here now.
    ///
    /// # Errors
    /// As `recv`, and `WouldBlock`.
    pub fn try_recv(&self) -> Result<Message, Error> {
        let id = self.under_way()?;
        let result = self.handle.try_recv_with(|core| core.role.take_result(id))?;
        self.end(id);
        result
    }

    /// Waits without the lock, so that a relaxed `send` on another thread can take the request's
    /// place.
    fn recv_until(&self, patience: Patience) -> Result<Message, Error> {
        let id = self.under_way()?;
        let result = self.handle.recv_until(patience, |core| core.role.take_result(id))?;
        self.end(id);
        result
    }

    pub(super) fn under_way(&self) -> Result<RequestId, Error> {
        let nothing_sent = "no request is under way: send one first";
        (*self.current.lock()).ok_or_else(|| Error::new(ErrorKind::State, nothing_sent))
    }

    pub(super) fn end(&self, id: RequestId) {
        let mut current = self.current.lock();
        if *current == Some(id) {
            *current = None;
        }
    }

    fn cancel(&self, id: RequestId) {
        cancel(&self.handle, id);
    }

    /// Closes the socket for all its handles: waits up to linger for what was accepted; then its
    /// ports are free.
    pub fn close(self) {
        self.handle.close();
    }
}

pub(super) fn cancel(handle: &Handle<Requester>, id: RequestId) {
    // Terminated already: nothing is under way.
    drop(handle.shared.command(|core| core.role.cancel(id)));
}

impl Drop for Req {
    /// Nobody will receive the reply any more; the request itself still leaves.
    fn drop(&mut self) {
        if let Some(id) = self.current.get_mut().take() {
            // Terminated already: nothing is under way.
            drop(self.handle.shared.command(|core| core.role.abandon(id)));
        }
    }
}
