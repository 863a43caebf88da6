//! What all endpoints of a domain share: fabric, domain and queues.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libfabric_sys as ffi;

use super::contexts::Contexts;
use super::{Code, Info, Kind, check, close, count};

/// Completions taken with one call.
const BATCH: usize = 32;

/// An operation that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    /// What it was posted with.
    pub(crate) index: usize,
    /// Length of a received message in bytes; only when it went well.
    pub(crate) bytes: usize,
    pub(crate) error: Option<Code>,
}

/// A completion queue.
pub(super) struct Queue(NonNull<ffi::fid_cq>);

// SAFETY: one thread at a time drives the domain that a queue belongs to.
unsafe impl Send for Queue {}

/// The shared objects. Held by whatever is made from them, so that they are closed last.
pub(crate) struct Opened {
    fabric: NonNull<ffi::fid_fabric>,
    domain: NonNull<ffi::fid_domain>,
    /// The first to be closed.
    cq: Option<Queue>,
    /// For connections; datagrams need none.
    eq: Option<NonNull<ffi::fid_eq>>,
    cq_fd: Option<c_int>,
    eq_fd: Option<c_int>,
}

// SAFETY: the library locks what it must, or was told that one thread at a time drives the domain.
unsafe impl Send for Opened {}
// SAFETY: as above; what is shared between domains is made for any thread.
unsafe impl Sync for Opened {}

/// The version of the library, or why there is none.
///
/// # Errors
/// In one line that says what to install.
pub(crate) fn open_library() -> Result<(u32, u32), ffi::LoadError> {
    ffi::library().map(ffi::Library::version)
}

impl Opened {
    /// Opens the shared objects with room for `completions` completions, and with a descriptor for them
    /// if one is wanted and the provider has it.
    ///
    /// # Errors
    /// What the provider says.
    pub(crate) fn new(
        info: &Info,
        kind: Kind,
        completions: usize,
        wants_fd: bool,
    ) -> Result<Arc<Self>, Code> {
        let mut draft = Draft::default();
        draft.open(info)?;
        draft.open_completions(completions, wants_fd)?;
        if kind == Kind::Connected {
            draft.open_events()?;
        }
        draft.finish().map(Arc::new)
    }

    pub(super) fn fabric(&self) -> *mut ffi::fid_fabric {
        self.fabric.as_ptr()
    }

    pub(super) fn domain(&self) -> *mut ffi::fid_domain {
        self.domain.as_ptr()
    }

    pub(super) fn cq(&self) -> *mut ffi::fid {
        self.cq.as_ref().map_or(ptr::null_mut(), Queue::object)
    }

    pub(super) fn eq(&self) -> Option<*mut ffi::fid_eq> {
        self.eq.map(NonNull::as_ptr)
    }

    /// The descriptors that tell of completions and events, as far as there are any.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        // SAFETY: the queues and their descriptors live as long as `self`.
        let borrow = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
        [self.cq_fd, self.eq_fd].into_iter().flatten().map(borrow)
    }

    /// Whether completions have a descriptor.
    pub(crate) fn announces_completions(&self) -> bool {
        self.cq_fd.is_some()
    }

    /// Whether one may sleep on the descriptors now (`fi_poll(3)`). Otherwise something is there.
    ///
    /// # Errors
    /// What the provider says when it cannot tell.
    pub(crate) fn may_sleep(&self) -> Result<bool, Code> {
        let queue = self.cq_fd.map(|_| self.cq());
        let events = self.eq_fd.and(self.eq()).map(<*mut _>::cast);
        let mut fids =
            [queue.or(events), queue.and(events)].map(|fid| fid.unwrap_or(ptr::null_mut()));
        let count = fids.iter().filter(|fid| !fid.is_null()).count() as c_int;
        // SAFETY: the objects are open, and as many as said.
        let asked = unsafe { ffi::call::fi_trywait(self.fabric(), fids.as_mut_ptr(), count) };
        match check(asked) {
            Ok(()) => Ok(true),
            Err(Code::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes a batch of completions of the shared queue and says whether there may be more.
    ///
    /// # Errors
    /// What the provider says when its queue is broken.
    pub(crate) fn poll(
        &self,
        contexts: &Contexts,
        into: &mut Vec<Completion>,
    ) -> Result<bool, Code> {
        self.cq.as_ref().map_or(Ok(false), |cq| cq.poll(contexts, into))
    }

    /// Opens one more queue, without a descriptor.
    ///
    /// # Errors
    /// What the provider says.
    pub(super) fn new_queue(&self, size: usize) -> Result<Queue, Code> {
        open_cq(self.domain(), size, ffi::FI_WAIT_NONE)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; what is bound to it is closed before.
        unsafe { close(self.object(), "a completion queue") };
    }
}

impl Queue {
    pub(super) fn object(&self) -> *mut ffi::fid {
        self.0.as_ptr().cast()
    }

    pub(super) fn poll(
        &self,
        contexts: &Contexts,
        into: &mut Vec<Completion>,
    ) -> Result<bool, Code> {
        let mut batch = [const { MaybeUninit::<ffi::fi_cq_msg_entry>::uninit() }; BATCH];
        // SAFETY: the queue is open, of this format, and the batch has that much room.
        let taken =
            unsafe { ffi::call::fi_cq_read(self.0.as_ptr(), batch.as_mut_ptr().cast(), BATCH) };
        match count(taken) {
            Ok(count) => {
                for entry in batch.iter().take(count) {
                    // SAFETY: the provider filled as many as it says.
                    let entry = unsafe { entry.assume_init_ref() };
                    if let Some(index) = contexts.index_of(entry.op_context) {
                        into.push(Completion { index, bytes: entry.len, error: None });
                    }
                }
                Ok(count == BATCH)
            }
            Err(Code::AGAIN) => Ok(false),
            Err(Code::AVAILABLE) => {
                into.extend(self.read_error(contexts)?);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn read_error(&self, contexts: &Contexts) -> Result<Option<Completion>, Code> {
        // SAFETY: zeroed memory is a valid value of this plain structure.
        let mut entry: ffi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open and the entry is of the version that was asked for.
        let taken = unsafe { ffi::call::fi_cq_readerr(self.0.as_ptr(), &mut entry) };
        match count(taken) {
            Ok(0) | Err(Code::AGAIN) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let error = Some(Code(entry.err.saturating_abs()));
                let index = contexts.index_of(entry.op_context);
                Ok(index.map(|index| Completion { index, bytes: 0, error }))
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let draft = Draft {
            fabric: Some(self.fabric),
            domain: Some(self.domain),
            cq: self.cq.take(),
            eq: self.eq,
            ..Draft::default()
        };
        drop(draft);
    }
}

/// Objects opened so far; closed in the order that is allowed unless all of them can be opened.
#[derive(Default)]
struct Draft {
    fabric: Option<NonNull<ffi::fid_fabric>>,
    domain: Option<NonNull<ffi::fid_domain>>,
    cq: Option<Queue>,
    eq: Option<NonNull<ffi::fid_eq>>,
    cq_fd: Option<c_int>,
    eq_fd: Option<c_int>,
}

impl Draft {
    fn open(&mut self, info: &Info) -> Result<(), Code> {
        let library = ffi::library().map_err(|_| Code::NO_OPERATION)?;
        let (mut fabric, mut domain) = (ptr::null_mut(), ptr::null_mut());
        let attr = info.get().fabric_attr;
        // SAFETY: what the library offered is whole.
        check(unsafe { (library.fi_fabric)(attr, &mut fabric, ptr::null_mut()) })?;
        self.fabric = NonNull::new(fabric);
        // SAFETY: as above, and the fabric was just opened.
        check(unsafe { ffi::call::fi_domain(fabric, info.raw(), &mut domain) })?;
        self.domain = NonNull::new(domain);
        Ok(())
    }

    fn open_completions(&mut self, completions: usize, wants_fd: bool) -> Result<(), Code> {
        let Some(domain) = self.domain else { return Err(Code::NO_OPERATION) };
        let open = |wait_obj| open_cq(domain.as_ptr(), completions, wait_obj);
        // Not all providers have a descriptor to wait on.
        let with_fd = if wants_fd { open(ffi::FI_WAIT_FD).ok() } else { None };
        self.cq_fd = with_fd.as_ref().and_then(|cq| descriptor(cq.object()));
        self.cq = Some(with_fd.map_or_else(|| open(ffi::FI_WAIT_NONE), Ok)?);
        Ok(())
    }

    fn open_events(&mut self) -> Result<(), Code> {
        let Some(fabric) = self.fabric else { return Err(Code::NO_OPERATION) };
        let mut attr = ffi::fi_eq_attr {
            size: 0,
            flags: 0,
            wait_obj: ffi::FI_WAIT_FD,
            signaling_vector: 0,
            wait_set: ptr::null_mut(),
        };
        let mut eq = ptr::null_mut();
        // SAFETY: the fabric is open and the attributes live during the call.
        check(unsafe { ffi::call::fi_eq_open(fabric.as_ptr(), &mut attr, &mut eq) })?;
        self.eq = NonNull::new(eq);
        self.eq_fd = descriptor(eq.cast());
        Ok(())
    }

    fn finish(mut self) -> Result<Opened, Code> {
        let (Some(fabric), Some(domain)) = (self.fabric, self.domain) else {
            return Err(Code::NO_OPERATION);
        };
        let cq = self.cq.take();
        (self.fabric, self.domain) = (None, None);
        let eq = self.eq.take();
        Ok(Opened { fabric, domain, cq, eq, cq_fd: self.cq_fd, eq_fd: self.eq_fd })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        drop(self.cq.take());
        let objects: [(Option<*mut ffi::fid>, &str); 3] = [
            (self.domain.map(|domain| domain.as_ptr().cast()), "a domain"),
            (self.eq.map(|eq| eq.as_ptr().cast()), "an event queue"),
            (self.fabric.map(|fabric| fabric.as_ptr().cast()), "a fabric"),
        ];
        for (object, what) in objects {
            // SAFETY: nothing made from these is left, as it would hold them. Each is closed once;
            // what depends on one that stays, stays too.
            if object.is_some_and(|object| !unsafe { close(object, what) }) {
                return;
            }
        }
    }
}

fn open_cq(domain: *mut ffi::fid_domain, size: usize, wait_obj: c_int) -> Result<Queue, Code> {
    let mut attr = ffi::fi_cq_attr {
        size,
        flags: 0,
        format: ffi::FI_CQ_FORMAT_MSG,
        wait_obj,
        signaling_vector: 0,
        wait_cond: 0,
        wait_set: ptr::null_mut(),
    };
    let mut cq = ptr::null_mut();
    // SAFETY: the domain is open and the attributes live during the call.
    check(unsafe { ffi::call::fi_cq_open(domain, &mut attr, &mut cq) })?;
    NonNull::new(cq).map(Queue).ok_or(Code::NO_OPERATION)
}

/// The descriptor of a queue that was opened with one.
fn descriptor(queue: *mut ffi::fid) -> Option<c_int> {
    let mut fd: c_int = -1;
    let to: *mut c_void = ptr::from_mut(&mut fd).cast();
    // SAFETY: the queue is open, and the command writes one number.
    check(unsafe { ffi::call::fi_control(queue, ffi::FI_GETWAIT, to) }).ok()?;
    (fd >= 0).then_some(fd)
}
