//! Histograms with cumulative buckets, as Prometheus exports them.

use crate::telemetry::TooMuch;

/// Maximum number of buckets; Istio's histograms have 20.
const MAX_BUCKETS: usize = 64;

/// Counts by upper bound of the bucket, and the sum of all values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, ascending, with the number of values up to each.
    pub(crate) buckets: Vec<(f64, f64)>,
    /// Sum of all values.
    pub sum: f64,
    /// Number of values that `sum` covers.
    pub count: f64,
}

/// A bucket: values above `low`, up to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Lower bound, excluded; 0 in the first bucket.
    pub low: f64,
    /// Upper bound; infinite in the last bucket.
    pub high: f64,
    /// Number of values.
    pub count: f64,
}

impl Histogram {
    /// Adds to the number of values up to a bound.
    pub(crate) fn add(&mut self, bound: f64, count: f64) -> Result<(), TooMuch> {
        match self.buckets.binary_search_by(|(own, _)| own.total_cmp(&bound)) {
            Ok(at) => self.buckets[at].1 += count,
            Err(_) if self.buckets.len() >= MAX_BUCKETS => return Err(TooMuch::Buckets),
            Err(at) => self.buckets.insert(at, (bound, count)),
        }
        Ok(())
    }

    /// Adds all values of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (bound, count) in &other.buckets {
            // Bounds beyond the limit are those of a second kind of proxy: the sum still has their values.
            let _ = self.add(*bound, *count);
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Buckets with at least one value. A cumulative count below an earlier one adds none.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let (mut below, mut low, mut buckets) = (0.0_f64, 0.0, Vec::new());
        for (high, cumulative) in &self.buckets {
            if *cumulative > below {
                buckets.push(Bucket { low, high: *high, count: cumulative - below });
                below = *cumulative;
            }
            low = *high;
        }
        buckets
    }

    /// Mean: of the sum, or of the buckets' middles if there is no sum. `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        if self.count > 0.0 && self.sum >= 0.0 {
            return Some(self.sum / self.count);
        }
        let buckets = self.buckets();
        let total: f64 = buckets.iter().map(|bucket| bucket.count).sum();
        let sum: f64 = buckets.iter().map(|bucket| bucket.count * bucket.middle()).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// Number of values.
    #[must_use]
    pub fn values(&self) -> f64 {
        self.count.max(self.buckets.last().map_or(0.0, |(_, count)| *count))
    }
}

impl Bucket {
    fn middle(&self) -> f64 {
        if self.high.is_finite() { f64::midpoint(self.low, self.high) } else { self.low }
    }
}
