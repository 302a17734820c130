//! Latency histograms: 1 µs to over an hour, 3 significant digits, merged without loss.
//!
//! A thin layer over HdrHistogram that fixes unit and range and knows the result schema. Values beyond the range are
//! recorded as the greatest value: counted, never lost.

mod interchange;

pub use interchange::{EncodedNanoseconds, NanosecondEncoder, PercentileStep, RecordedValue};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::schema::HistogramSummary;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::time::Duration;

/// Greatest value that is told apart: two hours, above the longest run whose response times may be that long.
const MAX_US: u64 = 2 * 3600 * 1_000_000;
/// HdrHistogram's precision: 3 significant decimal digits.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of durations with a resolution of 1 µs.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    values_us: Histogram<u64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram. Takes about 200 KB.
    #[must_use]
    pub fn new() -> Self {
        let values_us =
            Histogram::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS).expect("bounds are constants in range");
        Self { values_us }
    }

    /// Records a duration, rounded to the nearest microsecond.
    pub fn record(&mut self, duration: Duration) {
        self.record_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records a duration in nanoseconds, rounded to the nearest microsecond.
    pub fn record_ns(&mut self, duration_ns: u64) {
        self.values_us.saturating_record(duration_ns.saturating_add(500) / 1000);
    }

    /// Adds every value of the other.
    pub fn merge(&mut self, other: &Self) {
        self.values_us.add(&other.values_us).expect("all latency histograms have the same range");
    }

    /// Takes away the values of an earlier state of this histogram. Absent: the other has values that this one lacks.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Option<Self> {
        self.values_us.subtract(&earlier.values_us).ok()?;
        Some(self)
    }

    /// Forgets every value, keeps the memory.
    pub fn clear(&mut self) {
        self.values_us.reset();
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.values_us.len()
    }

    /// The value at a percentile (0 to 100), microseconds; 0 where the histogram is empty.
    #[must_use]
    pub fn percentile_us(&self, percentile: f64) -> f64 {
        self.values_us.value_at_percentile(percentile) as f64
    }

    /// Mean, microseconds; 0 where the histogram is empty.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.values_us.mean()
    }

    /// Greatest value, microseconds; 0 where the histogram is empty.
    #[must_use]
    pub fn max_us(&self) -> f64 {
        if self.values_us.is_empty() { 0.0 } else { self.values_us.max() as f64 }
    }

    /// The distribution as the result schema has it.
    #[must_use]
    pub fn summary(&self) -> HistogramSummary {
        let empty = self.values_us.is_empty();
        HistogramSummary {
            count: self.count(),
            min: if empty { 0.0 } else { self.values_us.min() as f64 },
            censored: 0,
            mean: Some(self.mean_us()),
            stddev: Some(self.values_us.stdev()),
            max: Some(self.max_us()),
            p50: Some(self.percentile_us(50.0)),
            p75: Some(self.percentile_us(75.0)),
            p90: Some(self.percentile_us(90.0)),
            p95: Some(self.percentile_us(95.0)),
            p99: Some(self.percentile_us(99.0)),
            p99_9: Some(self.percentile_us(99.9)),
            p99_99: Some(self.percentile_us(99.99)),
            histogram: self.encode(),
        }
    }

    /// V2 compressed encoding in base64, as the HdrHistogram tools read it.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.values_us, &mut bytes)
            .expect("writing to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Self::encode`] wrote, or any HdrHistogram in microseconds.
    ///
    /// # Errors
    /// Where the text is not base64 or not an HdrHistogram.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|error| DecodeError(error.to_string()))?;
        let values: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| DecodeError(error.to_string()))?;
        let mut histogram = Self::new();
        for bucket in values.iter_recorded() {
            histogram.values_us.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        Ok(histogram)
    }
}

/// Text that is no histogram.
#[derive(Debug, thiserror::Error)]
#[error("not an HdrHistogram: {0}")]
pub struct DecodeError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_three_digits() {
        let mut histogram = LatencyHistogram::new();
        for us in 1..=100_000 {
            histogram.record(Duration::from_micros(us));
        }
        for (percentile, expected_us) in [(50.0, 50_000.0), (99.0, 99_000.0), (99.9, 99_900.0)] {
            let measured_us = histogram.percentile_us(percentile);
            assert!((measured_us / expected_us - 1.0).abs() < 0.001, "p{percentile} reads {measured_us}");
        }
    }

    #[test]
    fn merging_loses_nothing_and_survives_encoding() {
        let (mut one, mut other) = (LatencyHistogram::new(), LatencyHistogram::new());
        for us in [0, 3, 90, 1500] {
            one.record(Duration::from_micros(us));
        }
        other.record(Duration::from_secs(3600));
        other.record(Duration::from_secs(86_400 * 365));
        one.merge(&other);
        let read_back = LatencyHistogram::decode(&one.encode()).unwrap();
        assert_eq!(read_back.count(), 6);
        for percentile in [0.0, 25.0, 50.0, 75.0, 100.0] {
            assert_eq!(read_back.percentile_us(percentile), one.percentile_us(percentile));
        }
        assert!(one.max_us() >= 3.6e9, "an hour and more fits: {}", one.max_us());
    }

    #[test]
    fn earlier_values_are_taken_away() {
        let mut earlier = LatencyHistogram::new();
        earlier.record(Duration::from_millis(900));
        let mut now = earlier.clone();
        now.record(Duration::from_millis(3));
        let since = now.clone().since(&earlier).unwrap();
        assert_eq!(since.count(), 1);
        assert!((2990.0..3010.0).contains(&since.max_us()), "{}", since.max_us());
        assert!(earlier.since(&now).is_none());
    }

    #[test]
    fn text_that_is_no_histogram_is_an_error() {
        for text in ["", "?", "aGVsbG8=", &STANDARD.encode([0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 9, 1, 2, 3])] {
            assert!(LatencyHistogram::decode(text).is_err(), "{text:?}");
        }
    }
}
