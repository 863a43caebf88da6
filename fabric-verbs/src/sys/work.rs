//! Requests to a send queue.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdma_sys as ffi;
use smallvec::SmallVec;

use super::{Queues, Window, check, note_leak};

/// Segments of one request: a head and eight pieces fit.
pub(crate) type Sges = SmallVec<[Sge; 9]>;

/// A piece of registered memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sge {
    addr: u64,
    len: u32,
    key: u32,
}

impl Sge {
    /// `bytes`, which lie in the region that `key` belongs to.
    pub(crate) fn of(bytes: &[u8], key: u32) -> Self {
        Self::at(bytes.as_ptr() as u64, bytes.len(), key)
    }

    /// `len` bytes from `addr` in the region that `key` belongs to.
    pub(crate) fn at(addr: u64, len: usize, key: u32) -> Self {
        Self { addr, len: u32::try_from(len).unwrap_or(u32::MAX), key }
    }

    pub(super) fn raw(self) -> ffi::ibv_sge {
        ffi::ibv_sge { addr: self.addr, length: self.len, lkey: self.key }
    }
}

/// What a request does.
pub(crate) enum Op {
    /// A message.
    Send,
    /// A datagram.
    Datagram { to: Arc<AddressHandle>, qp: u32, qkey: u32 },
    /// Bytes into the peer's memory.
    Write { addr: u64, key: u32 },
    /// Bytes out of the peer's memory.
    Read { addr: u64, key: u32 },
    /// A word of the peer's memory, if it is `compare`, becomes `swap`.
    CompareSwap { addr: u64, key: u32, compare: u64, swap: u64 },
    /// A word of the peer's memory grows by `add`.
    FetchAdd { addr: u64, key: u32, add: u64 },
    /// A window opens to the peer.
    Bind { window: Arc<Window> },
}

/// A request.
pub(crate) struct Wr {
    /// Comes back in the completion.
    pub(crate) id: u64,
    pub(crate) op: Op,
    pub(crate) sges: Sges,
    /// Whether its success makes a completion; failure always does.
    pub(crate) signal: bool,
    /// Whether the bytes are taken while it is posted.
    pub(crate) inline: bool,
}

/// Hands requests to a queue pair with one doorbell, and says how many it took.
///
/// # Safety
/// `qp` must be alive.
pub(super) unsafe fn post(qp: *mut ffi::ibv_qp, wrs: &[Wr]) -> (usize, io::Result<()>) {
    let mut sges: Vec<ffi::ibv_sge> =
        wrs.iter().flat_map(|wr| wr.sges.iter().map(|sge| sge.raw())).collect();
    let mut at = sges.as_mut_ptr();
    let mut raw: Vec<ffi::ibv_send_wr> = Vec::with_capacity(wrs.len());
    for wr in wrs {
        raw.push(raw_wr(wr, at));
        at = at.wrapping_add(wr.sges.len());
    }
    let start = raw.as_mut_ptr();
    for (i, wr) in raw.iter_mut().enumerate().rev().skip(1) {
        wr.next = start.wrapping_add(i + 1);
    }
    if raw.is_empty() {
        return (0, Ok(()));
    }
    let mut bad = ptr::null_mut();
    // SAFETY: `qp` is alive; the list is linked through `raw`, ends in null, and lives until the
    // call returns, which copies it. The memory is the poster's business.
    match check(unsafe { ffi::ibv_post_send(qp, start, &mut bad) }) {
        Ok(()) => (wrs.len(), Ok(())),
        Err(error) => {
            let posted = raw.iter().position(|wr| ptr::eq(wr, bad)).unwrap_or(0);
            (posted, Err(error))
        }
    }
}

fn raw_wr(wr: &Wr, sges: *mut ffi::ibv_sge) -> ffi::ibv_send_wr {
    // SAFETY: zeroed memory is a valid value of this plain structure.
    let mut raw: ffi::ibv_send_wr = unsafe { std::mem::zeroed() };
    raw.wr_id = wr.id;
    raw.sg_list = sges;
    raw.num_sge = wr.sges.len() as i32;
    let flags = [
        (wr.signal, ffi::ibv_send_flags::IBV_SEND_SIGNALED),
        (wr.inline, ffi::ibv_send_flags::IBV_SEND_INLINE),
    ];
    raw.send_flags = flags.into_iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag.0);
    fill(&mut raw, &wr.op);
    raw
}

fn fill(raw: &mut ffi::ibv_send_wr, op: &Op) {
    use ffi::ibv_wr_opcode as code;
    match *op {
        Op::Send => raw.opcode = code::IBV_WR_SEND,
        Op::Datagram { ref to, qp, qkey } => {
            raw.opcode = code::IBV_WR_SEND;
            raw.wr.ud = ffi::ud_t { ah: to.raw.as_ptr(), remote_qpn: qp, remote_qkey: qkey };
        }
        Op::Write { addr, key } => {
            raw.opcode = code::IBV_WR_RDMA_WRITE;
            raw.wr.rdma = ffi::rdma_t { remote_addr: addr, rkey: key };
        }
        Op::Read { addr, key } => {
            raw.opcode = code::IBV_WR_RDMA_READ;
            raw.wr.rdma = ffi::rdma_t { remote_addr: addr, rkey: key };
        }
        Op::CompareSwap { addr, key, compare, swap } => {
            raw.opcode = code::IBV_WR_ATOMIC_CMP_AND_SWP;
            raw.wr.atomic =
                ffi::atomic_t { remote_addr: addr, compare_add: compare, swap, rkey: key };
        }
        Op::FetchAdd { addr, key, add } => {
            raw.opcode = code::IBV_WR_ATOMIC_FETCH_AND_ADD;
            raw.wr.atomic =
                ffi::atomic_t { remote_addr: addr, compare_add: add, swap: 0, rkey: key };
        }
        Op::Bind { ref window } => {
            raw.opcode = code::IBV_WR_BIND_MW;
            raw.bind_mw_tso_union.bind_mw = window.bind();
        }
    }
}

/// Where datagrams go.
pub(crate) struct AddressHandle {
    raw: NonNull<ffi::ibv_ah>,
    _queues: Arc<Queues>,
}

// SAFETY: verbs calls on a handle may come from any thread.
unsafe impl Send for AddressHandle {}
// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// # Errors
    /// What the device says.
    pub(super) fn new(queues: &Arc<Queues>, mut attr: ffi::ibv_ah_attr) -> io::Result<Self> {
        // SAFETY: the domain is alive as `queues` is held, and `attr` is valid.
        let raw = unsafe { ffi::ibv_create_ah(queues.pd(), &mut attr) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { raw, _queues: queues.clone() })
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        if let Err(error) = check(unsafe { ffi::ibv_destroy_ah(self.raw.as_ptr()) }) {
            note_leak("an address handle", &error);
        }
    }
}
