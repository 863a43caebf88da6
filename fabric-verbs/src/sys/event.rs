//! What the connection manager reports.

use std::io;
use std::sync::Arc;

use rdma_sys as ffi;

use super::cm::Id;
use super::{AddressHandle, Queues};

/// An event, copied and acknowledged.
pub(crate) struct CmEvent {
    /// What the id was given; of the listener for a request.
    pub(crate) cookie: u64,
    pub(crate) kind: CmKind,
    /// 0, a negative error number, or the reason of a rejection.
    pub(crate) status: i32,
    /// What the peer sent along.
    pub(crate) private: Vec<u8>,
    /// Reads and atomics that the peer will have in flight.
    pub(crate) peer_reads: u8,
    /// Reads and atomics that the peer takes at once.
    pub(crate) peer_serves: u8,
}

/// What happened.
pub(crate) enum CmKind {
    AddressResolved,
    RouteResolved,
    /// A peer wants to connect: its new id.
    Request(Id),
    Established,
    Disconnected,
    Rejected,
    /// No address, no route, no answer, or an answer that makes no sense.
    Failed,
    /// The device is going away.
    DeviceRemoved,
    Joined(UdRoute),
    JoinFailed,
    /// Known or not, nothing to do about it.
    Other(u32),
}

/// The way to a multicast group.
pub(crate) struct UdRoute {
    attr: ffi::ibv_ah_attr,
    /// The queue pair to name.
    pub(crate) qp: u32,
    /// The key to name.
    pub(crate) qkey: u32,
}

impl UdRoute {
    pub(super) fn new(param: &ffi::rdma_ud_param) -> Self {
        Self { attr: param.ah_attr, qp: param.qp_num, qkey: param.qkey }
    }

    /// What datagrams to the group are sent with.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn handle(&self, queues: &Arc<Queues>) -> io::Result<AddressHandle> {
        AddressHandle::new(queues, self.attr)
    }
}
