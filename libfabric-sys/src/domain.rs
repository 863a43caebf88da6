//! Domains, address vectors and memory (`fi_domain(3)`, `fi_av(3)`, `fi_mr(3)`).

#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_void};

use crate::{Unused, fi_cq_attr, fi_info, fid, fid_cq, fid_ep};

#[repr(C)]
pub struct fid_domain {
    pub fid: fid,
    pub ops: *mut fi_ops_domain,
    pub mr: *mut fi_ops_mr,
}

type Open<A, O> =
    Option<unsafe extern "C" fn(*mut fid_domain, *mut A, *mut *mut O, *mut c_void) -> c_int>;

#[repr(C)]
pub struct fi_ops_domain {
    pub size: usize,
    pub av_open: Open<fi_av_attr, fid_av>,
    pub cq_open: Open<fi_cq_attr, fid_cq>,
    pub endpoint: Open<fi_info, fid_ep>,
    pub scalable_ep: Unused,
    pub cntr_open: Unused,
    pub poll_open: Unused,
    pub stx_ctx: Unused,
    pub srx_ctx: Unused,
    pub query_atomic: Unused,
}

#[repr(C)]
pub struct fi_av_attr {
    pub r#type: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct fid_av {
    pub fid: fid,
    pub ops: *mut fi_ops_av,
}

#[repr(C)]
pub struct fi_ops_av {
    pub size: usize,
    pub insert: Option<
        unsafe extern "C" fn(
            *mut fid_av,
            *const c_void,
            usize,
            *mut u64,
            u64,
            *mut c_void,
        ) -> c_int,
    >,
    pub insertsvc: Unused,
    pub insertsym: Unused,
    pub remove: Option<unsafe extern "C" fn(*mut fid_av, *mut u64, usize, u64) -> c_int>,
}

#[repr(C)]
pub struct fid_mr {
    pub fid: fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct fi_ops_mr {
    pub size: usize,
    pub reg: Option<
        unsafe extern "C" fn(
            *mut fid,
            *const c_void,
            usize,
            u64,
            u64,
            u64,
            u64,
            *mut *mut fid_mr,
            *mut c_void,
        ) -> c_int,
    >,
    pub regv: Unused,
    pub regattr: Unused,
}
