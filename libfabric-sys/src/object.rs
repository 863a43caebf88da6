//! What all objects begin with (`fabric(7)`), and the fabric (`fi_fabric(3)`).

#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_void};

use crate::{fi_eq_attr, fi_info, fid_domain, fid_eq, fid_pep};

/// An entry of a table that this crate does not use, of the size of one that it does.
pub type Unused = Option<unsafe extern "C" fn()>;

#[repr(C)]
pub struct fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *mut fi_ops,
}

#[repr(C)]
pub struct fi_ops {
    pub size: usize,
    pub close: Option<unsafe extern "C" fn(*mut fid) -> c_int>,
    pub bind: Option<unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int>,
    pub control: Option<unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int>,
    pub ops_open: Unused,
}

#[repr(C)]
pub struct fid_fabric {
    pub fid: fid,
    pub ops: *mut fi_ops_fabric,
    pub api_version: u32,
}

type Open<A, O> =
    Option<unsafe extern "C" fn(*mut fid_fabric, *mut A, *mut *mut O, *mut c_void) -> c_int>;

#[repr(C)]
pub struct fi_ops_fabric {
    pub size: usize,
    pub domain: Open<fi_info, fid_domain>,
    pub passive_ep: Open<fi_info, fid_pep>,
    pub eq_open: Open<fi_eq_attr, fid_eq>,
    pub wait_open: Unused,
    pub trywait: Option<unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int>,
}

/// A parameter that the environment may set (`fi_getparams`).
#[repr(C)]
pub struct fi_param {
    pub name: *const c_char,
    pub r#type: c_int,
    pub help_string: *const c_char,
    pub value: *const c_char,
}
