//! What a user can set.

use std::time::Duration;

/// Settings of a TCP domain. The default suits loopback and data centre networks.
///
/// ```
/// let options = fabric_tcp::TcpOptions { send_depth: 256, ..Default::default() };
/// assert_eq!(options.recv_depth, 1024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpOptions {
    /// The kernel's send buffer of each connection, in bytes. `None` lets the kernel tune it.
    pub send_buffer_bytes: Option<usize>,
    /// The kernel's receive buffer of each connection, in bytes. `None` lets the kernel tune it.
    pub recv_buffer_bytes: Option<usize>,
    /// How long a peer may take to answer a connection attempt, over all of its addresses.
    pub connect_timeout: Duration,
    /// How long a connected peer may take to greet in this provider's protocol.
    pub handshake_timeout: Duration,
    /// Largest message, in bytes; at most `u32::MAX` is used. Peers should agree on it.
    pub message_bytes_max: usize,
    /// Sends, reads, writes and atomics in flight on one endpoint.
    pub send_depth: usize,
    /// Receives posted in the domain.
    pub recv_depth: usize,
    /// Accepted connections that have not greeted yet. One more drops the oldest.
    pub pending_handshakes_max: usize,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            send_buffer_bytes: None,
            recv_buffer_bytes: None,
            connect_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(5),
            message_bytes_max: (64 + 1) << 10,
            send_depth: 64,
            recv_depth: 1024,
            pending_handshakes_max: 256,
        }
    }
}
