//! Asking what providers offer.

use std::ffi::{CStr, CString, c_char, c_int};
use std::net::SocketAddr;
use std::ptr::{self, NonNull};

use libfabric_sys as ffi;

use super::{Code, check, sockaddr};

/// The two kinds of endpoints that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connected by the provider (`FI_EP_MSG`).
    Connected,
    /// Reliable, without connections (`FI_EP_RDM`).
    Datagram,
}

impl Kind {
    fn number(self) -> c_int {
        match self {
            Self::Connected => ffi::FI_EP_MSG,
            Self::Datagram => ffi::FI_EP_RDM,
        }
    }
}

/// An address to find a provider for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of this host.
    Here(SocketAddr),
    /// Of a peer.
    There(SocketAddr),
}

/// What to look for. What is `None` does not matter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) provider: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) kind: Option<Kind>,
    pub(crate) place: Option<Place>,
    /// Operations in flight on one endpoint, each way.
    pub(crate) depth: usize,
}

/// What one provider offers.
pub(crate) struct Info(NonNull<ffi::fi_info>);

// SAFETY: plain memory that belongs to whoever holds it; the library's functions on it may be called
// from any thread.
unsafe impl Send for Info {}

impl Ask {
    /// All that fits, as the library sorts it.
    ///
    /// # Errors
    /// `NO_DATA` when nothing fits, and what else the library says.
    pub(crate) fn find(&self) -> Result<Vec<Info>, Code> {
        let library = ffi::library().map_err(|_| Code::NO_OPERATION)?;
        let hints = self.hints(library)?;
        let (node, service, flags) = self.node()?;
        let text = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut first = ptr::null_mut();
        // SAFETY: the texts end and live during the call, the hints are the library's own.
        check(unsafe {
            (library.fi_getinfo)(
                version(library),
                text(&node),
                text(&service),
                flags,
                hints.0.as_ptr(),
                &mut first,
            )
        })?;
        // SAFETY: a list that the library just made.
        Ok(unsafe { take_apart(library, first) })
    }

    fn node(&self) -> Result<(Option<CString>, Option<CString>, u64), Code> {
        let (at, source) = match self.place {
            None => return Ok((None, None, 0)),
            Some(Place::Here(at)) => (at, ffi::FI_SOURCE),
            Some(Place::There(at)) => (at, 0),
        };
        let text = |text: String| CString::new(text).map_err(|_| Code::NO_DATA);
        let host = match at {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            _ => at.ip().to_string(),
        };
        let flags = source | ffi::FI_NUMERICHOST;
        Ok((Some(text(host)?), Some(text(at.port().to_string())?), flags))
    }

    /// Hints in a structure that the library made, as newer ones are longer.
    fn hints(&self, library: &ffi::Library) -> Result<Info, Code> {
        // SAFETY: of nothing it makes an empty one.
        let hints = unsafe { (library.fi_dupinfo)(ptr::null()) };
        let hints = Info(NonNull::new(hints).ok_or(Code(12))?);
        let (provider, domain) = (copied(self.provider.as_deref()), copied(self.domain.as_deref()));
        // SAFETY: the structure is new, whole and ours. The texts come from the host's allocator, as
        // `fi_freeinfo` gives them back to it.
        unsafe {
            let info = &mut *hints.0.as_ptr();
            info.caps = ffi::FI_MSG;
            info.mode = ffi::FI_CONTEXT | ffi::FI_CONTEXT2;
            (*info.tx_attr).msg_order = ffi::FI_ORDER_SAS;
            (*info.rx_attr).msg_order = ffi::FI_ORDER_SAS;
            (*info.tx_attr).size = self.depth;
            (*info.rx_attr).size = self.depth;
            (*info.ep_attr).r#type = self.kind.map_or(ffi::FI_EP_UNSPEC, Kind::number);
            (*info.domain_attr).name = domain;
            (*info.domain_attr).mr_mode = ffi::FI_MR_LOCAL
                | ffi::FI_MR_VIRT_ADDR
                | ffi::FI_MR_ALLOCATED
                | ffi::FI_MR_PROV_KEY;
            (*info.domain_attr).resource_mgmt = ffi::FI_RM_ENABLED;
            // One thread at a time drives a domain, so its provider needs no locks.
            (*info.domain_attr).threading = ffi::FI_THREAD_DOMAIN;
            (*info.fabric_attr).prov_name = provider;
        }
        Ok(hints)
    }
}

impl Info {
    /// Providers in layers are named like `tcp;ofi_rxm`.
    pub(crate) fn provider(&self) -> String {
        // SAFETY: the structure is whole, and the text ends.
        unsafe { text((*self.get().fabric_attr).prov_name) }
    }

    /// The device, as the provider names it.
    pub(crate) fn domain(&self) -> String {
        // SAFETY: as above.
        unsafe { text((*self.get().domain_attr).name) }
    }

    /// The kind of endpoint, if it is one that is used here.
    pub(crate) fn kind(&self) -> Option<Kind> {
        // SAFETY: the structure is whole.
        let number = unsafe { (*self.get().ep_attr).r#type };
        [Kind::Connected, Kind::Datagram].into_iter().find(|kind| kind.number() == number)
    }

    /// Whether memory that this side sends from and receives into must be registered.
    pub(crate) fn needs_registration(&self) -> bool {
        // SAFETY: the structure is whole.
        unsafe { (*self.get().domain_attr).mr_mode & ffi::FI_MR_LOCAL != 0 }
    }

    /// Messages up to so many bytes can be handed over without a completion.
    pub(crate) fn inject_bytes(&self) -> usize {
        // SAFETY: the structure is whole.
        unsafe { (*self.get().tx_attr).inject_size }
    }

    /// The longest message in bytes.
    pub(crate) fn message_bytes(&self) -> usize {
        // SAFETY: the structure is whole.
        unsafe { (*self.get().ep_attr).max_msg_size }
    }

    /// Operations in flight on one endpoint, the smaller of both ways.
    pub(crate) fn depth(&self) -> usize {
        // SAFETY: the structure is whole.
        unsafe { (*self.get().tx_attr).size.min((*self.get().rx_attr).size) }
    }

    /// The address of this side, if it is one of IP.
    pub(crate) fn source(&self) -> Option<SocketAddr> {
        let info = self.get();
        if info.src_addr.is_null() {
            return None;
        }
        // SAFETY: the provider says that so many bytes are there.
        sockaddr::parse(unsafe {
            std::slice::from_raw_parts(info.src_addr.cast_const().cast(), info.src_addrlen)
        })
    }

    /// Names the endpoints to be made from this in the provider's text format.
    ///
    /// # Errors
    /// `NO_DATA` if the provider's addresses are no texts.
    pub(crate) fn set_name(&mut self, name: &str) -> Result<(), Code> {
        // SAFETY: the structure is whole and ours.
        let info = unsafe { self.0.as_mut() };
        if info.addr_format != ffi::FI_ADDR_STR {
            return Err(Code::NO_DATA);
        }
        let new = copied(Some(name));
        if new.is_null() {
            return Err(Code(12));
        }
        // SAFETY: what stood there came from the host's allocator, as `fi_freeinfo` would give it back.
        unsafe { free(info.src_addr.cast()) };
        (info.src_addr, info.src_addrlen) = (new.cast(), name.len() + 1);
        Ok(())
    }

    pub(super) fn raw(&self) -> *mut ffi::fi_info {
        self.0.as_ptr()
    }

    /// # Safety
    /// The structure must come from the library, and nobody else may hold it.
    pub(super) unsafe fn own(raw: *mut ffi::fi_info) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    pub(super) fn get(&self) -> &ffi::fi_info {
        // SAFETY: whole and ours.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Info {
    fn clone(&self) -> Self {
        let copy = ffi::library().ok().and_then(|library| {
            // SAFETY: the structure is whole.
            NonNull::new(unsafe { (library.fi_dupinfo)(self.0.as_ptr()) })
        });
        // Invariant: what exists came from the library, and only a host without memory refuses.
        Self(copy.expect("memory for a few hundred bytes"))
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        if let Ok(library) = ffi::library() {
            // SAFETY: made by the library, given back once.
            unsafe { (library.fi_freeinfo)(self.0.as_ptr()) };
        }
    }
}

/// The version of the interface to ask for: the newest one that these declarations describe.
fn version(library: &ffi::Library) -> u32 {
    let (major, minor) = library.version().min((1, 17));
    ffi::FI_VERSION(major, minor)
}

/// Makes structures of their own of a list's members.
///
/// # Safety
/// The list must come from the library, and nobody else may hold it.
unsafe fn take_apart(library: &ffi::Library, first: *mut ffi::fi_info) -> Vec<Info> {
    let (mut found, mut at) = (Vec::new(), first);
    while let Some(info) = NonNull::new(at) {
        // SAFETY: a member of the list; a copy of one has no next.
        unsafe {
            found.extend(NonNull::new((library.fi_dupinfo)(at)).map(Info));
            at = info.as_ref().next;
        }
    }
    // SAFETY: as the caller says.
    unsafe { (library.fi_freeinfo)(first) };
    found
}

/// # Safety
/// Null, or a text that ends.
unsafe fn text(raw: *const c_char) -> String {
    if raw.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned()
}

unsafe extern "C" {
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(memory: *mut std::ffi::c_void);
}

/// A copy of the host's allocator; null for nothing.
fn copied(text: Option<&str>) -> *mut c_char {
    let Some(Ok(text)) = text.map(CString::new) else { return ptr::null_mut() };
    // SAFETY: the text ends.
    unsafe { strdup(text.as_ptr()) }
}
