//! Input bytes read as the steps of a scenario, so that a corpus can be written by hand.

pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte, until the script ends.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number: small ones as they are, then powers of two, then those just below the limit.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte().unwrap_or(0) {
            small @ 0..192 => small.into(),
            power @ 192..=247 => 1 << (power - 184),
            high => u64::MAX - u64::from(255 - high),
        }
    }

    /// Up to `max` bytes, with their number in front.
    pub(crate) fn bytes(&mut self, max: usize) -> &'a [u8] {
        let wanted = usize::from(self.byte().unwrap_or(0)) % (max + 1);
        let (taken, rest) = self.0.split_at(wanted.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
