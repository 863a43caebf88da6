//! What a program that has verbs lends to the doctor, which links no RDMA library.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

/// A program's own way to use RDMA. Nothing may block for more than some seconds; errors are one
/// line that says what happened.
pub trait Probe: Debug {
    /// Sends a message to itself over this device, and checks it when it comes.
    ///
    /// # Errors
    /// What went wrong.
    fn loopback(&self, device: &str) -> Result<(), String>;

    /// Connects to a peer over RDMA.
    ///
    /// # Errors
    /// What went wrong on the way there.
    fn connect(&self, peer: SocketAddr) -> Result<Reached, String>;

    /// Sends `count` messages of so many bytes to a peer that sends each back (`fabric rep`), one
    /// after the other, checks them, and says how long it took.
    ///
    /// # Errors
    /// What went wrong.
    fn echo(&self, peer: SocketAddr, bytes: usize, count: u32) -> Result<Duration, String>;
}

/// How far a connection got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Somebody listens there.
    Listener,
    /// The host answers that nobody listens at that port.
    Host,
}
