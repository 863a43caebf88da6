//! C's inline functions: calls through tables of operations. All return what the operation does, or
//! `-FI_ENOSYS` when the table has none.
//!
//! # Safety
//! For every function: objects must be open and of the provider's making, buffers valid for what the
//! manual page of the same name says, and calls on one domain must not run at once if the domain was
//! opened for that.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use crate::{
    FI_ENOSYS, fi_av_attr, fi_cq_attr, fi_cq_err_entry, fi_eq_attr, fi_eq_err_entry, fi_info,
    fi_ops, fi_ops_av, fi_ops_cm, fi_ops_cq, fi_ops_domain, fi_ops_ep, fi_ops_eq, fi_ops_fabric,
    fi_ops_mr, fi_ops_msg, fid, fid_av, fid_cq, fid_domain, fid_ep, fid_eq, fid_fabric, fid_mr,
    fid_pep,
};

/// Calls an operation of a table, if the table is long enough to have it and does.
macro_rules! op {
    ($table:expr, $kind:ty, $op:ident ( $($arg:expr),* )) => {{
        let table: *mut $kind = $table;
        // SAFETY: the caller of the function around says that the object is open, and so is its
        // table, whose length is its first field.
        let found = unsafe {
            if table.is_null() || (*table).size <= offset_of!($kind, $op) { None } else { (*table).$op }
        };
        match found {
            // SAFETY: the caller of the function around keeps what the operation demands.
            Some(call) => unsafe { call($($arg),*) },
            None => (-FI_ENOSYS) as _,
        }
    }};
}

/// What an object begins with.
macro_rules! ops {
    ($object:expr) => {
        // SAFETY: the caller of the function around says that the object is open.
        unsafe { (*$object).ops }
    };
}

/// The table of connection operations or of messages.
macro_rules! part {
    ($object:expr, $field:ident) => {
        // SAFETY: the caller of the function around says that the object is open.
        unsafe { (*$object).$field }
    };
}

/// Closes any object.
///
/// # Safety
/// As the module says; nobody uses the object afterwards.
pub unsafe fn fi_close(object: *mut fid) -> c_int {
    op!(ops!(object), fi_ops, close(object))
}

/// Binds one object to another.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_bind(object: *mut fid, to: *mut fid, flags: u64) -> c_int {
    op!(ops!(object), fi_ops, bind(object, to, flags))
}

/// A control command.
///
/// # Safety
/// As the module says; `arg` must be what the command takes.
pub unsafe fn fi_control(object: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    op!(ops!(object), fi_ops, control(object, command, arg))
}

/// `fi_domain(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_domain(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
) -> c_int {
    op!(ops!(fabric), fi_ops_fabric, domain(fabric, info, domain, std::ptr::null_mut()))
}

/// `fi_passive_ep`, see `fi_endpoint(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_passive_ep(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    pep: *mut *mut fid_pep,
    context: *mut c_void,
) -> c_int {
    op!(ops!(fabric), fi_ops_fabric, passive_ep(fabric, info, pep, context))
}

/// `fi_eq_open`, see `fi_eq(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_eq_open(
    fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    eq: *mut *mut fid_eq,
) -> c_int {
    op!(ops!(fabric), fi_ops_fabric, eq_open(fabric, attr, eq, std::ptr::null_mut()))
}

/// `fi_trywait`, see `fi_poll(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    op!(ops!(fabric), fi_ops_fabric, trywait(fabric, fids, count))
}

/// `fi_av_open`, see `fi_av(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_av_open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    av: *mut *mut fid_av,
) -> c_int {
    op!(ops!(domain), fi_ops_domain, av_open(domain, attr, av, std::ptr::null_mut()))
}

/// `fi_cq_open`, see `fi_cq(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_cq_open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
) -> c_int {
    op!(ops!(domain), fi_ops_domain, cq_open(domain, attr, cq, std::ptr::null_mut()))
}

/// `fi_endpoint(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_endpoint(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    op!(ops!(domain), fi_ops_domain, endpoint(domain, info, ep, context))
}

/// `fi_mr_reg`, see `fi_mr(3)`.
///
/// # Safety
/// As the module says; the memory must outlive the region.
pub unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    start: *const c_void,
    len: usize,
    access: u64,
    key: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    let object = domain.cast::<fid>();
    let table = part!(domain, mr);
    op!(table, fi_ops_mr, reg(object, start, len, access, 0, key, 0, mr, std::ptr::null_mut()))
}

/// `fi_av_insert` of one address, see `fi_av(3)`.
///
/// # Safety
/// As the module says; `addr` must point to an address of the provider's format.
pub unsafe fn fi_av_insert(av: *mut fid_av, addr: *const c_void, found: *mut u64) -> c_int {
    op!(ops!(av), fi_ops_av, insert(av, addr, 1, found, 0, std::ptr::null_mut()))
}

/// `fi_av_remove` of one address, see `fi_av(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_av_remove(av: *mut fid_av, addr: *mut u64) -> c_int {
    op!(ops!(av), fi_ops_av, remove(av, addr, 1, 0))
}

/// `fi_enable`, see `fi_endpoint(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_enable(ep: *mut fid_ep) -> c_int {
    // SAFETY: as the caller says.
    unsafe { fi_control(ep.cast(), crate::FI_ENABLE, std::ptr::null_mut()) }
}

/// `fi_cancel`, see `fi_endpoint(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_cancel(ep: *mut fid_ep, context: *mut c_void) -> isize {
    op!(ops!(ep), fi_ops_ep, cancel(ep.cast(), context))
}

/// `fi_getname` of an endpoint, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_getname(ep: *mut fid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    op!(part!(ep, cm), fi_ops_cm, getname(ep.cast(), addr, len))
}

/// `fi_getname` of a passive endpoint.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_getname_passive(pep: *mut fid_pep, addr: *mut c_void, len: *mut usize) -> c_int {
    op!(part!(pep, cm), fi_ops_cm, getname(pep.cast(), addr, len))
}

/// `fi_getpeer`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_getpeer(ep: *mut fid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    op!(part!(ep, cm), fi_ops_cm, getpeer(ep, addr, len))
}

/// `fi_connect`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_connect(
    ep: *mut fid_ep,
    addr: *const c_void,
    param: *const c_void,
    param_len: usize,
) -> c_int {
    op!(part!(ep, cm), fi_ops_cm, connect(ep, addr, param, param_len))
}

/// `fi_listen`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_listen(pep: *mut fid_pep) -> c_int {
    op!(part!(pep, cm), fi_ops_cm, listen(pep))
}

/// `fi_accept`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_accept(ep: *mut fid_ep, param: *const c_void, param_len: usize) -> c_int {
    op!(part!(ep, cm), fi_ops_cm, accept(ep, param, param_len))
}

/// `fi_reject`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says; `handle` must be that of a connection request that nobody answered.
pub unsafe fn fi_reject(
    pep: *mut fid_pep,
    handle: *mut fid,
    param: *const c_void,
    param_len: usize,
) -> c_int {
    op!(part!(pep, cm), fi_ops_cm, reject(pep, handle, param, param_len))
}

/// `fi_shutdown`, see `fi_cm(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_shutdown(ep: *mut fid_ep) -> c_int {
    op!(part!(ep, cm), fi_ops_cm, shutdown(ep, 0))
}

/// `fi_recv`, see `fi_msg(3)`.
///
/// # Safety
/// As the module says; the buffer belongs to the provider until the completion or the endpoint's
/// end.
pub unsafe fn fi_recv(
    ep: *mut fid_ep,
    start: *mut c_void,
    len: usize,
    desc: *mut c_void,
    context: *mut c_void,
) -> isize {
    let from = crate::FI_ADDR_UNSPEC;
    op!(part!(ep, msg), fi_ops_msg, recv(ep, start, len, desc, from, context))
}

/// `fi_send`, see `fi_msg(3)`.
///
/// # Safety
/// As the module says; the buffer belongs to the provider until the completion or the endpoint's
/// end.
pub unsafe fn fi_send(
    ep: *mut fid_ep,
    start: *const c_void,
    len: usize,
    desc: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    op!(part!(ep, msg), fi_ops_msg, send(ep, start, len, desc, to, context))
}

/// `fi_inject`, see `fi_msg(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_inject(ep: *mut fid_ep, start: *const c_void, len: usize, to: u64) -> isize {
    op!(part!(ep, msg), fi_ops_msg, inject(ep, start, len, to))
}

/// `fi_cq_read`, see `fi_cq(3)`.
///
/// # Safety
/// As the module says; `into` must have room for `count` entries of the queue's format.
pub unsafe fn fi_cq_read(cq: *mut fid_cq, into: *mut c_void, count: usize) -> isize {
    op!(ops!(cq), fi_ops_cq, read(cq, into, count))
}

/// `fi_cq_readerr`, see `fi_cq(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_cq_readerr(cq: *mut fid_cq, into: *mut fi_cq_err_entry) -> isize {
    op!(ops!(cq), fi_ops_cq, readerr(cq, into, 0))
}

/// `fi_eq_read`, see `fi_eq(3)`.
///
/// # Safety
/// As the module says; `into` must have room for `len` bytes.
pub unsafe fn fi_eq_read(eq: *mut fid_eq, event: *mut u32, into: *mut c_void, len: usize) -> isize {
    op!(ops!(eq), fi_ops_eq, read(eq, event, into, len, 0))
}

/// `fi_eq_readerr`, see `fi_eq(3)`.
///
/// # Safety
/// As the module says.
pub unsafe fn fi_eq_readerr(eq: *mut fid_eq, into: *mut fi_eq_err_entry) -> isize {
    op!(ops!(eq), fi_ops_eq, readerr(eq, into, 0))
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;

    unsafe extern "C" fn inject(_: *mut fid_ep, _: *const c_void, len: usize, _: u64) -> isize {
        len as isize
    }

    fn table(
        size: usize,
        inject: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64) -> isize>,
    ) -> fi_ops_msg {
        fi_ops_msg {
            size,
            recv: None,
            recvv: None,
            recvmsg: None,
            send: None,
            sendv: None,
            sendmsg: None,
            inject,
            senddata: None,
            injectdata: None,
        }
    }

    fn call(mut msg: fi_ops_msg) -> isize {
        let mut ep = fid_ep {
            fid: fid { fclass: 0, context: null_mut(), ops: null_mut() },
            ops: null_mut(),
            cm: null_mut(),
            msg: &mut msg,
            rma: null_mut(),
            tagged: null_mut(),
            atomic: null_mut(),
            collective: null_mut(),
        };
        // SAFETY: the object and its table are alive, and the operation above takes anything.
        unsafe { fi_inject(&mut ep, null(), 5, 0) }
    }

    #[test]
    fn an_operation_beyond_the_end_of_its_table_is_not_called() {
        let whole = size_of::<fi_ops_msg>();
        assert_eq!(call(table(whole, Some(inject))), 5);
        assert_eq!(call(table(offset_of!(fi_ops_msg, inject), Some(inject))), -38);
        assert_eq!(call(table(whole, None)), -38);
    }
}
