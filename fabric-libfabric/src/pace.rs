//! How long to nap between two looks, where a provider has no descriptor to sleep on.

use std::time::{Duration, Instant};

use crate::limits::{NAP_MAX, NAP_MIN, NUDGE_AFTER, QUIET_AFTER};

/// Naps grow with the time since something came, so that they cost little when nothing does and add
/// a fraction to what somebody waited anyway.
///
/// A packet comes with a nudge unless it can be seen within [`NUDGE_AFTER`] of an earlier one. So who
/// looked in vain that long after the last one may sleep until a nudge.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When something came, or later.
    came: Instant,
    /// Something came after that.
    has_come: bool,
    /// When somebody looked.
    looked: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { came: now, has_come: false, looked: now }
    }

    /// Something came, or a nudge. It counts from when the clock is read next.
    pub(crate) fn on_progress(&mut self) {
        self.has_come = true;
    }

    /// The queues are about to be looked at. It does no harm to leave this out now and then.
    pub(crate) fn on_look(&mut self, now: Instant) {
        if std::mem::take(&mut self.has_come) {
            self.came = now;
        }
        self.looked = now;
    }

    /// Whether the next packet comes with a nudge.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        !self.has_come
            && now.saturating_duration_since(self.came) >= QUIET_AFTER
            && self.looked.saturating_duration_since(self.came) >= NUDGE_AFTER
    }

    pub(crate) fn nap(&self, now: Instant) -> Duration {
        let since = match self.has_come {
            true => Duration::ZERO,
            false => now.saturating_duration_since(self.came),
        };
        (since / 4).clamp(NAP_MIN, NAP_MAX)
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
        pace.on_progress();
        assert_eq!(pace.nap(later), NAP_MIN);
        pace.on_look(later);
        assert_eq!(pace.nap(later), NAP_MIN);
        assert_eq!(pace.nap(later + Duration::from_millis(8)), Duration::from_millis(2));
    }

    #[test]
    fn it_is_quiet_only_after_somebody_looked_in_vain_for_long_enough() {
        let start = Instant::now();
        let (mut pace, late) = (Pace::new(start), start + QUIET_AFTER);
        pace.on_look(start + NUDGE_AFTER / 2);
        assert!(!pace.is_quiet(late), "a packet may have come behind the last one");
        pace.on_look(start + NUDGE_AFTER);
        assert!(!pace.is_quiet(start + QUIET_AFTER / 2));
        assert!(pace.is_quiet(late));
        pace.on_progress();
        assert!(!pace.is_quiet(late));
        pace.on_look(late);
        assert!(!pace.is_quiet(late + QUIET_AFTER), "nobody looked since");
        pace.on_look(late + QUIET_AFTER);
        assert!(pace.is_quiet(late + QUIET_AFTER));
    }
}
