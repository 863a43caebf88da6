//! What all queue pairs of a domain share: protection domain, completion queue, receive queue.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdma_sys as ffi;
use rustix::io::ioctl_fionbio;
use smallvec::SmallVec;

use super::work::Sge;
use super::{Device, check, note_leak};

/// A completion. On failure only these fields mean anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    /// What was given with the request.
    pub(crate) id: u64,
    /// The queue pair it happened on.
    pub(crate) qp: u32,
    /// The device's code; 0 is success.
    pub(crate) status: u32,
    /// The driver's own code.
    pub(crate) vendor: u32,
    /// Length of a received message in bytes; only with success.
    pub(crate) bytes: usize,
}

/// A receive to post.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecvWr {
    /// Comes back in the completion.
    pub(crate) id: u64,
    /// Where to put the message.
    pub(crate) to: Sge,
}

/// So many receives are posted without memory of their own.
const FEW: usize = 4;

/// Completions taken from the device with one call.
const BATCH: usize = 32;

/// The shared objects. Held by whatever is made from them, so that they are destroyed last.
pub(crate) struct Queues {
    pd: NonNull<ffi::ibv_pd>,
    channel: NonNull<ffi::ibv_comp_channel>,
    cq: NonNull<ffi::ibv_cq>,
    srq: NonNull<ffi::ibv_srq>,
    device: Device,
}

// SAFETY: the library locks what it must; verbs calls may come from any thread.
unsafe impl Send for Queues {}
// SAFETY: as above.
unsafe impl Sync for Queues {}

impl Queues {
    /// Opens the shared objects with room for `cqe` completions and `receives` receives.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn new(device: &Device, cqe: usize, receives: usize) -> io::Result<Arc<Self>> {
        let context = device.raw();
        // SAFETY: the device is open. Each object is made from those before, and those before are
        // given up when the next one fails.
        unsafe {
            let pd = made(ffi::ibv_alloc_pd(context))?;
            let channel = made(ffi::ibv_create_comp_channel(context)).inspect_err(|_| {
                drop_pd(pd);
            })?;
            let cq = made(ffi::ibv_create_cq(
                context,
                i32::try_from(cqe).unwrap_or(i32::MAX),
                ptr::null_mut(),
                channel.as_ptr(),
                0,
            ))
            .inspect_err(|_| {
                drop_channel(channel);
                drop_pd(pd);
            })?;
            let srq = made(create_srq(pd, receives)).inspect_err(|_| {
                drop_cq(cq);
                drop_channel(channel);
                drop_pd(pd);
            })?;
            let queues = Self { pd, channel, cq, srq, device: device.clone() };
            ioctl_fionbio(queues.fd(), true)?;
            Ok(Arc::new(queues))
        }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn pd(&self) -> *mut ffi::ibv_pd {
        self.pd.as_ptr()
    }

    pub(super) fn cq(&self) -> *mut ffi::ibv_cq {
        self.cq.as_ptr()
    }

    pub(super) fn srq(&self) -> *mut ffi::ibv_srq {
        self.srq.as_ptr()
    }

    /// Readable when a completion came after `arm`.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel and its descriptor live as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.channel.as_ref().fd) }
    }

    /// Takes a batch of completions and says whether there may be more.
    ///
    /// # Errors
    /// What the device says when its queue is broken.
    pub(crate) fn poll(&self, into: &mut Vec<Completion>) -> io::Result<bool> {
        let mut batch = [const { MaybeUninit::<ffi::ibv_wc>::uninit() }; BATCH];
        let room = batch.as_mut_ptr().cast();
        // SAFETY: the queue is alive and `batch` has room for that many.
        let count = unsafe { ffi::ibv_poll_cq(self.cq(), BATCH as i32, room) };
        let count = usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(-count))?;
        // SAFETY: so many were written.
        into.extend(batch.iter().take(count).map(|wc| completion(unsafe { wc.assume_init_ref() })));
        Ok(count == BATCH)
    }

    /// Asks for the descriptor to become readable at the next completion. One that is there already
    /// does not count: poll once more.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn arm(&self) -> io::Result<()> {
        // SAFETY: the queue is alive.
        check(unsafe { ffi::ibv_req_notify_cq(self.cq(), 0) })
    }

    /// Takes an event from the descriptor, acknowledges it, and says whether there was one.
    pub(crate) fn take_event(&self) -> bool {
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is alive, and its only queue is ours.
        let code = unsafe { ffi::ibv_get_cq_event(self.channel.as_ptr(), &mut cq, &mut context) };
        if code == 0 {
            // SAFETY: it was taken.
            unsafe { ffi::ibv_ack_cq_events(self.cq(), 1) };
        }
        code == 0
    }

    /// Posts receives, and says how many the device took.
    pub(crate) fn post_recvs(&self, receives: &[RecvWr]) -> (usize, io::Result<()>) {
        let mut sges: SmallVec<[_; FEW]> = receives.iter().map(|recv| recv.to.raw()).collect();
        let mut wrs: SmallVec<[_; FEW]> = receives.iter().zip(&mut sges).map(raw_recv).collect();
        link(&mut wrs);
        let Some(first) = wrs.first_mut() else { return (0, Ok(())) };
        let first: *mut ffi::ibv_recv_wr = first;
        let mut bad = ptr::null_mut();
        // SAFETY: the list is linked through `wrs`, ends in null, and lives until the call returns,
        // which copies it. The memory is the poster's business.
        let code = unsafe { ffi::ibv_post_srq_recv(self.srq(), first, &mut bad) };
        match check(code) {
            Ok(()) => (receives.len(), Ok(())),
            Err(error) => (position(&wrs, bad), Err(error)),
        }
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        while self.take_event() {}
        // SAFETY: nothing made from these is left, as it would hold `self`. All events are
        // acknowledged. Each is destroyed once; what depends on one that stays, stays too.
        unsafe {
            if drop_srq(self.srq) && drop_cq(self.cq) && drop_channel(self.channel) {
                drop_pd(self.pd);
            }
        }
    }
}

fn completion(wc: &ffi::ibv_wc) -> Completion {
    let is_good = wc.status == ffi::ibv_wc_status::IBV_WC_SUCCESS;
    Completion {
        id: wc.wr_id,
        qp: wc.qp_num,
        status: wc.status,
        vendor: wc.vendor_err,
        bytes: if is_good { wc.byte_len as usize } else { 0 },
    }
}

fn raw_recv((recv, sge): (&RecvWr, &mut ffi::ibv_sge)) -> ffi::ibv_recv_wr {
    ffi::ibv_recv_wr { wr_id: recv.id, next: ptr::null_mut(), sg_list: sge, num_sge: 1 }
}

fn link(wrs: &mut [ffi::ibv_recv_wr]) {
    let start = wrs.as_mut_ptr();
    for (i, wr) in wrs.iter_mut().enumerate().rev().skip(1) {
        wr.next = start.wrapping_add(i + 1);
    }
}

/// Where in the list the device stopped.
fn position(wrs: &[ffi::ibv_recv_wr], bad: *mut ffi::ibv_recv_wr) -> usize {
    wrs.iter().position(|wr| ptr::eq(wr, bad)).unwrap_or(0)
}

fn made<T>(raw: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(io::Error::last_os_error)
}

/// # Safety
/// The domain must be alive.
unsafe fn create_srq(pd: NonNull<ffi::ibv_pd>, receives: usize) -> *mut ffi::ibv_srq {
    let max_wr = u32::try_from(receives).unwrap_or(u32::MAX);
    let attr = ffi::ibv_srq_attr { max_wr, max_sge: 1, srq_limit: 0 };
    let mut init = ffi::ibv_srq_init_attr { srq_context: ptr::null_mut(), attr };
    // SAFETY: as the caller says, and `init` is valid.
    unsafe { ffi::ibv_create_srq(pd.as_ptr(), &mut init) }
}

/// # Safety
/// The object must be alive and nobody use it afterwards.
unsafe fn drop_pd(pd: NonNull<ffi::ibv_pd>) -> bool {
    // SAFETY: as the caller says.
    gone("a protection domain", check(unsafe { ffi::ibv_dealloc_pd(pd.as_ptr()) }))
}

/// # Safety
/// As [`drop_pd`].
unsafe fn drop_channel(channel: NonNull<ffi::ibv_comp_channel>) -> bool {
    // SAFETY: as the caller says.
    gone("a completion channel", check(unsafe { ffi::ibv_destroy_comp_channel(channel.as_ptr()) }))
}

/// # Safety
/// As [`drop_pd`].
unsafe fn drop_cq(cq: NonNull<ffi::ibv_cq>) -> bool {
    // SAFETY: as the caller says.
    gone("a completion queue", check(unsafe { ffi::ibv_destroy_cq(cq.as_ptr()) }))
}

/// # Safety
/// As [`drop_pd`].
unsafe fn drop_srq(srq: NonNull<ffi::ibv_srq>) -> bool {
    // SAFETY: as the caller says.
    gone("a shared receive queue", check(unsafe { ffi::ibv_destroy_srq(srq.as_ptr()) }))
}

fn gone(what: &str, result: io::Result<()>) -> bool {
    result.inspect_err(|error| note_leak(what, error)).is_ok()
}
