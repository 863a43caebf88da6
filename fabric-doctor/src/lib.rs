//! What RDMA on this host can do, what it cannot, why, and what to type.
//!
//! RDMA fails in silence: a module that is not loaded, a driver that a package lacks, a limit that
//! nobody knows of, and the device list is empty or a number comes back. [`examine`] reads what the
//! kernel and the file system tell and says it in words: a finding for each thing that is wrong, with
//! what was seen, the likely cause, a command to try and what works in spite of it.
//!
//! ```
//! use fabric_doctor::{Options, Root, examine};
//!
//! let report = examine(&Root::host(), &Options::default());
//! for finding in &report.findings {
//!     println!("{}: {}, try `{}`", finding.id, finding.seen, finding.command);
//! }
//! ```
//!
//! Nothing is loaded, linked or changed. A program that has verbs may lend them ([`Probe`]), so that
//! messages are tried, too. It works unprivileged, in containers and without RDMA.
//! `docs/doctor.md` lists all findings. The files are Linux's: other systems have none, so there the
//! report says that RDMA takes Linux and that TCP works.

#![forbid(unsafe_code)]

mod catalogue;
mod checks;
mod choice;
mod earlier;
mod facts;
mod finding;
#[cfg(target_os = "linux")]
mod netlink;
mod probe;
mod report;
mod root;
mod size;
mod steps;
mod target;
mod text;

pub use catalogue::{Entry, Met, all as catalogue};
pub use choice::{Choice, SCHEMES};
pub use earlier::{Earlier, NoReport};
pub use facts::{
    Availability, Device, DeviceFile, Gid, Host, Interface, Kernel, Library, Limit, Port, Process,
    Stack, Verbs,
};
pub use finding::{Finding, Id, Severity};
pub use probe::{Probe, Reached};
pub use report::{Options, Report, Verdict, examine};
pub use root::Root;
pub use steps::{Outcome, Step};
pub use target::{NoTarget, Target};
