//! Devices and what they can do.

use std::ffi::CStr;
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::net::{IpAddr, Ipv6Addr};
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as ffi;

use super::{check, check_errno};

/// What the connection manager opened. As long as it lives, the contexts in it do.
struct List {
    start: NonNull<*mut ffi::ibv_context>,
    len: usize,
}

// SAFETY: the list is read only, and verbs calls on a context may come from any thread.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `start` came from `rdma_get_devices` and is freed once.
        unsafe { ffi::rdma_free_devices(self.start.as_ptr()) }
    }
}

/// An open device.
#[derive(Clone)]
pub(crate) struct Device {
    context: NonNull<ffi::ibv_context>,
    _list: Arc<List>,
}

// SAFETY: verbs calls on a context may come from any thread, and the list keeps it open.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Limits of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Work requests in one send queue.
    pub(crate) qp_wr_max: usize,
    /// Scatter entries in one request.
    pub(crate) sge_max: usize,
    /// Completions in one queue.
    pub(crate) cqe_max: usize,
    /// Receives in one shared queue; 0 where there is none.
    pub(crate) srq_wr_max: usize,
    /// Reads and atomics in flight on one queue pair.
    pub(crate) rd_atomic_max: u8,
    /// Whether 64-bit atomics are offered.
    pub(crate) atomics: bool,
    /// Largest registration in bytes.
    pub(crate) region_bytes_max: u64,
    /// Whether it has memory windows that a request binds to one queue pair.
    pub(crate) windows: bool,
    /// Whether it is iWARP, which has no datagrams.
    pub(crate) iwarp: bool,
}

impl Device {
    /// All devices that the connection manager knows.
    ///
    /// # Errors
    /// What the host says when it has no RDMA or gives no access.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let mut count = 0;
        // SAFETY: `count` is valid for writing.
        let start = unsafe { ffi::rdma_get_devices(&mut count) };
        let start = NonNull::new(start).ok_or_else(io::Error::last_os_error)?;
        let list = Arc::new(List { start, len: usize::try_from(count).unwrap_or(0) });
        // SAFETY: the list has `len` entries, which stay valid while it lives.
        let contexts = unsafe { std::slice::from_raw_parts(start.as_ptr(), list.len) };
        let contexts = contexts.iter().filter_map(|context| NonNull::new(*context));
        Ok(contexts.map(|context| Self { context, _list: list.clone() }).collect())
    }

    pub(super) fn raw(&self) -> *mut ffi::ibv_context {
        self.context.as_ptr()
    }

    /// Its name, as its administrator knows it.
    pub(crate) fn name(&self) -> String {
        // SAFETY: the device of an open context is valid, and its name ends in zero.
        unsafe {
            let name = ffi::ibv_get_device_name((*self.raw()).device);
            if name.is_null() {
                return String::new();
            }
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }

    /// # Errors
    /// What the device says.
    pub(crate) fn limits(&self) -> io::Result<Limits> {
        let mut attr = MaybeUninit::<ffi::ibv_device_attr>::zeroed();
        // SAFETY: the context is open and `attr` valid for writing.
        check(unsafe { ffi::ibv_query_device(self.raw(), attr.as_mut_ptr()) })?;
        // SAFETY: zeroed memory is a valid value of this plain structure, and the call filled it.
        let attr = unsafe { attr.assume_init() };
        let count = |value: i32| usize::try_from(value).unwrap_or(0);
        let rd_atomic = attr.max_qp_rd_atom.min(attr.max_qp_init_rd_atom);
        Ok(Limits {
            qp_wr_max: count(attr.max_qp_wr),
            sge_max: count(attr.max_sge),
            cqe_max: count(attr.max_cqe),
            srq_wr_max: count(attr.max_srq_wr),
            rd_atomic_max: u8::try_from(rd_atomic).unwrap_or(if rd_atomic > 0 {
                u8::MAX
            } else {
                0
            }),
            atomics: attr.atomic_cap != ffi::ibv_atomic_cap::IBV_ATOMIC_NONE,
            region_bytes_max: attr.max_mr_size,
            windows: attr.max_mw > 0
                && attr.device_cap_flags
                    & ffi::ibv_device_cap_flags::IBV_DEVICE_MEM_WINDOW_TYPE_2B.0
                    != 0,
            iwarp: self.is_iwarp(),
        })
    }

    /// Whether a port of it is up.
    pub(crate) fn is_active(&self) -> bool {
        self.ports().any(|port| {
            self.port(port).is_ok_and(|attr| attr.state == ffi::ibv_port_state::IBV_PORT_ACTIVE)
        })
    }

    /// Bytes of the largest datagram that its ports take.
    pub(crate) fn mtu_bytes(&self) -> usize {
        self.ports().filter_map(|port| self.port_mtu_bytes(port)).min().unwrap_or(256)
    }

    /// Bytes of the largest packet that a port takes.
    pub(crate) fn port_mtu_bytes(&self, port: u8) -> Option<usize> {
        mtu_bytes(self.port(port).ok()?.active_mtu)
    }

    /// The IP addresses in the tables of its ports.
    pub(crate) fn ips(&self) -> Vec<IpAddr> {
        self.ports().flat_map(|port| self.port_ips(port)).collect()
    }

    /// Its ports with their states, as `ibv_devinfo` names them.
    pub(crate) fn port_states(&self) -> Vec<(u8, &'static str)> {
        use ffi::ibv_port_state as state;
        let name = |port| match self.port(port).map_or(u32::MAX, |attr| attr.state) {
            state::IBV_PORT_NOP => "without a state",
            state::IBV_PORT_DOWN => "down",
            state::IBV_PORT_INIT => "initialising",
            state::IBV_PORT_ARMED => "armed",
            state::IBV_PORT_ACTIVE => "active",
            state::IBV_PORT_ACTIVE_DEFER => "active, deferred",
            _ => "in an unknown state",
        };
        self.ports().map(|port| (port, name(port))).collect()
    }

    fn port_ips(&self, port: u8) -> Vec<IpAddr> {
        let Ok(attr) = self.port(port) else { return Vec::new() };
        (0..attr.gid_tbl_len).filter_map(|index| self.gid(port, index)).collect()
    }

    fn gid(&self, port: u8, index: i32) -> Option<IpAddr> {
        let mut gid = ffi::ibv_gid { raw: [0; 16] };
        // SAFETY: the context is open and `gid` valid for writing.
        check(unsafe { ffi::ibv_query_gid(self.raw(), port, index, &mut gid) }).ok()?;
        // SAFETY: every union of bytes is a valid array of bytes.
        let ip = Ipv6Addr::from(unsafe { gid.raw });
        (!ip.is_unspecified()).then(|| IpAddr::V6(ip).to_canonical())
    }

    fn ports(&self) -> std::ops::RangeInclusive<u8> {
        let mut attr = MaybeUninit::<ffi::ibv_device_attr>::zeroed();
        // SAFETY: the context is open and `attr` valid for writing.
        let found = check(unsafe { ffi::ibv_query_device(self.raw(), attr.as_mut_ptr()) });
        // SAFETY: zeroed memory is a valid value of this plain structure.
        let count = unsafe { attr.assume_init() }.phys_port_cnt;
        1..=if found.is_ok() { count } else { 0 }
    }

    /// A port's state, with everything zero that this library does not know: the bindings' own call
    /// leaves fields as they were.
    fn port(&self, port: u8) -> io::Result<ffi::ibv_port_attr> {
        let mut attr = MaybeUninit::<ffi::ibv_port_attr>::zeroed();
        let bytes = size_of::<ffi::ibv_port_attr>();
        // SAFETY: `extended` gives a table that is valid while the context is; the call takes the
        // length of what it may write.
        unsafe {
            match extended(self.raw()).and_then(|table| (*table).query_port) {
                Some(query) => check(query(self.raw(), port, attr.as_mut_ptr(), bytes))?,
                None => {
                    check_errno(ffi::ibv_query_port(self.raw(), port, attr.as_mut_ptr().cast()))?;
                }
            }
            Ok(attr.assume_init())
        }
    }

    fn is_iwarp(&self) -> bool {
        // SAFETY: the device of an open context is valid.
        let node_type = unsafe { (*(*self.raw()).device).node_type };
        node_type == ffi::ibv_node_type::IBV_NODE_RNIC
    }
}

/// What a code of InfiniBand's means: 1 to 5 stand for 256 to 4096 bytes.
pub(super) fn mtu_bytes(code: u32) -> Option<usize> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// The table of extended calls in front of a context, if there is one with `query_port` in it. The
/// bindings' own look-up compares with a 32-bit constant and finds none on 64-bit hosts.
///
/// # Safety
/// The context must be open.
unsafe fn extended(context: *mut ffi::ibv_context) -> Option<*const ffi::verbs_context> {
    // SAFETY: the caller says that the context is open. Where `abi_compat` is all ones, the library
    // promises that the context is the last field of a `verbs_context`, of which the last `sz`
    // bytes before it exist.
    unsafe {
        if (*context).abi_compat as usize != usize::MAX {
            return None;
        }
        let at = context.byte_sub(offset_of!(ffi::verbs_context, context));
        let table = at.cast_const().cast::<ffi::verbs_context>();
        let needed = size_of::<ffi::verbs_context>() - offset_of!(ffi::verbs_context, query_port);
        ((*table).sz >= needed).then_some(table)
    }
}
