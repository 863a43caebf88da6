//! Tables by numbers that are given out here.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are numbers of this side's own making: nobody can choose them so that they
/// collide, and most lookups are a few instructions.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Spreads numbers that count up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdHasher(u64);

/// Odd, with bits all over: the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(FACTOR);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// Tables choose places by the lowest bits, to which a product brings the least.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use super::*;

    fn places<K: Hash>(keys: impl Iterator<Item = K>) -> usize {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        keys.map(|key| hasher.hash_one(key) % 1024).collect::<HashSet<_>>().len()
    }

    #[test]
    fn numbers_that_count_up_are_spread_over_a_table() {
        // Spread at random they would take about 650 of 1024 places.
        assert!(places(0..1024_u64) > 600);
        assert!(places((0..1024_u64).map(|number| number << 32 | 7)) > 600);
        assert!(places((0..1024_u64).map(|number| number << 32 | number)) > 600);
        assert!(places((0..1024_u64).map(|number| (1_usize, number))) > 600);
    }
}
