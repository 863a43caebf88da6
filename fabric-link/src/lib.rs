//! What fabrics that carry packets share above their queue pairs and endpoints.
//!
//! A provider moves packets of some kilobytes between two sides and knows its device; this crate
//! knows what stands in them and what follows from that: the [`Hello`] by which a connection begins,
//! the [`Head`] of a packet, the [`Credit`] that bounds what is under way, the receives that a user posted ([`Recvs`])
//! and how messages are cut to packets ([`Cut`]) and come together again ([`Assembly`]), what [`posts`] are refused for, and which
//! connections have something to do ([`Table`]).
//! [`FdWaker`] ends the sleep of whoever drives a domain.
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
