//! How long to wait before the next attempt to connect.

use core::time::Duration;

/// Waits that double from a base up to a cap, each with a random part so that peers that lost the
/// same server do not come back in step (LIFE-12, LIFE-13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    base: Option<Duration>,
    max: Duration,
    step: Duration,
}

impl Backoff {
    /// Waits from `base` on; without a base there is no next attempt. They double up to `max`; a
    /// `max` below `base`, such as zero, keeps them at `base`.
    pub fn new(base: Option<Duration>, max: Duration) -> Self {
        let step = base.unwrap_or_default();
        Self { base, max: max.max(step), step }
    }

    /// The wait before the next attempt: the present step plus the part `random / 2^32` of the
    /// base, hence always below `max + base`. `None` when there shall be no further attempt.
    pub fn next(&mut self, random: u32) -> Option<Duration> {
        let base = self.base?;
        let wait = self.step.saturating_add(part(base, random));
        self.step = self.step.saturating_mul(2).min(self.max);
        Some(wait)
    }

    /// An attempt succeeded: the next waits start at the base again.
    pub fn reset(&mut self) {
        self.step = self.base.unwrap_or_default();
    }
}

fn part(whole: Duration, random: u32) -> Duration {
    // Fits: a Duration has fewer than 94 bits of nanoseconds, and the result is below `whole`.
    let nanos = (whole.as_nanos() * u128::from(random)) >> 32;
    Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    fn waits_ms(base_ms: u64, max_ms: u64, random: u32) -> Vec<u128> {
        let base = Some(Duration::from_millis(base_ms));
        let mut backoff = Backoff::new(base, Duration::from_millis(max_ms));
        (0..6).filter_map(|_| backoff.next(random)).map(|wait| wait.as_millis()).collect()
    }

    #[test]
    fn life_12_the_wait_is_base_plus_a_random_part_below_base() {
        assert_eq!(waits_ms(100, 0, 0), [100; 6]);
        assert_eq!(waits_ms(100, 0, 1 << 31), [150; 6]);
        let mut backoff = Backoff::new(Some(BASE), Duration::ZERO);
        assert!(backoff.next(u32::MAX).unwrap() < 2 * BASE);
    }

    #[test]
    fn life_12_without_a_base_there_is_no_attempt() {
        let mut backoff = Backoff::new(None, BASE);
        backoff.reset();
        assert_eq!((backoff.next(0), backoff.next(7)), (None, None));
    }

    #[test]
    fn life_13_waits_double_up_to_the_cap() {
        assert_eq!(waits_ms(100, 1000, 0), [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(waits_ms(100, 99, 0), [100; 6]);
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = Backoff::new(Some(BASE), 10 * BASE);
        let before = (backoff.next(0), backoff.next(0));
        backoff.reset();
        assert_eq!((backoff.next(0), backoff.next(0)), before);
    }

    proptest! {
        #[test]
        fn no_setting_overflows_and_every_wait_is_within_its_bounds(
            base in any::<Duration>(), max in any::<Duration>(), random: Vec<u32>,
        ) {
            let mut backoff = Backoff::new(Some(base), max);
            let mut least = base;
            for random in random {
                let wait = backoff.next(random).unwrap();
                prop_assert!(wait >= least);
                let bound = least.saturating_add(base);
                prop_assert!(wait < bound || bound == Duration::MAX || base == Duration::ZERO);
                least = least.saturating_mul(2).min(max.max(base));
            }
        }
    }
}
