//! How long to nap between two looks, where a provider has no descriptor to sleep on.

use std::time::{Duration, Instant};

use crate::limits::{NAP_MAX, NAP_MIN};

/// Naps grow with the time since something came, so that they cost little when nothing does and add
/// a fraction to what somebody waited anyway. A peer that sends after a pause nudges.
#[derive(Debug)]
pub(crate) struct Pace {
    last: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { last: now }
    }

    /// Something came.
    pub(crate) fn on_progress(&mut self, now: Instant) {
        self.last = now;
    }

    pub(crate) fn nap(&self, now: Instant) -> Duration {
        (now.saturating_duration_since(self.last) / 4).clamp(NAP_MIN, NAP_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_to_a_limit_and_are_short_after_progress() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.nap(start), NAP_MIN);
        let later = start + Duration::from_millis(8);
        assert_eq!(pace.nap(later), Duration::from_millis(2));
        assert_eq!(pace.nap(start + Duration::from_secs(60)), NAP_MAX);
        pace.on_progress(later);
        assert_eq!(pace.nap(later), NAP_MIN);
    }
}
