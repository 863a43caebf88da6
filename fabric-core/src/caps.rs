//! What a domain offers, stated once.

/// Limits and abilities of a domain. A provider states them when it opens; nothing else repeats
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// The provider's name, as in `cargo xtask conformance`: `tcp`, `sim`, `verbs`…
    pub provider: &'static str,
    /// The device, as its administrator would name it.
    pub device: String,
    /// Largest message of one `post_send`, in bytes. The peer's posted slot must be as large.
    pub message_bytes_max: usize,
    /// Messages up to this many bytes leave with the post itself; 0 where there is no such thing.
    pub inline_bytes_max: usize,
    /// Most segments in one `SendBuf`.
    pub segments_max: usize,
    /// Sends, reads, writes and atomics in flight on one endpoint; one more is refused as `Full`.
    pub send_depth: usize,
    /// Receives posted in the domain; one more is refused as `Full`.
    pub recv_depth: usize,
    /// From this many bytes on, a segment of its own is cheaper than a copy into a slot.
    pub gather_bytes_min: usize,
    /// Remote memory access, where offered.
    pub rma: Option<RmaCaps>,
    /// Whether `Domain::atomics` is offered.
    pub atomics: bool,
    /// Whether `Domain::multicast` is offered.
    pub multicast: bool,
}

/// Limits of remote memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RmaCaps {
    /// Largest read or write in bytes.
    pub bytes_max: usize,
    /// From this many bytes on, letting the peer read the message is cheaper than sending it.
    pub rendezvous_bytes_min: usize,
}
