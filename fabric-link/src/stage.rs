//! How far an endpoint's life has come.

/// The stages of an endpoint, in this order; the second may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It can be used.
    Open,
    /// The peer sends nothing more; what it sent before is still to be read.
    PeerEnded,
    /// This side sends nothing more; what it handed over before is still to leave or come back.
    Closing,
}
