//! The traits that providers implement.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use fabric_mem::{Pool, Slot};

use crate::{
    Access, Addr, Caps, EpId, Error, Event, Exposure, GroupId, ListenerId, OpId, Rejected,
    RemoteKey, SendBuf, Waker,
};

/// Something a fabric can be opened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, as its administrator knows it: `eth0`, `mlx5_0`.
    pub name: String,
    /// What it is and which addresses it has, for people.
    pub detail: String,
}

/// A provider: opens domains.
pub trait Fabric: Send + Sync {
    /// What `open` gives.
    type Domain: Domain + 'static;

    /// The address schemes it serves, without `://`.
    fn schemes(&self) -> &'static [&'static str];

    /// The devices of this host it could use.
    ///
    /// # Errors
    /// `Host` when the host cannot be asked.
    fn devices(&self) -> Result<Vec<Device>, Error>;

    /// Opens a domain of its own.
    ///
    /// # Errors
    /// `Host` when there is no device or a limit of the host is in the way.
    fn open(&self) -> Result<Self::Domain, Error>;

    /// Opens a domain of its own to listen at or connect to `addr`, on the device that `addr` names
    /// or that leads there. Providers whose domains reach everything just open one.
    ///
    /// # Errors
    /// As [`open`](Fabric::open), and those of [`Domain::connect`] that `addr` brings about.
    fn open_for(&self, addr: &Addr) -> Result<Self::Domain, Error> {
        let _ = addr;
        self.open()
    }

    /// The device that [`open_for`](Fabric::open_for) would open a domain on, as `Caps::device`
    /// names it. `None` where a domain on any device will do.
    ///
    /// # Errors
    /// As [`open_for`](Fabric::open_for).
    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error> {
        let _ = addr;
        Ok(None)
    }

    /// The query parameters of an address that this provider itself understands, such as `device`.
    /// Whoever takes settings from addresses leaves these in.
    fn queries(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A provider chosen at run time. Implemented for every [`Fabric`].
pub trait DynFabric: Send + Sync {
    /// As [`Fabric::schemes`].
    fn schemes(&self) -> &'static [&'static str];
    /// As [`Fabric::devices`].
    ///
    /// # Errors
    /// As [`Fabric::devices`].
    fn devices(&self) -> Result<Vec<Device>, Error>;
    /// As [`Fabric::open`], boxed.
    ///
    /// # Errors
    /// As [`Fabric::open`].
    fn open_boxed(&self) -> Result<Box<dyn Domain>, Error>;
    /// As [`Fabric::open_for`], boxed.
    ///
    /// # Errors
    /// As [`Fabric::open_for`].
    fn open_boxed_for(&self, addr: &Addr) -> Result<Box<dyn Domain>, Error>;
    /// As [`Fabric::device_for`].
    ///
    /// # Errors
    /// As [`Fabric::device_for`].
    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error>;
    /// As [`Fabric::queries`].
    fn queries(&self) -> &'static [&'static str];
}

impl<F: Fabric> DynFabric for F {
    fn schemes(&self) -> &'static [&'static str] {
        Fabric::schemes(self)
    }

    fn devices(&self) -> Result<Vec<Device>, Error> {
        Fabric::devices(self)
    }

    fn open_boxed(&self) -> Result<Box<dyn Domain>, Error> {
        Ok(Box::new(self.open()?))
    }

    fn open_boxed_for(&self, addr: &Addr) -> Result<Box<dyn Domain>, Error> {
        Ok(Box::new(self.open_for(addr)?))
    }

    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error> {
        Fabric::device_for(self, addr)
    }

    fn queries(&self) -> &'static [&'static str] {
        Fabric::queries(self)
    }
}

/// Where a domain listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Names it in events and in `unlisten`.
    pub id: ListenerId,
    /// The address with everything filled in that was left open, such as the port; a peer on the
    /// same host can connect to it unless it names all interfaces.
    pub addr: Addr,
}

/// Whether a foreign event loop may sleep on `wait_fd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Something happened meanwhile: poll first.
    Ready,
    /// The descriptor becomes readable when something happens. Poll again within the given time,
    /// if any, for the domain's own deadlines.
    Idle(Option<Duration>),
}

/// One device context, driven by one thread at a time. Object safe on purpose: `Box<dyn Domain>` is
/// a `Domain`.
///
/// Nothing here blocks but [`wait`](Domain::wait). Unknown endpoints, operations and listeners are
/// `Misuse` errors, never panics.
pub trait Domain: Send {
    /// Limits and abilities, fixed when the domain opened.
    fn caps(&self) -> &Caps;

    /// The time that all deadlines of this domain count in. A simulated fabric has its own.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Makes a pool known to the device. Slots of other pools may be posted too; a provider that
    /// needs registration then registers or copies.
    ///
    /// # Errors
    /// `Host` when the host forbids it (locked memory).
    fn register(&mut self, pool: &Pool) -> Result<(), Error>;

    /// Starts to accept peers at `addr`.
    ///
    /// # Errors
    /// `Address`, `AddrInUse`, `Unsupported` (another scheme) or `Host`.
    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error>;

    /// Stops accepting there and frees the address before it returns. Accepted endpoints stay.
    ///
    /// # Errors
    /// `Misuse` if there is no such listener.
    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error>;

    /// Starts to connect. Ends in exactly one of `Connected` and `Closed`, within a time limit of
    /// the provider. Sends may be posted to it only after `Connected`.
    ///
    /// # Errors
    /// `Address`, `Unsupported` (another scheme) or `Host`, when it cannot even start.
    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error>;

    /// Queues a message. Messages of an endpoint arrive whole, once, and in order, or not at all
    /// once it closed; each consumes one receive of the peer's domain.
    ///
    /// # Errors
    /// The buffer with `Misuse` (unknown or not connected endpoint, longer than
    /// `message_bytes_max`, more than `segments_max`) or `Full` (`send_depth` in flight).
    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>>;

    /// Offers a slot to whichever endpoint receives next. Without one, peers wait: nothing is lost.
    ///
    /// # Errors
    /// The slot with `Full` (`recv_depth` posted).
    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>>;

    /// Hands what was posted to the device: one doorbell, one vectored write.
    fn flush(&mut self);

    /// Flushes, then appends up to `max` events and says how many. Never blocks.
    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize;

    /// Sleeps until `poll` may have something, the waker is called, a deadline of the domain is due
    /// or `timeout` is over (`None`: no limit). May return early.
    ///
    /// # Errors
    /// `Host` or `Provider` when the host cannot wait; the domain is then unusable.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error>;

    /// For a foreign event loop: readable after `arm` said `Idle`, once something happened.
    fn wait_fd(&self) -> BorrowedFd<'_>;

    /// Asks for the descriptor to become readable at the next event.
    fn arm(&mut self) -> Armed;

    /// Wakes `wait` (or the descriptor) from another thread.
    fn waker(&self) -> Waker;

    /// Closes an endpoint: everything posted to it comes back in its event, flushed if it had not
    /// left, then `Closed { why: Flushed }`. Messages whose `Sent` was `Ok` still go to the peer.
    /// Closing an unknown or closed endpoint does nothing.
    fn close(&mut self, ep: EpId);

    /// Remote memory access, if offered; as `caps().rma` says.
    fn rma(&mut self) -> Option<&mut dyn Rma> {
        None
    }

    /// Atomics on remote memory, if offered; as `caps().atomics` says.
    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        None
    }

    /// Unreliable one-to-many messages, if offered; as `caps().multicast` says.
    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        None
    }
}

/// Reading and writing memory that the peer exposed.
///
/// A peer that reaches for memory with a wrong, revoked or foreign key, beyond its bounds or without
/// the right gets `ErrorKind::Access`, and its endpoint is closed; not one byte moves.
pub trait Rma {
    /// Lets the peer of `ep`, and no other, reach `mem`, until `revoke`.
    ///
    /// # Errors
    /// The memory with `Misuse` (unknown endpoint, no access asked for, writing to shared bytes,
    /// nothing to expose) or `Full`.
    fn expose(
        &mut self,
        ep: EpId,
        mem: Exposure,
        access: Access,
    ) -> Result<RemoteKey, Rejected<Exposure>>;

    /// Ends an exposure and gives the memory back; also after its endpoint closed. Once this
    /// returns, no peer reads or writes it. The slot's length is what it was when it was exposed.
    ///
    /// # Errors
    /// `Misuse` when nothing is exposed under that key.
    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error>;

    /// Copies bytes at `offset` out of memory exposed here.
    ///
    /// # Errors
    /// `Misuse` for an unknown key or a range beyond the memory.
    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error>;

    /// Copies bytes to `offset` in memory exposed here.
    ///
    /// # Errors
    /// `Misuse` for an unknown key, a range beyond the memory or shared bytes.
    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error>;

    /// Reads `len` bytes at `offset` of the peer's memory into the beginning of `into`. Other
    /// messages of the endpoint pass between its pieces. Ends in `RmaDone` with the slot, its
    /// length set to `len`.
    ///
    /// # Errors
    /// The slot with `Misuse` (unknown endpoint, `len` over the slot's capacity or `bytes_max`) or
    /// `Full`.
    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>>;

    /// Writes `buf` to `offset` of the peer's memory. When `RmaDone` says `Ok`, the bytes are there.
    ///
    /// # Errors
    /// The buffer with `Misuse` (unknown endpoint, longer than `bytes_max`) or `Full`.
    fn post_write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>>;

    /// As `post_write`, and then consumes a receive at the peer, which gets
    /// `Received { imm: Some(imm), .. }` after the bytes are there.
    ///
    /// # Errors
    /// As `post_write`.
    fn post_write_imm(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: u32,
    ) -> Result<OpId, Rejected<SendBuf>>;
}

/// Atomics on little-endian 64-bit words of memory that the peer exposed with `Access::atomic`.
/// `offset` must be a multiple of 8. Ends in `RmaDone` with the value before.
pub trait Atomics {
    /// Sets the word to `swap` if it is `compare`.
    ///
    /// # Errors
    /// `Misuse` (unknown endpoint, offset not aligned) or `Full`.
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error>;

    /// Adds `add` to the word, wrapping.
    ///
    /// # Errors
    /// As `compare_swap`.
    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error>;
}

/// One-to-many messages in hardware: bounded by the MTU, may be lost and reordered.
pub trait Multicast {
    /// Joins a group.
    ///
    /// # Errors
    /// `Address`, `Unsupported` or `Host`.
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error>;

    /// Leaves a group.
    ///
    /// # Errors
    /// `Misuse` if it was not joined.
    fn leave(&mut self, group: GroupId) -> Result<(), Error>;

    /// Sends to all other members. Ends in `Sent`.
    ///
    /// # Errors
    /// The buffer with `Misuse` (not joined, longer than the MTU allows) or `Full`.
    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>>;

    /// Messages of a group that arrived here since it was joined and were lost, as no receive was
    /// posted or the next one was too short; then that one stays posted. What the network lost is
    /// not known.
    ///
    /// # Errors
    /// `Misuse` if it was not joined.
    fn dropped(&mut self, group: GroupId) -> Result<u64, Error>;
}

impl<D: Domain + ?Sized> Domain for Box<D> {
    fn caps(&self) -> &Caps {
        (**self).caps()
    }
    fn now(&self) -> Instant {
        (**self).now()
    }
    fn register(&mut self, pool: &Pool) -> Result<(), Error> {
        (**self).register(pool)
    }
    fn listen(&mut self, addr: &Addr) -> Result<Listener, Error> {
        (**self).listen(addr)
    }
    fn unlisten(&mut self, listener: ListenerId) -> Result<(), Error> {
        (**self).unlisten(listener)
    }
    fn connect(&mut self, addr: &Addr) -> Result<EpId, Error> {
        (**self).connect(addr)
    }
    fn post_send(&mut self, ep: EpId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        (**self).post_send(ep, buf)
    }
    fn post_recv(&mut self, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        (**self).post_recv(slot)
    }
    fn flush(&mut self) {
        (**self).flush();
    }
    fn poll(&mut self, events: &mut Vec<Event>, max: usize) -> usize {
        (**self).poll(events, max)
    }
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        (**self).wait(timeout)
    }
    fn wait_fd(&self) -> BorrowedFd<'_> {
        (**self).wait_fd()
    }
    fn arm(&mut self) -> Armed {
        (**self).arm()
    }
    fn waker(&self) -> Waker {
        (**self).waker()
    }
    fn close(&mut self, ep: EpId) {
        (**self).close(ep);
    }
    fn rma(&mut self) -> Option<&mut dyn Rma> {
        (**self).rma()
    }
    fn atomics(&mut self) -> Option<&mut dyn Atomics> {
        (**self).atomics()
    }
    fn multicast(&mut self) -> Option<&mut dyn Multicast> {
        (**self).multicast()
    }
}

impl fmt::Debug for dyn Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("caps", self.caps()).finish_non_exhaustive()
    }
}
