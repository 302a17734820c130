//! Merges the events of streams of events.

use super::placed::Placed;
use super::{MergeError, sizes, times, times_with};
use results::{HistogramSummary, LoadResult, StreamEvents};

/// Merges a distribution in which requests without it rank above all others; `None` if no result has it. In a result without it
/// no stream began, so that all its requests without a response may have been for one.
pub(super) fn times_of_requests(
    placed: &[Placed],
    field: &str,
    distribution: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> Result<Option<HistogramSummary>, MergeError> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    if results().all(|result| distribution(result).is_none()) {
        return Ok(None);
    }
    let without = results().filter(|result| distribution(result).is_none());
    let unanswered = without.map(|result| result.response_time_us.censored).fold(0, u64::saturating_add);
    times_with(placed, field, distribution, unanswered).map(Some)
}

/// Merges the times between events; `None` if no result has any.
pub(super) fn gaps(placed: &[Placed]) -> Result<Option<HistogramSummary>, MergeError> {
    let is_in_any = placed.iter().any(|placed| placed.part.result.event_gap_us.is_some());
    is_in_any.then(|| times(placed, "event_gap_us", |result| result.event_gap_us.as_ref())).transpose()
}

/// Adds the counts of events; `None` if no result has any.
pub(super) fn counts<'a>(results: impl Iterator<Item = &'a LoadResult>) -> Option<StreamEvents> {
    let parts: Vec<&StreamEvents> = results.filter_map(|result| result.events.as_ref()).collect();
    let total = |count: fn(&StreamEvents) -> u64| {
        parts.iter().map(|events| count(events)).fold(0, u64::saturating_add)
    };
    (!parts.is_empty()).then(|| StreamEvents {
        received: total(|events| events.received),
        per_response: sizes(parts.iter().map(|events| &events.per_response)),
        empty: total(|events| events.empty),
        read_together: total(|events| events.read_together),
        read_together_within_us: parts
            .iter()
            .map(|events| events.read_together_within_us)
            .fold(0.0, f64::max),
    })
}
