//! A case of the suite.

use fabric_core::Caps;

use crate::Harness;

/// What a case needs from a domain besides messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Messages,
    /// `Caps::rma`.
    Rma,
    /// `Caps::atomics`, and `Caps::rma` to expose the memory.
    Atomics,
    /// `Caps::multicast`.
    Multicast,
}

impl Needs {
    /// Why a domain with `caps` cannot run the case, if it cannot.
    pub(crate) fn lacking(self, caps: &Caps) -> Option<&'static str> {
        match self {
            Self::Rma | Self::Atomics if caps.rma.is_none() => Some("Caps::rma is not offered"),
            Self::Atomics if !caps.atomics => Some("Caps::atomics is not offered"),
            Self::Multicast if !caps.multicast => Some("Caps::multicast is not offered"),
            _ => None,
        }
    }
}

/// A case with its code, for one harness.
pub struct Case<H: Harness> {
    /// Its name, a claim, unique in the suite.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Runs it; panics when the claim does not hold.
    pub run: fn(&H),
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The claim holds.
    Passed,
    /// It does not, for this reason.
    Failed(String),
    /// It did not run, for this reason.
    Skipped(String),
}
