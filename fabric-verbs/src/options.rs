//! What a user can set.

use std::time::Duration;

use crate::resolve::SCHEME;

/// Settings of a verbs domain. Device limits lower them where they must.
///
/// ```
/// let options = fabric_verbs::VerbsOptions { send_depth: 256, ..Default::default() };
/// assert_eq!(options.recv_depth, 1024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbsOptions {
    /// The device to open, such as `mlx5_0`. `None` takes the first one with a port that is up.
    pub device: Option<String>,
    /// The scheme of the addresses that its domains take and give: `verbs`, or that of a provider
    /// built on this one.
    pub scheme: &'static str,
    /// How long it may take to find the way to a peer and connect, over all of its addresses.
    pub connect_timeout: Duration,
    /// How long a peer that connects may take to finish.
    pub handshake_timeout: Duration,
    /// How long a closed endpoint may take to hand over what was sent before.
    pub linger_timeout: Duration,
    /// Largest message in bytes; at most `u32::MAX` is used. Peers should agree on it.
    pub message_bytes_max: usize,
    /// Sends, reads, writes and atomics in flight on one endpoint.
    pub send_depth: usize,
    /// Receives posted in the domain.
    pub recv_depth: usize,
    /// Bytes asked for in the send queue itself, so that small messages leave with the post. The
    /// device may offer less.
    pub inline_bytes: usize,
    /// Memory that peers may fill before receives are posted, in bytes for all endpoints together.
    /// Each gets an equal share, within limits; locked memory.
    pub window_bytes: usize,
    /// How long the peer's device may take to acknowledge before a message is sent again: 4.096 µs
    /// times two to this power. After seven of these the connection is broken.
    pub ack_timeout_power: u8,
    /// How long a wait looks for completions before it sleeps, at most; it adapts to what comes. Zero
    /// sleeps at once.
    pub look_max: Duration,
    /// Whether the device itself holds keys of exposed memory to the connection they are for, where
    /// it offers that (memory windows of type 2B). Without, the peer's provider does.
    pub memory_windows: bool,
}

impl Default for VerbsOptions {
    fn default() -> Self {
        Self {
            device: None,
            scheme: SCHEME,
            connect_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(5),
            linger_timeout: Duration::from_secs(5),
            message_bytes_max: (64 + 1) << 10,
            send_depth: 64,
            recv_depth: 1024,
            inline_bytes: 256,
            window_bytes: 16 << 20,
            ack_timeout_power: 16,
            look_max: Duration::from_micros(50),
            memory_windows: true,
        }
    }
}
