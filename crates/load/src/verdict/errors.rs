//! Checks whether so many requests failed that the times describe the errors.

use results::{Figure, Figures, LoadResult, RequestCounts, Verdict};

/// With more than this fraction of failed requests, latency describes the errors, not the service.
const ERROR_FRACTION: f64 = 0.01;
/// Number of error kinds named in a verdict.
const ERRORS_NAMED: usize = 3;

/// Few errors become a note, many a reason; the most frequent ones are named.
pub(super) fn check(result: &LoadResult, verdict: &mut Verdict) {
    let fraction = result.requests.error_fraction();
    if fraction <= 0.0 {
        return;
    }
    let which = most_frequent_errors(&result.requests).join(", ");
    let text = |share: String| {
        format!("errors: {share} % of the requests failed or were answered with an error ({which})")
    };
    if fraction > ERROR_FRACTION {
        let per_request = [Figure::Throughput, Figure::Cpu, Figure::Network].into_iter().collect();
        verdict.spoil(text(format!("{:.2}", fraction * 100.0)), Figures::times().union(per_request));
    } else {
        verdict.notes.push(text(format!("{:.3}", fraction * 100.0)));
    }
}

/// The most frequent error kinds and statuses, each with its count.
fn most_frequent_errors(requests: &RequestCounts) -> Vec<String> {
    let kinds = requests.errors.iter().map(|(kind, count)| (kind.clone(), *count));
    let statuses = requests.error_statuses_by_name();
    let mut all: Vec<(String, u64)> = kinds.chain(statuses).filter(|(_, count)| *count > 0).collect();
    all.sort_by(|(name, count), (other, others)| others.cmp(count).then_with(|| name.cmp(other)));
    all.truncate(ERRORS_NAMED);
    all.into_iter().map(|(name, count)| format!("{name}: {count}")).collect()
}
