//! Latency histograms: 1 µs to three days, 3 significant digits, merged without loss.
//!
//! A thin layer over HdrHistogram that fixes unit and range and knows the result schema. Values beyond the
//! range are recorded at the highest trackable value: counted, never lost.

mod interchange;

pub use interchange::{EncodedNanoseconds, NanosecondEncoder, PercentileStep, RecordedValue};

use crate::{HistogramSummary, MAX_COUNT};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::io::Read as _;
use std::time::Duration;

/// Highest trackable value: three days. No response time of a run is longer: a window, the sending of its backlog and a timeout
/// take a day at most each.
const MAX_US: u64 = 3 * 24 * 3600 * 1_000_000;
/// HdrHistogram's precision: 3 significant decimal digits.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Begins a compressed histogram (version 2); the length of what is compressed follows.
const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const COMPRESSED_HEAD_BYTES: usize = 8;
/// Encoding of the smallest number, which has no positive counterpart.
const SMALLEST_NUMBER: [u8; 9] = [u8::MAX; 9];
/// Maximum size of an encoded histogram. One with three significant digits takes less than a megabyte.
const MAX_ENCODED_BYTES: u64 = 16 << 20;

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
    /// An empty histogram. Takes about 240 KB.
    #[must_use]
    pub fn new() -> Self {
        let values_us =
            Histogram::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS).expect("bounds are constants in range");
        Self { values_us }
    }

    /// Records a duration, rounded to the nearest microsecond.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.record_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records a duration in nanoseconds, rounded to the nearest microsecond.
    #[inline]
    pub fn record_ns(&mut self, duration_ns: u64) {
        self.values_us.saturating_record(duration_ns.saturating_add(500) / 1000);
    }

    /// Records this many zeros.
    pub fn record_zeros(&mut self, count: u64) {
        self.values_us.saturating_record_n(0, count);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.values_us.add(&other.values_us).expect("all latency histograms have the same range");
    }

    /// Subtracts the values of an earlier state of this histogram. `None` if `earlier` has values that this
    /// one lacks.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Option<Self> {
        self.values_us.subtract(&earlier.values_us).ok()?;
        Some(self)
    }

    /// Clears all values but keeps the allocation.
    pub fn clear(&mut self) {
        self.values_us.reset();
    }

    /// Number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.values_us.len()
    }

    /// The value at a percentile (0 to 100) in microseconds; 0 if the histogram is empty.
    #[must_use]
    pub fn percentile_us(&self, percentile: f64) -> f64 {
        // The library takes its own rank, of a fraction that is not exact in binary.
        match percentile {
            0.0 => self.values_us.value_at_quantile(0.0) as f64,
            _ => self.at_rank(rank(self.count(), percentile / 100.0)),
        }
    }

    /// The value of a rank from 1 in microseconds; the greatest beyond the last, 0 if the histogram is empty.
    fn at_rank(&self, rank: u64) -> f64 {
        // HdrHistogram rounds up to whole ranks.
        let share = (rank as f64 - 0.5) / self.count().max(1) as f64;
        self.values_us.value_at_quantile(share) as f64
    }

    /// The value at a percentile among the recorded values and `censored` requests without a response, which
    /// rank above all of them. `None` if the percentile falls among the latter.
    #[must_use]
    pub fn percentile_with(&self, percentile: f64, censored: u64) -> Option<f64> {
        if censored == 0 {
            return Some(self.percentile_us(percentile));
        }
        let rank = rank(self.count().saturating_add(censored), percentile / 100.0);
        (rank <= self.count()).then(|| self.at_rank(rank))
    }

    /// A copy in which requests without a response are recorded at the highest trackable value.
    #[must_use]
    pub fn with_censored(&self, censored: u64) -> Self {
        let mut all = self.clone();
        all.values_us.saturating_record_n(MAX_US, censored);
        all
    }

    /// Mean in microseconds; 0 if the histogram is empty.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.values_us.mean()
    }

    /// Maximum in microseconds; 0 if the histogram is empty.
    #[must_use]
    pub fn max_us(&self) -> f64 {
        if self.values_us.is_empty() { 0.0 } else { self.values_us.max() as f64 }
    }

    /// The distribution in the form of the result schema.
    #[must_use]
    pub fn summary(&self) -> HistogramSummary {
        self.summary_with(0)
    }

    /// Like [`Self::summary`], with `censored` requests without a response, which rank above all values.
    #[must_use]
    pub fn summary_with(&self, censored: u64) -> HistogramSummary {
        let empty = self.values_us.is_empty();
        let of_values = |value: f64| (censored == 0).then_some(value);
        let percentile = |percentile| self.percentile_with(percentile, censored);
        HistogramSummary {
            count: self.count(),
            min: if empty { 0.0 } else { self.values_us.min() as f64 },
            censored,
            mean: of_values(self.mean_us()),
            stddev: of_values(self.values_us.stdev()),
            max: of_values(self.max_us()),
            p50: percentile(50.0),
            p75: percentile(75.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            p99_9: percentile(99.9),
            p99_99: percentile(99.99),
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

    /// Reads the output of [`Self::encode`], or any HdrHistogram in microseconds.
    ///
    /// # Errors
    /// Returns an error if the text is not base64 or not an HdrHistogram, or if its counts are beyond what a run can have:
    /// sums of counts must not overflow.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        Self::decode_units(text, 1)
    }

    /// Reads any HdrHistogram in nanoseconds.
    ///
    /// # Errors
    /// Returns an error as [`Self::decode`] does.
    pub fn decode_ns(text: &str) -> Result<Self, DecodeError> {
        Self::decode_units(text, 1000)
    }

    fn decode_units(text: &str, units_in_us: u64) -> Result<Self, DecodeError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|error| DecodeError(error.to_string()))?;
        let bytes = uncompressed(bytes)?;
        // The library takes as much memory as the payload says that it has.
        let payload_bytes =
            bytes[4.min(bytes.len())..].first_chunk().map_or(0, |length| u32::from_be_bytes(*length));
        if payload_bytes as usize > bytes.len() {
            return Err(DecodeError("it ends within its payload".to_owned()));
        }
        // The library negates it.
        if bytes.windows(SMALLEST_NUMBER.len()).any(|number| number == SMALLEST_NUMBER) {
            return Err(DecodeError("it has a number beyond any count".to_owned()));
        }
        let values: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| DecodeError(error.to_string()))?;
        let count =
            values.iter_recorded().try_fold(0_u64, |sum, bucket| sum.checked_add(bucket.count_at_value()));
        if count.is_none_or(|count| count > MAX_COUNT) {
            return Err(DecodeError("it has more values than any run".to_owned()));
        }
        let mut histogram = Self::new();
        for bucket in values.iter_recorded() {
            let value_us = bucket.value_iterated_to().saturating_add(units_in_us / 2) / units_in_us;
            histogram.values_us.saturating_record_n(value_us, bucket.count_at_value());
        }
        Ok(histogram)
    }
}

/// An encoded histogram without its compression.
fn uncompressed(bytes: Vec<u8>) -> Result<Vec<u8>, DecodeError> {
    let Some((head, stream)) = bytes.split_first_chunk::<COMPRESSED_HEAD_BYTES>() else { return Ok(bytes) };
    if !head.starts_with(&COMPRESSED_COOKIE) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(stream).take(MAX_ENCODED_BYTES).read_to_end(&mut plain);
    read.map_err(|error| DecodeError(error.to_string()))?;
    Ok(plain)
}

/// The text is not a histogram.
#[derive(Debug, thiserror::Error)]
#[error("not an HdrHistogram: {0}")]
pub struct DecodeError(String);

/// The rank of a quantile (0 to 1) among so many values, from 1: the one rule of every percentile here.
#[must_use]
pub fn rank(values: u64, quantile: f64) -> u64 {
    // Fractions are not exact in binary: 99.9 % of 10 000 is the 9990th.
    (values as f64 * quantile * (1.0 - 1e-12)).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_whole_where_the_percentile_is() {
        let ranks = [(10_000, 0.999), (1000, 0.99), (100, 0.5), (100, 1.0), (10_001, 0.999), (3, 0.0)];
        assert_eq!(ranks.map(|(values, quantile)| rank(values, quantile)), [9990, 990, 50, 100, 9991, 1]);
    }

    #[test]
    fn percentiles_are_of_the_same_rank_whether_all_requests_were_answered_or_not() {
        // All up to that rank take 1 ms, those beyond it 10 ms; the last has no response, or has one.
        for (values, p99_9) in [(1000, 999), (10_000, 9990), (100_000, 99_900)] {
            let mut histogram = LatencyHistogram::new();
            let time = |rank| Duration::from_millis(if rank <= p99_9 { 1 } else { 10 });
            (1..values).for_each(|rank| histogram.record(time(rank)));
            let censored = histogram.percentile_with(99.9, 1).expect("the last rank alone has no response");
            histogram.record(time(values));
            assert!((censored / 1000.0 - 1.0).abs() < 0.001, "p99.9 of {values} is {censored}");
            assert_eq!(histogram.percentile_us(99.9), censored, "{values}");
            assert_eq!(histogram.summary().p99_9, Some(censored), "{values}");
        }
        assert_eq!(LatencyHistogram::new().percentile_us(99.9), 0.0);
    }

    #[test]
    fn percentiles_are_exact_to_three_digits() {
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
    fn merge_is_lossless_and_survives_encoding() {
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
    fn claimed_payload_takes_no_memory() {
        let histogram = STANDARD.decode(LatencyHistogram::new().encode()).unwrap();
        let mut plain = uncompressed(histogram).unwrap();
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        let error = LatencyHistogram::decode(&STANDARD.encode(plain)).unwrap_err();
        assert_eq!(error.to_string(), "not an HdrHistogram: it ends within its payload");
    }

    #[test]
    fn since_subtracts_earlier_values() {
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
    fn decode_of_invalid_text_is_an_error() {
        for text in ["", "?", "aGVsbG8=", &STANDARD.encode([0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 9, 1, 2, 3])] {
            assert!(LatencyHistogram::decode(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn requests_without_a_response_rank_above_all_values() {
        // 40 of 5000 requests without a response: p99 is the 50th from the top, p99.9 the fifth.
        let mut answered = LatencyHistogram::new();
        (0..4960).for_each(|index| answered.record(Duration::from_micros(100 + index / 10)));
        let times = answered.summary_with(40);
        assert_eq!((times.count, times.censored), (4960, 40));
        assert_eq!(times.p99, Some(answered.percentile_us(100.0 * 4950.0 / 4960.0)));
        assert_eq!(
            (times.p99_9, times.p99_99, times.max, times.mean, times.stddev),
            (None, None, None, None, None)
        );
        // The median is over all 5000.
        assert_eq!(times.p50, Some(100.0 + 249.0));
        assert_eq!(LatencyHistogram::new().summary_with(3).p50, None);
        assert_eq!(LatencyHistogram::new().summary_with(0).p50, Some(0.0));
        let all = answered.with_censored(40);
        assert_eq!((all.count(), all.percentile_us(99.0)), (5000, times.p99.unwrap()));
        assert!(all.max_us() >= 7.2e9, "{}", all.max_us());
    }

    #[test]
    fn times_of_days_are_recorded_as_what_they_are() {
        for hours in [1, 3, 25, 71] {
            let mut histogram = LatencyHistogram::new();
            histogram.record(Duration::from_secs(hours * 3600));
            let ratio = histogram.max_us() / (hours as f64 * 3.6e9);
            assert!((ratio - 1.0).abs() < 0.001, "{hours} h: {ratio}");
            let times = histogram.summary();
            assert_eq!(LatencyHistogram::decode(&times.histogram).unwrap().max_us(), histogram.max_us());
        }
    }
}
