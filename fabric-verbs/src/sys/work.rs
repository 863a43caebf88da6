//! Requests to a send queue.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdma_sys as ffi;
use smallvec::SmallVec;

use super::{Queues, Window, check, note_leak};

/// Segments of one request. Most have one, and those with many pay for it otherwise.
pub(crate) type Sges = SmallVec<[Sge; 2]>;

const SIGNALED: u32 = ffi::ibv_send_flags::IBV_SEND_SIGNALED.0;
const INLINE: u32 = ffi::ibv_send_flags::IBV_SEND_INLINE.0;

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
}

/// Requests that go to a queue pair with one doorbell. Used again and again, as it keeps its room.
#[derive(Default)]
pub(crate) struct Chain {
    raw: Vec<ffi::ibv_send_wr>,
    sges: Vec<ffi::ibv_sge>,
    /// What goes along with the requests themselves. Their segments count from its start until they
    /// are posted.
    inline: Vec<u8>,
    /// What the requests point to has to stay.
    ops: Vec<Op>,
}

// SAFETY: its pointers lead into itself or to what `ops` keeps, and are followed by `post` alone.
unsafe impl Send for Chain {}

impl Chain {
    /// Requests in it.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Adds a request at the end.
    pub(crate) fn push(&mut self, wr: Wr) {
        self.raw.push(raw_wr(&wr));
        self.sges.extend(wr.sges.iter().map(|sge| sge.raw()));
        self.ops.push(wr.op);
    }

    /// Adds a message whose bytes the device takes along with the request.
    pub(crate) fn push_inline<'a>(
        &mut self,
        id: u64,
        signal: bool,
        head: &[u8],
        parts: impl Iterator<Item = &'a [u8]>,
    ) {
        let start = self.inline.len();
        self.inline.extend_from_slice(head);
        parts.for_each(|part| self.inline.extend_from_slice(part));
        let length = (self.inline.len() - start) as u32;
        self.sges.push(ffi::ibv_sge { addr: start as u64, length, lkey: 0 });
        let mut raw = empty_wr(id, signal);
        raw.num_sge = 1;
        raw.send_flags |= INLINE;
        raw.opcode = ffi::ibv_wr_opcode::IBV_WR_SEND;
        self.raw.push(raw);
    }

    /// Has the last request make a completion.
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) = self.raw.last_mut() {
            last.send_flags |= SIGNALED;
        }
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.raw.clear();
        self.sges.clear();
        self.inline.clear();
        self.ops.clear();
    }

    /// Once only, as segments of inline bytes are moved by it.
    fn link(&mut self) {
        let mut first = 0;
        for wr in &self.raw {
            if wr.send_flags & INLINE != 0 {
                self.sges[first].addr += self.inline.as_ptr() as u64;
            }
            first += wr.num_sge as usize;
        }
        let (start, mut at) = (self.raw.as_mut_ptr(), self.sges.as_mut_ptr());
        let last = self.raw.len().saturating_sub(1);
        for (i, wr) in self.raw.iter_mut().enumerate() {
            wr.sg_list = at;
            at = at.wrapping_add(wr.num_sge as usize);
            wr.next = if i == last { ptr::null_mut() } else { start.wrapping_add(i + 1) };
        }
    }

    /// Hands all of it to a queue pair, says how many requests it took, and is empty afterwards.
    ///
    /// # Safety
    /// `qp` must be alive.
    pub(super) unsafe fn post(&mut self, qp: *mut ffi::ibv_qp) -> (usize, io::Result<()>) {
        if self.raw.is_empty() {
            return (0, Ok(()));
        }
        self.link();
        let mut bad = ptr::null_mut();
        // SAFETY: `qp` is alive; the list was linked right now, ends in null, and lives until the
        // call returns, which copies it. The memory is the poster's business.
        let result = check(unsafe { ffi::ibv_post_send(qp, self.raw.as_mut_ptr(), &mut bad) });
        let posted = match result {
            Ok(()) => self.raw.len(),
            Err(_) => self.raw.iter().position(|wr| ptr::eq(wr, bad)).unwrap_or(0),
        };
        self.clear();
        (posted, result)
    }
}

/// Without its place in a chain and that of its segments.
fn raw_wr(wr: &Wr) -> ffi::ibv_send_wr {
    let mut raw = empty_wr(wr.id, wr.signal);
    raw.num_sge = wr.sges.len() as i32;
    fill(&mut raw, &wr.op);
    raw
}

fn empty_wr(id: u64, signal: bool) -> ffi::ibv_send_wr {
    // SAFETY: zeroed memory is a valid value of this plain structure.
    let mut raw: ffi::ibv_send_wr = unsafe { std::mem::zeroed() };
    raw.wr_id = id;
    raw.send_flags = if signal { SIGNALED } else { 0 };
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
