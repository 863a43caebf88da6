//! An endpoint with one peer, connected or not.

use std::net::SocketAddr;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libfabric_sys as ffi;

use crate::litter;

use super::contexts::Contexts;
use super::memory::Desc;
use super::opened::{Completion, Opened, Queue};
use super::vector::Vector;
use super::{Code, Info, Kind, check, close, count, kin, sockaddr};

/// Bytes that the longest name of an endpoint takes.
const NAME_BYTES: usize = 512;

/// Completions that the queue of one endpoint has room for.
const COMPLETIONS: usize = 512;

/// What an endpoint without connections has for itself. It is not polled any more once the endpoint
/// is let go of: some providers would reach for a peer that is gone.
struct Own {
    vector: Vector,
    queue: Queue,
}

/// A peer in an address vector.
struct Peer {
    number: u64,
    name: Vec<u8>,
}

/// An endpoint that is bound to everything it needs, and enabled.
pub(crate) struct Endpoint {
    raw: NonNull<ffi::fid_ep>,
    /// Only without connections, as the rest here.
    own: Option<Own>,
    peer: Option<Peer>,
    name: Vec<u8>,
    opened: Arc<Opened>,
}

// SAFETY: one thread at a time drives the domain.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// # Errors
    /// What the provider says.
    pub(crate) fn new(opened: &Arc<Opened>, info: &Info, kind: Kind) -> Result<Self, Code> {
        let own = match kind {
            Kind::Connected => None,
            Kind::Datagram => {
                Some(Own { vector: Vector::new(opened)?, queue: opened.new_queue(COMPLETIONS)? })
            }
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the domain is open as `opened` is held, and the info whole.
        check(unsafe {
            ffi::call::fi_endpoint(opened.domain(), info.raw(), &mut raw, ptr::null_mut())
        })?;
        let raw = NonNull::new(raw).ok_or(Code::NO_OPERATION)?;
        let mut endpoint = Self { raw, own, peer: None, name: Vec::new(), opened: opened.clone() };
        // Some versions crash when an endpoint without a queue is closed: that comes first.
        let queue = endpoint.own.as_ref().map_or(opened.cq(), |own| own.queue.object());
        endpoint.bind(queue, ffi::FI_TRANSMIT | ffi::FI_RECV)?;
        match (&endpoint.own, opened.eq()) {
            (Some(own), _) => endpoint.bind(own.vector.object(), 0)?,
            (None, Some(eq)) => endpoint.bind(eq.cast(), 0)?,
            (None, None) => return Err(Code::NO_OPERATION),
        }
        // SAFETY: open and bound.
        check(unsafe { ffi::call::fi_enable(raw.as_ptr()) })?;
        if kind == Kind::Datagram {
            endpoint.name = endpoint.read_name()?;
            kin::born(&endpoint.name);
        }
        Ok(endpoint)
    }

    fn bind(&self, to: *mut ffi::fid, flags: u64) -> Result<(), Code> {
        // SAFETY: both objects are open.
        check(unsafe { ffi::call::fi_bind(self.raw.as_ptr().cast(), to, flags) })
    }

    fn read_name(&self) -> Result<Vec<u8>, Code> {
        let (mut name, mut len) = (vec![0u8; NAME_BYTES], NAME_BYTES);
        // SAFETY: the endpoint is open and there is that much room.
        check(unsafe {
            ffi::call::fi_getname(self.raw.as_ptr(), name.as_mut_ptr().cast(), &mut len)
        })?;
        name.truncate(len);
        Ok(name)
    }

    /// Names it in events.
    pub(crate) fn object(&self) -> u64 {
        self.raw.as_ptr() as u64
    }

    /// What a peer needs to reach it; nothing if it is to be connected.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What the peer said to reach it by.
    pub(crate) fn peer_name(&self) -> Option<&[u8]> {
        self.peer.as_ref().map(|peer| &peer.name[..])
    }

    /// Says who the peer is, without a connection.
    ///
    /// # Errors
    /// What the provider says.
    pub(crate) fn meet(&mut self, name: &[u8]) -> Result<(), Code> {
        let Some(own) = &self.own else { return Err(Code::NO_OPERATION) };
        kin::know(name, litter::is_ours(name))?;
        match own.vector.insert(name) {
            Ok(number) => {
                self.peer = Some(Peer { number, name: name.to_vec() });
                Ok(())
            }
            Err(error) => {
                kin::forget(name);
                Err(error)
            }
        }
    }

    /// Nothing more is sent to the peer. An endpoint of this process needs this before it can be
    /// closed.
    pub(crate) fn part(&mut self) {
        if let (Some(own), Some(peer)) = (&self.own, self.peer.take()) {
            own.vector.remove(peer.number);
            kin::forget(&peer.name);
        }
    }

    /// Whether no endpoint of this process still sends to it. If so, none begins to any more.
    pub(crate) fn may_close(&self) -> bool {
        kin::retire(&self.name)
    }

    /// Takes a batch of completions of its own queue, if it has one.
    ///
    /// # Errors
    /// What the provider says when its queue is broken.
    pub(crate) fn poll(
        &self,
        contexts: &Contexts,
        into: &mut Vec<Completion>,
    ) -> Result<bool, Code> {
        self.own.as_ref().map_or(Ok(false), |own| own.queue.poll(contexts, into))
    }

    /// Starts to connect to the destination of `info`; `say` goes along.
    ///
    /// # Errors
    /// What the provider says.
    pub(crate) fn connect(&self, info: &Info, say: &[u8]) -> Result<(), Code> {
        let to = info.get().dest_addr;
        // SAFETY: open and enabled; the address is the provider's own.
        check(unsafe {
            ffi::call::fi_connect(self.raw.as_ptr(), to, say.as_ptr().cast(), say.len())
        })
    }

    /// Accepts the request that it was made from.
    ///
    /// # Errors
    /// What the provider says.
    pub(crate) fn accept(&self, say: &[u8]) -> Result<(), Code> {
        // SAFETY: open and enabled.
        check(unsafe { ffi::call::fi_accept(self.raw.as_ptr(), say.as_ptr().cast(), say.len()) })
    }

    /// Ends the connection, if there is one.
    pub(crate) fn shutdown(&self) {
        if self.own.is_none() {
            // SAFETY: open and enabled.
            let done = unsafe { ffi::call::fi_shutdown(self.raw.as_ptr()) };
            if let Err(error) = check(done) {
                tracing::debug!(%error, "a connection was not shut down in order");
            }
        }
    }

    /// The address of the peer of a connection.
    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        let (mut bytes, mut len) = ([0u8; NAME_BYTES], NAME_BYTES);
        // SAFETY: the endpoint is open and there is that much room.
        check(unsafe {
            ffi::call::fi_getpeer(self.raw.as_ptr(), bytes.as_mut_ptr().cast(), &mut len)
        })
        .ok()?;
        sockaddr::parse(&bytes[..len.min(NAME_BYTES)])
    }

    /// Posts a receive. The memory belongs to the provider until the completion or the end.
    ///
    /// # Errors
    /// `AGAIN`, and what else the provider says.
    pub(crate) fn recv(
        &self,
        into: &mut [u8],
        desc: Desc,
        contexts: &mut Contexts,
        index: usize,
    ) -> Result<(), Code> {
        let context = contexts.pointer(index);
        // SAFETY: open and enabled. That the memory stays is this function's documented condition.
        count(unsafe {
            ffi::call::fi_recv(
                self.raw.as_ptr(),
                into.as_mut_ptr().cast(),
                into.len(),
                desc.0,
                context,
            )
        })
        .map(|_| ())
    }

    /// Posts a message. The memory belongs to the provider until the completion or the end.
    ///
    /// # Errors
    /// `AGAIN`, and what else the provider says.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        desc: Desc,
        contexts: &mut Contexts,
        index: usize,
    ) -> Result<(), Code> {
        let context = contexts.pointer(index);
        let start = bytes.as_ptr().cast();
        // SAFETY: as in `recv`.
        count(unsafe {
            ffi::call::fi_send(self.raw.as_ptr(), start, bytes.len(), desc.0, self.to(), context)
        })
        .map(|_| ())
    }

    /// Sends a message that the provider copies; there is no completion.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub(crate) fn inject(&self, bytes: &[u8]) -> Result<(), Code> {
        let start = bytes.as_ptr().cast();
        // SAFETY: open and enabled.
        count(unsafe { ffi::call::fi_inject(self.raw.as_ptr(), start, bytes.len(), self.to()) })
            .map(|_| ())
    }

    fn to(&self) -> u64 {
        self.peer.as_ref().map_or(ffi::FI_ADDR_UNSPEC, |peer| peer.number)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.part();
        // SAFETY: opened once, closed once, before what it is bound to.
        let is_gone = unsafe { close(self.raw.as_ptr().cast(), "an endpoint") };
        if !is_gone {
            // It may still use its vector and queues.
            std::mem::forget(self.own.take());
            std::mem::forget(self.opened.clone());
        }
        drop(self.own.take());
        kin::died(&self.name);
    }
}
