//! Remote operations that ended.

use fabric_core::{EpId, Error, Event, OpId, Returned};

/// A remote operation that ended, with what it gives back.
#[derive(Debug)]
pub struct Done {
    /// The operation.
    pub op: OpId,
    /// Its buffer, or the value of an atomic.
    pub returned: Returned,
    /// Whether it was done.
    pub result: Result<(), Error>,
}

impl Done {
    /// The event for its user.
    pub fn event(self, ep: EpId) -> Event {
        Event::RmaDone { ep, op: self.op, returned: self.returned, result: self.result }
    }
}
