//! Multicast groups for harnesses.

use std::sync::atomic::{AtomicU16, Ordering};

use fabric_core::Addr;

/// A group that nobody in this process has joined.
pub(crate) fn fresh() -> Addr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    Addr::new("sim", &format!("239.1.{high}.{low}"), None)
}
