//! Streams of events of a cell: the times to their first events and between events, and their number.

use super::comparison::added_streams;
use super::tables::{Subject, Tables};
use crate::trials::usable;
use results::{CellKey, Clock, Estimates, Figure, ModeComparison, StreamSummary, TrialRecord};

/// Estimates of a cell's streams; `None` if no response was one.
pub(super) fn streams(
    key: CellKey<'_>,
    trials: &[&TrialRecord],
    tables: &Tables<'_>,
    comparisons: &[ModeComparison],
) -> Option<StreamSummary> {
    let gaps = |trial: &&TrialRecord| Clock::EventGap.of(trial).map_or(0, |gaps| gaps.count);
    let fewest = usable(trials, Figure::P99).iter().map(gaps).min().unwrap_or(0);
    let has_any = trials.iter().any(|trial| trial.events_per_s().is_some());
    has_any.then(|| StreamSummary {
        first_byte_us: tables.percentiles(key, Clock::FirstByte),
        first_event_us: tables.percentiles(key, Clock::FirstEvent),
        event_gap_us: tables.percentiles(key, Clock::EventGap),
        gaps_beyond_p99: fewest / 100,
        added: added_streams(key.mode, key.conditions, comparisons),
        estimates: Estimates::read(StreamSummary::METRICS, |metric| tables.mean(Subject::Path, metric, key)),
    })
}
