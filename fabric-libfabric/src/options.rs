//! What a user can set.

use std::time::Duration;

/// Settings of a libfabric domain. A provider's limits lower them where they must.
///
/// ```
/// let options = fabric_libfabric::LibfabricOptions {
///     provider: Some("tcp".into()),
///     ..Default::default()
/// };
/// assert_eq!(options.send_depth, 64);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibfabricOptions {
    /// The provider, as `fi_info -l` names it. `None` leaves the choice to the address and, where
    /// that says nothing, to libfabric.
    pub provider: Option<String>,
    /// The provider's domain, as `fi_info` names it, such as `eth0` or `mlx5_0`. `None` takes the
    /// first one.
    pub domain: Option<String>,
    /// How long it may take to connect, over all addresses of a peer.
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
    /// Whether the provider is to have a descriptor for its completions, to sleep on. Without one a
    /// domain that waits looks now and then, at longer and longer intervals, so leave it out only
    /// where nobody sleeps: libfabric's `tcp` then asks its few sockets with poll(2) and pays for no
    /// epoll(7) instance, which every packet would wake.
    pub wait_object: bool,
    /// Memory that peers may fill before receives are posted, in bytes for all endpoints together.
    /// Each gets an equal share, within limits.
    pub window_bytes: usize,
}

impl Default for LibfabricOptions {
    fn default() -> Self {
        Self {
            provider: None,
            domain: None,
            connect_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(5),
            linger_timeout: Duration::from_secs(5),
            message_bytes_max: (64 + 1) << 10,
            send_depth: 64,
            recv_depth: 1024,
            wait_object: true,
            window_bytes: 16 << 20,
        }
    }
}
