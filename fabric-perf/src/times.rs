//! Times of many round trips.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Longest time that is told apart, in nanoseconds: a minute.
const MAX_NS: u64 = 60_000_000_000;
/// Significant digits of what is kept.
const DIGITS: u8 = 3;
/// Upper end of the first bucket of the report, in nanoseconds.
const FIRST_BUCKET_NS: u64 = 100;
/// Each bucket of the report ends so many times later than the one before: ten a decade.
const BUCKET_GROWTH: f64 = 1.258_925_411_794_167_2;

/// How round trips are distributed, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The shortest.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// Half are not longer.
    pub p50: f64,
    /// 90 % are not longer.
    pub p90: f64,
    /// 99 % are not longer.
    pub p99: f64,
    /// 99.9 % are not longer.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

/// How many round trips took so long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Upper end in microseconds; the lower one is that of the bucket before.
    pub up_to_us: f64,
    /// How many.
    pub count: u64,
}

/// Records times.
#[derive(Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    /// Nothing yet.
    ///
    /// # Errors
    /// `Host` when there is no memory for it.
    pub(crate) fn new() -> Result<Self, Error> {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, DIGITS);
        histogram.map(Self).map_err(|error| Error::Host(format!("no histogram: {error}")))
    }

    /// Records one time.
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(MAX_NS).max(1));
    }

    /// How many were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn summary(&self) -> RoundTrip {
        let at = |quantile: f64| us(self.0.value_at_quantile(quantile));
        RoundTrip {
            min: us(self.0.min()),
            mean: self.0.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: us(self.0.max()),
        }
    }

    /// Buckets that grow evenly on a logarithmic scale, without the empty ones.
    pub(crate) fn buckets(&self) -> Vec<Bucket> {
        let all = self.0.iter_log(FIRST_BUCKET_NS, BUCKET_GROWTH).map(|step| Bucket {
            up_to_us: us(step.value_iterated_to()),
            count: step.count_since_last_iteration(),
        });
        all.filter(|bucket| bucket.count > 0).collect()
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_buckets_hold_every_time() {
        let mut times = Times::new().unwrap();
        for us in 1..=1000 {
            times.add(Duration::from_micros(us));
        }
        let RoundTrip { min, p50, p99, max, .. } = times.summary();
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.002;
        assert!(near(min, 1.0) && near(p50, 500.0) && near(p99, 990.0) && near(max, 1000.0));
        let buckets = times.buckets();
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1000);
        assert!(buckets.is_sorted_by(|a, b| a.up_to_us < b.up_to_us), "{buckets:?}");
    }

    #[test]
    fn what_is_longer_than_a_minute_still_counts() {
        let mut times = Times::new().unwrap();
        times.add(Duration::from_secs(3600));
        assert!(times.count() == 1 && times.summary().max >= 5e7);
    }
}
