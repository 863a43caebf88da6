//! What a domain reports.

use fabric_mem::Slot;

use crate::{Addr, Error, SendBuf};

/// One connection of a domain. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpId(pub u64);

/// One posted operation of a domain. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// One listening address of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u64);

/// One multicast group joined by a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u64);

/// A buffer that comes back from a remote memory operation.
#[derive(Debug)]
pub enum Returned {
    /// From a read: its first bytes are what was read.
    Slot(Slot),
    /// From a write.
    SendBuf(SendBuf),
    /// From an atomic, which has none: the value before it.
    Value(u64),
}

/// What happened. Every accepted buffer comes back in exactly one event, or goes home when the
/// domain is dropped.
#[derive(Debug)]
pub enum Event {
    /// An endpoint made by `connect` can be used.
    Connected {
        /// The endpoint.
        ep: EpId,
        /// The peer's address as far as the fabric knows it.
        peer: Addr,
    },
    /// A peer connected to a listener; the endpoint can be used.
    Accepted {
        /// The new endpoint.
        ep: EpId,
        /// Where it came in.
        listener: ListenerId,
        /// The peer's address as far as the fabric knows it.
        peer: Addr,
    },
    /// A peer tried to connect and failed before it became an endpoint, for instance because it
    /// speaks another protocol.
    AcceptFailed {
        /// Where it came in.
        listener: ListenerId,
        /// Why, naming the peer.
        error: Error,
    },
    /// A send (or a multicast, then `ep` is `EpId(u64::MAX)`) was handed over (`Ok`: the buffer may be used again; the peer may still not have it)
    /// or was not.
    Sent {
        /// Its endpoint.
        ep: EpId,
        /// What `post_send` returned.
        op: OpId,
        /// The buffer.
        buf: SendBuf,
        /// Whether it left.
        result: Result<(), Error>,
    },
    /// A whole message arrived; `slot.filled()` is the message.
    Received {
        /// Its endpoint.
        ep: EpId,
        /// What `post_recv` returned.
        op: OpId,
        /// The buffer.
        slot: Slot,
        /// Set when a `post_write_imm` completed here: then the slot is empty.
        imm: Option<u32>,
    },
    /// A read, write or atomic ended.
    RmaDone {
        /// Its endpoint.
        ep: EpId,
        /// What the post returned.
        op: OpId,
        /// The buffer, or an atomic's value.
        returned: Returned,
        /// Whether it succeeded. `ErrorKind::Access` if the peer refused; the endpoint then closes.
        result: Result<(), Error>,
    },
    /// A multicast message of another member arrived.
    Multicast {
        /// The group.
        group: GroupId,
        /// What `post_recv` returned.
        op: OpId,
        /// The buffer.
        slot: Slot,
    },
    /// The endpoint is gone, also when it never connected. Nothing about it follows. Memory exposed
    /// to it is out of reach and can be revoked.
    Closed {
        /// The endpoint.
        ep: EpId,
        /// Why: `Closed` when the peer said so, `Flushed` when this side called `close`.
        why: Error,
    },
}
