//! How long to look for completions before sleeping. Sleeping and being woken costs some
//! microseconds, which is much for an answer that is about to come and nothing for one that is not.

use std::time::Duration;

/// Looks as long as it would have been worth it lately.
#[derive(Debug)]
pub(crate) struct Patience {
    span: Duration,
    span_max: Duration,
}

impl Patience {
    /// Looks for at most `span_max`; not at all where there is one processor, which the peer or the
    /// device's driver may need.
    pub(crate) fn new(span_max: Duration) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        Self::with(if alone { Duration::ZERO } else { span_max })
    }

    fn with(span_max: Duration) -> Self {
        Self { span: Duration::ZERO, span_max }
    }

    /// How long to look this time.
    pub(crate) fn span(&self) -> Duration {
        self.span
    }

    /// It took so long until something came.
    pub(crate) fn on_came(&mut self, took: Duration) {
        if took <= self.span_max {
            // The next one may take a little longer.
            self.span = self.span.max(2 * took).min(self.span_max);
        } else {
            self.on_nothing();
        }
    }

    /// Nothing came in time.
    pub(crate) fn on_nothing(&mut self) {
        self.span /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_micros(50);

    #[test]
    fn quick_answers_are_looked_for_and_slow_ones_are_not() {
        let mut patience = Patience::with(MAX);
        assert_eq!(patience.span(), Duration::ZERO);
        patience.on_came(Duration::from_micros(10));
        assert_eq!(patience.span(), Duration::from_micros(20));
        patience.on_came(Duration::from_micros(40));
        assert_eq!(patience.span(), MAX);
        (0..10).for_each(|_| patience.on_came(Duration::from_millis(1)));
        assert!(patience.span() < Duration::from_micros(1));
    }

    #[test]
    fn silence_ends_the_looking() {
        let mut patience = Patience::with(MAX);
        patience.on_came(MAX);
        (0..40).for_each(|_| patience.on_nothing());
        assert_eq!(patience.span(), Duration::ZERO);
    }

    #[test]
    fn no_looking_can_be_asked_for() {
        let mut patience = Patience::with(Duration::ZERO);
        patience.on_came(Duration::ZERO);
        patience.on_came(Duration::from_micros(1));
        assert_eq!(patience.span(), Duration::ZERO);
    }
}
