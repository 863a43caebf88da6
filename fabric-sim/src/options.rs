//! What a simulated network is like.

use std::time::Duration;

use fabric_core::{Caps, RmaCaps};

use crate::Bug;

/// How a network behaves. The default has no faults, no bug and real time.
#[derive(Debug, Clone, Default)]
pub struct SimOptions {
    /// Everything drawn at random is drawn from this.
    pub seed: u64,
    /// What goes wrong, and how often.
    pub faults: Faults,
    /// A promise to break on purpose.
    pub bug: Option<Bug>,
    /// Whether the clock stands until `SimNet::advance`; `wait` then never sleeps.
    pub virtual_time: bool,
    /// The limits that domains state in their `Caps`.
    pub limits: Limits,
}

/// What goes wrong by itself. All off by default.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Of 1000 connection attempts, how many are refused although somebody listens.
    pub refused_per_mille: u16,
    /// Of 1000 packets, how many break their connection instead of arriving.
    pub broken_per_mille: u16,
    /// Of 1000 packets, how many make the domain die that they arrive at, as `SimNet::kill` does.
    pub deaths_per_mille: u16,
    /// Polls of the receiving domain that a packet may take on top of the usual one; in real time.
    pub delay_polls_max: u32,
    /// Time that a packet may take on top of the usual 100 µs; in virtual time.
    pub delay_max: Duration,
}

/// Limits of the domains of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest message in bytes.
    pub message_bytes_max: usize,
    /// Most segments in one message.
    pub segments_max: usize,
    /// Sends and remote operations in flight on one endpoint.
    pub send_depth: usize,
    /// Receives posted in a domain.
    pub recv_depth: usize,
    /// Largest remote read or write in bytes.
    pub rma_bytes_max: usize,
    /// Longest datagram to a multicast group in bytes.
    pub datagram_bytes_max: usize,
    /// Exposures of a domain at one time.
    pub exposures_max: usize,
    /// How long `connect` waits for the other domain.
    pub connect_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 1 << 20,
            segments_max: 16,
            send_depth: 64,
            recv_depth: 1024,
            rma_bytes_max: 1 << 32,
            datagram_bytes_max: 1024,
            exposures_max: 4096,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

impl Limits {
    pub(crate) fn caps(&self, device: String) -> Caps {
        Caps {
            provider: "sim",
            device,
            message_bytes_max: self.message_bytes_max,
            inline_bytes_max: 0,
            segments_max: self.segments_max,
            send_depth: self.send_depth,
            recv_depth: self.recv_depth,
            gather_bytes_min: 4096,
            rma: Some(RmaCaps { bytes_max: self.rma_bytes_max, rendezvous_bytes_min: 256 << 10 }),
            atomics: true,
            multicast: true,
        }
    }
}
