//! Chance that repeats itself.

/// A xorshift generator: good enough to choose faults, and the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // The state must not be zero; the multiplication spreads neighbouring seeds.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Whether something happens that happens in so many of 1000 cases.
    pub(crate) fn strikes(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.next() % 1000 < u64::from(per_mille)
    }

    /// A number up to `max`.
    pub(crate) fn up_to(&mut self, max: u32) -> u64 {
        self.next() % (u64::from(max) + 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_throws() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.strikes(500)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
    }

    #[test]
    fn never_and_always_are_what_they_say() {
        let mut dice = Dice::new(1);
        assert!((0..1000).all(|_| !dice.strikes(0) && dice.strikes(1000)));
    }

    #[test]
    fn a_tenth_strikes_about_one_time_in_ten() {
        let mut dice = Dice::new(3);
        let struck = (0..10_000).filter(|_| dice.strikes(100)).count();
        assert!((800..1200).contains(&struck), "{struck}");
    }
}
