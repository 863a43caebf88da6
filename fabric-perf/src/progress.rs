//! How far a run is, for who watches.

/// Told how far a run is; called now and then, never for each message.
pub trait Progress {
    /// A part of the plan begins: what it is, and how many messages it has.
    fn begin(&self, what: &str, total: u64);
    /// So many of them are done.
    fn at(&self, done: u64);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _what: &str, _total: u64) {}
    fn at(&self, _done: u64) {}
}

/// Messages between two calls of [`Progress::at`], less one: a power of two, for a cheap test.
const EVERY_MASK: u64 = 0x3ff;

/// Tells `progress` if it is time again.
pub(crate) fn tell(progress: &dyn Progress, done: u64) {
    if done & EVERY_MASK == 0 {
        progress.at(done);
    }
}
