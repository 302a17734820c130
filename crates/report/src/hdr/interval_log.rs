//! The HdrHistogram interval log, format 1.3: one line per interval, with its histogram.

use super::censored_comment;
use results::{LatencyHistogram, LoadResult, NanosecondEncoder};
use std::fmt::Write as _;

/// Nanoseconds per millisecond: the maximum of an interval is written in milliseconds.
const NS_IN_MS: f64 = 1e6;

/// Writes the lines of a log.
pub struct IntervalLog {
    encoder: NanosecondEncoder,
}

impl Default for IntervalLog {
    fn default() -> Self {
        Self::new()
    }
}

impl IntervalLog {
    /// A log without any lines yet.
    #[must_use]
    pub fn new() -> Self {
        Self { encoder: NanosecondEncoder::new() }
    }

    /// The lines before the first interval. Times of intervals are relative to `started_at`.
    #[must_use]
    pub fn header(&self, started_at: jiff::Timestamp) -> String {
        let start_s = started_at.as_duration().as_secs_f64();
        format!(
            "#[meshmeter {version}: response time, from when a request was due to the end of its response]\n\
             #[Tag=service-time: from when it was sent; Tag=schedule-lag: from when it was due to when it was sent]\n\
             #[Values in nanoseconds, Interval_Max in milliseconds]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {start_s:.3} (seconds since epoch), {started_at}]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
            version = env!("CARGO_PKG_VERSION"),
        )
    }

    /// The line of one interval that began `start_s` seconds after the log's start. `tag`: `None` for the
    /// response time. `censored`: requests without a response; a comment before the line gives their number.
    pub fn interval(
        &mut self,
        tag: Option<&str>,
        start_s: f64,
        length_s: f64,
        histogram: &LatencyHistogram,
        censored: u64,
    ) -> String {
        if censored > 0 {
            let all = histogram.with_censored(censored);
            return censored_comment(censored) + &self.interval(tag, start_s, length_s, &all, 0);
        }
        let encoded = self.encoder.encode(histogram);
        let mut line = String::with_capacity(encoded.histogram.len() + 64);
        if let Some(tag) = tag {
            let _ = write!(line, "Tag={tag},");
        }
        let max_ms = encoded.max_ns as f64 / NS_IN_MS;
        let _ = writeln!(line, "{start_s:.3},{length_s:.3},{max_ms:.3},{}", encoded.histogram);
        line
    }

    /// The last interval: requests that were due but never sent, and belong to no earlier second. Empty if
    /// there are none.
    pub fn never_sent(&mut self, result: &LoadResult) -> String {
        let told: u64 = result.series.iter().map(|point| point.failed).sum();
        let rest = result.response_time_us.censored.saturating_sub(told);
        let end_s = result.series.last().map_or(0.0, |point| point.t_s + 1.0).max(result.duration_s);
        if rest == 0 {
            String::new()
        } else {
            self.interval(None, end_s, 1.0, &LatencyHistogram::new(), rest)
        }
    }
}
