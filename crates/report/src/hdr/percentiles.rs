//! The percentile distribution as text, in the format of HdrHistogram's `outputPercentileDistribution`.

use super::censored_comment;
use results::LatencyHistogram;
use std::fmt::Write as _;

/// Microseconds per millisecond.
const US_IN_MS: f64 = 1000.0;

/// The distribution in milliseconds, as the HdrHistogram plotter reads it. Requests without a response
/// (`censored`) are recorded at the maximum, with a comment.
#[must_use]
pub fn percentile_text(histogram: &LatencyHistogram, censored: u64) -> String {
    if censored > 0 {
        return percentile_text(&histogram.with_censored(censored), 0) + &censored_comment(censored);
    }
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for step in histogram.percentile_steps() {
        let value_ms = step.value_us / US_IN_MS;
        let _ = write!(text, "{value_ms:12.3} {:2.12} {:10}", step.quantile, step.count);
        // There is nothing beyond the last value.
        if step.quantile < 1.0 {
            let _ = write!(text, " {:14.2}", 1.0 / (1.0 - step.quantile));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.mean_us() / US_IN_MS,
        histogram.stddev_us() / US_IN_MS,
        histogram.max_us() / US_IN_MS,
        histogram.count(),
        histogram.buckets(),
        histogram.sub_buckets()
    );
    text
}
