//! Requests without a response rank above all others, also in results of before they did.

use results::{HistogramSummary, LatencyHistogram, LoadResult, rank};

/// Requests of a result without a response: failed, or never sent. Results of before those were ranked in a closed loop have no
/// percentiles among them.
pub(crate) fn unanswered(result: &LoadResult) -> u64 {
    let never_sent = if result.rate.offered.is_some() { result.requests.unsent } else { 0 };
    result.response_time_us.censored.max(result.requests.failed.saturating_add(never_sent))
}

/// Ranks the requests without a response above all response times where an earlier version left them out, also in the parts of a
/// merged result. A result in which they are ranked stays as it is; verdicts stay in any.
pub fn rank_unanswered(result: &mut LoadResult) {
    let censored = unanswered(result);
    if result.response_time_us.censored < censored {
        let times = ranked(&result.response_time_us, censored);
        // How long they waited is not known: the order says that it was for longer than any answer took.
        result.censored_above_us = result.censored_above_us.or(result.response_time_us.max);
        result.response_time_us = times;
    }
    for part in result.merged.iter_mut().flat_map(|merged| &mut merged.parts) {
        if let Some(result) = &mut part.result {
            rank_unanswered(result);
            part.p99_us = result.response_time_us.p99;
        }
    }
}

fn ranked(times: &HistogramSummary, censored: u64) -> HistogramSummary {
    let histogram = LatencyHistogram::decode(&times.histogram).ok();
    match histogram.filter(|histogram| histogram.count() > 0) {
        Some(histogram) => {
            HistogramSummary { histogram: times.histogram.clone(), ..histogram.summary_with(censored) }
        }
        None => without_percentiles_above(times, censored),
    }
}

/// The same where the percentiles alone are known: those that do not fall among the unanswered are at least what they were.
fn without_percentiles_above(times: &HistogramSummary, censored: u64) -> HistogramSummary {
    let all = times.count.saturating_add(censored);
    let is_answered = |quantile: f64| rank(all, quantile) <= times.count;
    let kept = |value: Option<f64>, quantile: f64| value.filter(|_| is_answered(quantile));
    HistogramSummary {
        censored,
        mean: None,
        stddev: None,
        max: None,
        p50: kept(times.p50, 0.5),
        p75: kept(times.p75, 0.75),
        p90: kept(times.p90, 0.9),
        p95: kept(times.p95, 0.95),
        p99: kept(times.p99, 0.99),
        p99_9: kept(times.p99_9, 0.999),
        p99_99: kept(times.p99_99, 0.9999),
        ..times.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{MergedPart, MergedResults, Rates};
    use std::time::Duration;

    /// 40 of 5000 requests without a response, as results had it before these were ranked.
    fn earlier() -> LoadResult {
        let mut answered = LatencyHistogram::new();
        (0..4960).for_each(|index| answered.record(Duration::from_micros(1000 + index / 6)));
        let mut result = LoadResult { response_time_us: answered.summary(), ..LoadResult::default() };
        result.requests.failed = 40;
        result
    }

    #[test]
    fn failed_requests_of_an_earlier_result_rank_above_its_answers() {
        let before = earlier();
        let mut result = LoadResult {
            merged: Some(MergedResults {
                parts: vec![MergedPart { result: Some(Box::new(before.clone())), ..MergedPart::default() }],
                ..MergedResults::default()
            }),
            ..before.clone()
        };
        rank_unanswered(&mut result);
        let times = &result.response_time_us;
        assert_eq!((times.count, times.censored, times.p99_9, times.max), (4960, 40, None, None));
        // Of 5000 now and not of 4960: within one step of the histogram.
        let median = times.p50.zip(before.response_time_us.p50).map(|(now, before)| now - before);
        assert!(median.is_some_and(|moved| (0.0..=4.0).contains(&moved)), "{median:?}");
        assert_eq!(times.histogram, before.response_time_us.histogram);
        assert_eq!(result.censored_above_us, before.response_time_us.max);
        let part = result.merged.as_ref().and_then(|merged| merged.parts[0].result.as_ref()).unwrap();
        assert_eq!(part.response_time_us.p99_9, None);
        let again = result.clone();
        rank_unanswered(&mut result);
        assert_eq!(result, again, "what is ranked stays");
    }

    #[test]
    fn percentiles_alone_are_kept_where_their_rank_was_answered() {
        let mut result = earlier();
        result.response_time_us.histogram.clear();
        rank_unanswered(&mut result);
        let times = &result.response_time_us;
        assert_eq!((times.p50, times.p99), (earlier().response_time_us.p50, earlier().response_time_us.p99));
        assert_eq!((times.p99_9, times.p99_99, times.mean, times.max), (None, None, None, None));
    }

    #[test]
    fn requests_never_sent_count_in_an_open_loop_alone() {
        let censored = |offered: Option<f64>| {
            let mut result = earlier();
            (result.requests.failed, result.requests.unsent) = (0, 7);
            result.rate = Rates { offered, ..Rates::default() };
            rank_unanswered(&mut result);
            result.response_time_us.censored
        };
        assert_eq!((censored(Some(1000.0)), censored(None)), (7, 0));
    }
}
