//! Distributions as cumulative counts: in classic Prometheus buckets, and in exponential ones (native
//! histograms).

use results::LatencyHistogram;
use std::collections::BTreeMap;

/// Upper bounds of the classic buckets in microseconds: 50 µs to 10 s.
const BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// Microseconds per second.
const US_IN_S: f64 = 1e6;
/// Finest schema of native histograms: each bucket is 2^(1/256) wide, or 0.27 %.
const FINEST_SCHEMA: i32 = 8;
/// With more buckets than this, neighbours are merged pairwise: each bucket of each second is stored.
const MAX_BUCKETS: usize = 1024;

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Counts per bucket, not cumulative. Values above the last bound are only in `count`.
    classic: [u64; BOUNDS_US.len()],
    exponential: Exponential,
    count: u64,
    without_response: u64,
    sum_us: f64,
}

/// Counts by exponential bucket. Bucket `i` holds values above 2^((i-1)/2^schema) seconds, up to
/// 2^(i/2^schema) seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    /// Schema of native histograms: a higher one has a finer resolution.
    pub schema: i32,
    /// Number of zero values.
    pub zero: u64,
    /// Counts of the non-empty buckets.
    pub buckets: BTreeMap<i32, u64>,
}

impl Default for Exponential {
    fn default() -> Self {
        Self { schema: FINEST_SCHEMA, zero: 0, buckets: BTreeMap::new() }
    }
}

impl Distribution {
    /// Adds every value of a histogram.
    pub fn add(&mut self, histogram: &LatencyHistogram) {
        for value in histogram.recorded() {
            self.count += value.count;
            let bucket = BOUNDS_US.partition_point(|bound| *bound < value.value_us);
            if let Some(bucket) = self.classic.get_mut(bucket) {
                *bucket += value.count;
            }
            self.exponential.add(value.value_us, value.count);
        }
        self.sum_us += histogram.mean_us() * histogram.count() as f64;
    }

    /// Adds requests without a response, which count above every bound. The sum does not include them.
    pub fn add_without_response(&mut self, requests: u64) {
        self.count += requests;
        self.without_response += requests;
    }

    /// Upper bounds of the classic buckets in seconds, without the last bucket, which is unbounded.
    pub fn bounds_s() -> impl Iterator<Item = f64> {
        BOUNDS_US.iter().map(|bound_us| *bound_us as f64 / US_IN_S)
    }

    /// Counts of the classic buckets, not cumulative, including the values above the last bound.
    pub fn classic(&self) -> impl Iterator<Item = u64> {
        let within: u64 = self.classic.iter().sum();
        self.classic.into_iter().chain([self.count - within])
    }

    /// Upper bounds with cumulative counts, without the last bucket, whose count is [`Self::count`].
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut cumulative = 0;
        Self::bounds_s().zip(self.classic).map(move |(bound_s, count)| {
            cumulative += count;
            (bound_s, cumulative)
        })
    }

    /// Counts in exponential buckets. Requests without a response are in the bucket of infinite values.
    #[must_use]
    pub fn exponential(&self) -> Exponential {
        let mut all = self.exponential.clone();
        if self.without_response > 0 {
            all.buckets.insert(infinite_bucket(all.schema), self.without_response);
        }
        all
    }

    /// Number of values, including requests without a response.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values in seconds, excluding requests without a response.
    #[must_use]
    pub fn sum_s(&self) -> f64 {
        self.sum_us / US_IN_S
    }
}

impl Exponential {
    fn add(&mut self, value_us: u64, count: u64) {
        if value_us == 0 {
            self.zero += count;
            return;
        }
        let bucket = ((value_us as f64 / US_IN_S).log2() * f64::from(1 << self.schema)).ceil() as i32;
        *self.buckets.entry(bucket).or_default() += count;
        while self.buckets.len() > MAX_BUCKETS && self.schema > 0 {
            self.halve();
        }
    }

    /// Merges pairs of buckets, which halves the resolution.
    fn halve(&mut self) {
        let mut buckets = BTreeMap::new();
        for (bucket, count) in std::mem::take(&mut self.buckets) {
            // Rounds up: the upper one of two neighbours has the even index.
            *buckets.entry((bucket + 1).div_euclid(2)).or_default() += count;
        }
        self.buckets = buckets;
        self.schema -= 1;
    }
}

/// The bucket of infinite values: the one after the bucket that ends at the largest float.
fn infinite_bucket(schema: i32) -> i32 {
    (f64::MAX_EXP << schema) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn distribution(values_us: impl IntoIterator<Item = u64>) -> Distribution {
        let mut histogram = LatencyHistogram::new();
        values_us.into_iter().for_each(|us| histogram.record(Duration::from_micros(us)));
        let mut distribution = Distribution::default();
        distribution.add(&histogram);
        distribution
    }

    /// Bounds of a bucket in seconds: exclusive and inclusive.
    fn bounds_s(exponential: &Exponential, bucket: i32) -> (f64, f64) {
        let bound = |bucket: i32| (f64::from(bucket) / f64::from(1 << exponential.schema)).exp2();
        (bound(bucket - 1), bound(bucket))
    }

    #[test]
    fn exponential_buckets_contain_their_values() {
        for us in [1, 49, 50, 999, 1000, 123_456, 7_200_000_000] {
            let exponential = distribution([us]).exponential();
            let (bucket, count) = exponential.buckets.first_key_value().unwrap();
            let (above, up_to) = bounds_s(&exponential, *bucket);
            // The histogram itself has 3 significant digits.
            let value_s = us as f64 / 1e6;
            assert!(
                above < value_s * 1.001 && value_s <= up_to * 1.001 && *count == 1,
                "{us} µs in {bucket}"
            );
        }
        let zero = distribution([0]).exponential();
        assert_eq!((zero.zero, zero.buckets.len()), (1, 0));
    }

    #[test]
    fn many_buckets_are_merged_without_loss() {
        let all = distribution((0..200_000).map(|step| 1 + step * 37)).exponential();
        assert!(all.buckets.len() <= MAX_BUCKETS && all.schema < FINEST_SCHEMA, "{}", all.buckets.len());
        assert_eq!(all.zero + all.buckets.values().sum::<u64>(), 200_000);
        let middle_s = 100_000.0 * 37.0 / 1e6;
        let up_to_middle: u64 = all
            .buckets
            .iter()
            .filter(|(bucket, _)| bounds_s(&all, **bucket).1 <= middle_s)
            .map(|(_, count)| count)
            .sum();
        assert!((95_000..=100_100).contains(&up_to_middle), "{up_to_middle}");
    }

    #[test]
    fn requests_without_response_are_above_every_bound() {
        let mut distribution = distribution([100, 20_000_000]);
        distribution.add_without_response(3);
        assert_eq!((distribution.count(), distribution.classic().last()), (5, Some(4)));
        let exponential = distribution.exponential();
        let (last, count) = exponential.buckets.last_key_value().unwrap();
        assert_eq!((*last, *count), (1024 * 256 + 1, 3));
        assert!((distribution.sum_s() - 20.0001).abs() < 0.02, "{}", distribution.sum_s());
    }
}
