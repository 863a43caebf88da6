//! What happens to connections.

use std::ptr;

use libfabric_sys as ffi;

use super::opened::Opened;
use super::{Code, Info, count};

/// Bytes of what a peer says while it connects. More is cut off.
const SAID_BYTES: usize = 256;

/// An event of a connection, named by the object that it is about.
pub(crate) enum CmEvent {
    /// A peer wants to connect to this passive endpoint.
    Request { passive: u64, info: Info, said: Vec<u8> },
    /// The connection stands; what an acceptor said.
    Connected { endpoint: u64, said: Vec<u8> },
    /// The connection ended.
    Shutdown { endpoint: u64 },
    /// It failed.
    Failed { object: u64, code: Code },
    /// Nothing to do about it.
    Other(u32),
}

#[repr(C)]
struct Entry {
    head: ffi::fi_eq_cm_entry,
    said: [u8; SAID_BYTES],
}

impl Opened {
    /// Takes the next event, if there is one.
    ///
    /// # Errors
    /// What the provider says when its queue is broken.
    pub(crate) fn next_event(&self) -> Result<Option<CmEvent>, Code> {
        let Some(eq) = self.eq() else { return Ok(None) };
        let head = ffi::fi_eq_cm_entry { fid: ptr::null_mut(), info: ptr::null_mut() };
        let mut entry = Entry { head, said: [0; SAID_BYTES] };
        let (mut event, to) = (0, ptr::from_mut(&mut entry).cast());
        // SAFETY: the queue is open and the entry has that much room.
        let taken = unsafe { ffi::call::fi_eq_read(eq, &mut event, to, size_of::<Entry>()) };
        match count(taken) {
            Ok(bytes) => Ok(Some(event_of(event, &entry, bytes))),
            Err(Code::AGAIN) => Ok(None),
            Err(Code::AVAILABLE) => self.next_failure(eq),
            Err(error) => Err(error),
        }
    }

    fn next_failure(&self, eq: *mut ffi::fid_eq) -> Result<Option<CmEvent>, Code> {
        // SAFETY: zeroed memory is a valid value of this plain structure. No room for the peer's data
        // is offered.
        let mut entry: ffi::fi_eq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open.
        match count(unsafe { ffi::call::fi_eq_readerr(eq, &mut entry) }) {
            Ok(0) | Err(Code::AGAIN) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let code = Code(entry.err.saturating_abs());
                Ok(Some(CmEvent::Failed { object: entry.fid as u64, code }))
            }
        }
    }
}

fn event_of(event: u32, entry: &Entry, bytes: usize) -> CmEvent {
    let object = entry.head.fid as u64;
    let said = bytes.saturating_sub(size_of::<ffi::fi_eq_cm_entry>()).min(SAID_BYTES);
    let said = entry.said[..said].to_vec();
    match event {
        ffi::FI_CONNREQ => {
            // SAFETY: the provider made it for whoever reads the event.
            match unsafe { Info::own(entry.head.info) } {
                Some(info) => CmEvent::Request { passive: object, info, said },
                None => CmEvent::Other(event),
            }
        }
        ffi::FI_CONNECTED => CmEvent::Connected { endpoint: object, said },
        ffi::FI_SHUTDOWN => CmEvent::Shutdown { endpoint: object },
        other => CmEvent::Other(other),
    }
}
