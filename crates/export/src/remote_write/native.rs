//! Native histograms: exponential buckets as spans and deltas.

use super::STALE;
use super::messages::{BucketSpan, Count, Histogram, ZeroCount};
use crate::distribution::Distribution;
use std::collections::BTreeMap;

/// Half of the time resolution: only zero is below.
const ZERO_THRESHOLD_S: f64 = 0.5e-6;

/// Encodes a distribution; the message that contains it sets the timestamps.
pub(super) fn histogram(distribution: &Distribution) -> Histogram {
    let exponential = distribution.exponential();
    let (positive_spans, positive_deltas) = spans(&exponential.buckets);
    Histogram {
        count: Some(Count::Int(distribution.count())),
        sum: distribution.sum_s(),
        schema: exponential.schema,
        zero_threshold: ZERO_THRESHOLD_S,
        zero_count: Some(ZeroCount::Int(exponential.zero)),
        positive_spans,
        positive_deltas,
        timestamp: 0,
        start_timestamp: 0,
    }
}

/// The histogram that ends a series of native histograms.
pub(super) fn ended() -> Histogram {
    Histogram { sum: STALE, count: Some(Count::Int(0)), ..Histogram::default() }
}

/// Runs of buckets, and each count as the difference from the previous one.
fn spans(buckets: &BTreeMap<i32, u64>) -> (Vec<BucketSpan>, Vec<i64>) {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut deltas = Vec::with_capacity(buckets.len());
    let (mut next, mut before) = (0, 0);
    for (bucket, count) in buckets {
        match spans.last_mut() {
            Some(span) if *bucket == next => span.length += 1,
            _ => spans.push(BucketSpan { offset: bucket - next, length: 1 }),
        }
        next = bucket + 1;
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.push(count - before);
        before = count;
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_encode_positions_and_deltas_encode_counts() {
        let buckets = BTreeMap::from([(-3, 5), (-2, 7), (4, 1), (5, 1)]);
        let (spans, deltas) = spans(&buckets);
        let places: Vec<(i32, u32)> = spans.iter().map(|span| (span.offset, span.length)).collect();
        // From -1, one after the first span's end, to 4.
        assert_eq!(places, [(-3, 2), (5, 2)]);
        assert_eq!(deltas, [5, 2, -6, 0]);
    }
}
