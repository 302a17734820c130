//! Histograms for other programs: in nanoseconds, as steps of the percentile distribution, counted by bounds.

use super::LatencyHistogram;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::iterators::HistogramIterator;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

/// Steps of the percentile distribution per halving of the distance to 100 %: the default of the HdrHistogram
/// tools.
const TICKS_PER_HALF: u32 = 5;
/// Nanoseconds per microsecond.
const NS_IN_US: u64 = 1000;

/// Writes latency histograms as HdrHistograms in nanoseconds, the unit that the HdrHistogram log tools
/// expect.
///
/// Reused between histograms, since each needs a working buffer of some 320 KB.
pub struct NanosecondEncoder {
    values_ns: Histogram<u64>,
    serializer: V2DeflateSerializer,
}

/// An encoded histogram and its maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedNanoseconds {
    /// V2 compressed encoding in base64.
    pub histogram: String,
    /// Maximum in nanoseconds; 0 if the histogram is empty.
    pub max_ns: u64,
}

impl Default for NanosecondEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl NanosecondEncoder {
    /// An encoder that can be reused.
    #[must_use]
    pub fn new() -> Self {
        let values_ns = Histogram::new_with_bounds(1, super::MAX_US * NS_IN_US, super::SIGNIFICANT_DIGITS)
            .expect("bounds are constants in range");
        Self { values_ns, serializer: V2DeflateSerializer::new() }
    }

    /// The histogram in nanoseconds: the same counts, each value within 0.1 % of the original.
    pub fn encode(&mut self, histogram: &LatencyHistogram) -> EncodedNanoseconds {
        self.values_ns.reset();
        for bucket in histogram.values_us.iter_recorded() {
            self.values_ns
                .saturating_record_n(bucket.value_iterated_to() * NS_IN_US, bucket.count_at_value());
        }
        let mut bytes = Vec::new();
        self.serializer.serialize(&self.values_ns, &mut bytes).expect("writing to memory does not fail");
        let max_ns = if self.values_ns.is_empty() { 0 } else { self.values_ns.max() };
        EncodedNanoseconds { histogram: STANDARD.encode(bytes), max_ns }
    }
}

/// A step of a percentile distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileStep {
    /// The value at this percentile in microseconds.
    pub value_us: f64,
    /// The fraction of values up to it, 0 to 1.
    pub quantile: f64,
    /// Number of values up to it.
    pub count: u64,
}

/// Values of one histogram bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedValue {
    /// Upper end of the bucket in microseconds. Its values are at most 0.1 % below it.
    pub value_us: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

impl LatencyHistogram {
    /// The percentile distribution in steps that repeatedly halve the distance to 100 %, ending at 100 %;
    /// empty if the histogram is.
    #[must_use]
    pub fn percentile_steps(&self) -> Vec<PercentileStep> {
        if self.values_us.is_empty() {
            return Vec::new();
        }
        let mut count = 0;
        let steps = self.values_us.iter_quantiles(TICKS_PER_HALF).map(|step| {
            count += step.count_since_last_iteration();
            PercentileStep {
                value_us: step.value_iterated_to() as f64,
                quantile: step.quantile_iterated_to(),
                count,
            }
        });
        steps.collect()
    }

    /// Each recorded value, in ascending order.
    pub fn recorded(&self) -> impl Iterator<Item = RecordedValue> + '_ {
        let recorded: HistogramIterator<'_, u64, _> = self.values_us.iter_recorded();
        recorded.map(|bucket| RecordedValue {
            value_us: bucket.value_iterated_to(),
            count: bucket.count_at_value(),
        })
    }

    /// Standard deviation in microseconds; 0 if the histogram is empty.
    #[must_use]
    pub fn stddev_us(&self) -> f64 {
        self.values_us.stdev()
    }

    /// Buckets of the HdrHistogram, each twice as wide as the one before.
    #[must_use]
    pub fn buckets(&self) -> u8 {
        self.values_us.buckets()
    }

    /// Linear steps per bucket: HdrHistogram uses the smallest power of two that is at least 2 · 10^digits.
    #[must_use]
    pub fn sub_buckets(&self) -> u32 {
        (2 * 10_u32.pow(u32::from(super::SIGNIFICANT_DIGITS))).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use std::time::Duration;

    fn histogram(values_us: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for us in values_us {
            histogram.record(Duration::from_micros(us));
        }
        histogram
    }

    #[test]
    fn nanosecond_histogram_keeps_counts_and_scales_values() {
        let mut encoder = NanosecondEncoder::new();
        // An earlier encoding leaves no trace.
        encoder.encode(&histogram([5_000_000]));
        let encoded = encoder.encode(&histogram(1..=10_000));
        let bytes = STANDARD.decode(encoded.histogram).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(read.len(), 10_000);
        assert_eq!(read.max(), encoded.max_ns);
        for (percentile, expected_ns) in [(50.0, 5e6), (99.0, 9.9e6), (100.0, 1e7)] {
            let read_ns = read.value_at_percentile(percentile) as f64;
            assert!((read_ns / expected_ns - 1.0).abs() < 0.002, "p{percentile}: {read_ns}");
        }
        assert_eq!(encoder.encode(&histogram([])).max_ns, 0);
    }

    #[test]
    fn percentile_steps_end_at_100_percent() {
        let steps = histogram(1..=1000).percentile_steps();
        let last = steps.last().unwrap();
        assert_eq!((last.quantile, last.count, last.value_us), (1.0, 1000, 1000.0));
        assert!(steps.is_sorted_by(|one, next| one.quantile <= next.quantile && one.count <= next.count));
        let median = steps.iter().find(|step| step.quantile == 0.5).unwrap();
        assert_eq!((median.value_us, median.count), (500.0, 500));
        assert!(histogram([]).percentile_steps().is_empty());
    }

    #[test]
    fn recorded_values_are_ascending() {
        let values: Vec<_> =
            histogram([7, 3, 7]).recorded().map(|value| (value.value_us, value.count)).collect();
        assert_eq!(values, [(3, 1), (7, 2)]);
    }
}
