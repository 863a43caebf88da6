//! What fabrics that carry packets share above their queue pairs and endpoints.
//!
//! A provider moves packets of some kilobytes between two sides and knows its device. What stands in
//! them and what follows from that is the same for all, and stands here: the [`Hello`] by which a
//! connection begins, the [`Head`] of a packet and how it is [admitted](admit()), the [`Credit`] that
//! bounds what is under way, how messages are [`Cut`] to packets and come together again
//! ([`Assembly`]) in the receives that a user posted ([`Recvs`]), which connections have something to
//! do ([`Table`]), what [`posts`] are refused for, and why endpoints end. [`FdWaker`] ends the sleep of
//! whoever drives a domain.
//!
//! Nothing here does I/O but the waker, and nothing from a peer is taken on trust. This crate knows
//! no provider and no messaging pattern.

#![forbid(unsafe_code)]

mod admit;
mod assembly;
mod credit;
mod cut;
mod done;
mod hello;
mod packet;
pub mod posts;
mod reasons;
mod recvs;
mod stage;
mod table;
mod waker;

pub use admit::admit;
pub use assembly::{Assembly, Misfit, Taken};
pub use credit::{Breach, Credit};
pub use cut::{Cut, append};
pub use done::Done;
pub use hello::{HELLO_BYTES, Hello, HelloError, Protocol};
pub use packet::{HEAD_BYTES, Head, Kind, Part, REMOTE_MIN, Reason, Remote};
pub use reasons::{denied, flushed, goodbye, trespassed, vanished, violation};
pub use recvs::{Posted, Recvs};
pub use stage::Stage;
pub use table::{Conn, Phase, Table};
pub use waker::FdWaker;
