//! Endpoints, connections and messages (`fi_endpoint(3)`, `fi_cm(3)`, `fi_msg(3)`).

#![allow(missing_docs)]

use std::ffi::{c_int, c_void};

use crate::{Unused, fid};

#[repr(C)]
pub struct fid_ep {
    pub fid: fid,
    pub ops: *mut fi_ops_ep,
    pub cm: *mut fi_ops_cm,
    pub msg: *mut fi_ops_msg,
    pub rma: *mut c_void,
    pub tagged: *mut c_void,
    pub atomic: *mut c_void,
    pub collective: *mut c_void,
}

#[repr(C)]
pub struct fid_pep {
    pub fid: fid,
    pub ops: *mut fi_ops_ep,
    pub cm: *mut fi_ops_cm,
}

#[repr(C)]
pub struct fi_ops_ep {
    pub size: usize,
    pub cancel: Option<unsafe extern "C" fn(*mut fid, *mut c_void) -> isize>,
    pub getopt: Unused,
    pub setopt: Unused,
}

#[repr(C)]
pub struct fi_ops_cm {
    pub size: usize,
    pub setname: Option<unsafe extern "C" fn(*mut fid, *mut c_void, usize) -> c_int>,
    pub getname: Option<unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int>,
    pub getpeer: Option<unsafe extern "C" fn(*mut fid_ep, *mut c_void, *mut usize) -> c_int>,
    pub connect:
        Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, *const c_void, usize) -> c_int>,
    pub listen: Option<unsafe extern "C" fn(*mut fid_pep) -> c_int>,
    pub accept: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize) -> c_int>,
    pub reject: Option<unsafe extern "C" fn(*mut fid_pep, *mut fid, *const c_void, usize) -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn(*mut fid_ep, u64) -> c_int>,
    pub join: Unused,
}

#[repr(C)]
pub struct fi_ops_msg {
    pub size: usize,
    pub recv: Option<
        unsafe extern "C" fn(
            *mut fid_ep,
            *mut c_void,
            usize,
            *mut c_void,
            u64,
            *mut c_void,
        ) -> isize,
    >,
    pub recvv: Unused,
    pub recvmsg: Unused,
    pub send: Option<
        unsafe extern "C" fn(
            *mut fid_ep,
            *const c_void,
            usize,
            *mut c_void,
            u64,
            *mut c_void,
        ) -> isize,
    >,
    pub sendv: Unused,
    pub sendmsg: Unused,
    pub inject: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64) -> isize>,
    pub senddata: Unused,
    pub injectdata: Unused,
}
