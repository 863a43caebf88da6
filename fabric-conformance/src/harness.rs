//! What a provider tells the suite about itself.

use fabric_core::{Addr, Domain};

/// A case that a provider cannot pass, and why. It is skipped, and the reason stands in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// The case's name.
    pub case: &'static str,
    /// Why the device or the operating system rules it out.
    pub reason: &'static str,
}

/// Opens the domains of one provider.
pub trait Harness {
    /// The domain under test.
    type Domain: Domain + 'static;

    /// The provider's name in the ledger.
    fn name(&self) -> &str;

    /// A new domain. All domains of one harness reach each other.
    fn domain(&self) -> Self::Domain;

    /// An address that a domain can listen at, with its port left open.
    fn listen_addr(&self) -> Addr;

    /// An address where nobody listens.
    fn unreachable_addr(&self) -> Addr;

    /// A multicast group that nobody has joined, another one each time. Needed where domains offer
    /// `Caps::multicast`.
    fn fresh_group(&self) -> Option<Addr> {
        None
    }

    /// Cases that cannot pass here.
    fn exceptions(&self) -> &[Exception] {
        &[]
    }

    /// How many polls without effect a case waits for something before it fails. Each sleeps up to
    /// a millisecond.
    fn polls_max(&self) -> u32 {
        60_000
    }
}
