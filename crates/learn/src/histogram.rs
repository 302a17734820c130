//! Histograms with cumulative buckets, as Prometheus exports them.

use crate::parties::TooMuch;

/// Maximum number of buckets; Istio's histograms have 20.
const MAX_BUCKETS: usize = 64;

/// Maximum number of buckets of histograms together.
const MAX_MERGED_BUCKETS: usize = 1024;

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

    /// Adds all values of another histogram. Counts are cumulative: a bound that one of them lacks has the count of the one
    /// below.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut bounds: Vec<f64> =
            self.buckets.iter().chain(&other.buckets).map(|(bound, _)| *bound).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        if bounds.len() <= MAX_MERGED_BUCKETS {
            let both = |bound: f64| (bound, self.up_to(bound) + other.up_to(bound));
            self.buckets = bounds.into_iter().map(both).collect();
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    fn up_to(&self, bound: f64) -> f64 {
        let below = self.buckets.partition_point(|(own, _)| own.total_cmp(&bound).is_le());
        below.checked_sub(1).map_or(0.0, |last| self.buckets[last].1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_with_other_bounds_add_up() {
        let of = |buckets: &[(f64, f64)]| Histogram { buckets: buckets.to_vec(), ..Histogram::default() };
        let mut one = of(&[(1.0, 0.0), (2.0, 5.0), (8.0, 6.0)]);
        one.merge(&of(&[(2.0, 1.0), (4.0, 3.0)]));
        assert_eq!(one.buckets, [(1.0, 0.0), (2.0, 6.0), (4.0, 8.0), (8.0, 9.0)]);
    }
}
