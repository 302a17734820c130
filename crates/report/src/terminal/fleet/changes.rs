//! Convergence by kind of change.

use super::super::style::Options;
use super::super::tables::drawn_table;
use super::{NEVER, wrapped};
use crate::fleets::NOT_INCLUDED;
use crate::format::{self, TimeUnit};
use results::{FleetChange, FleetResult, HistogramSummary, LatencyHistogram};

/// Changes of one kind at one istiod.
struct Kind<'a> {
    name: &'a str,
    istiod: Option<usize>,
    made: u64,
    expected: u64,
    reached: u64,
    times: HistogramSummary,
}

pub(super) fn lines(result: &FleetResult, options: Options) -> Vec<String> {
    let kinds = kinds(&result.changes);
    if kinds.is_empty() {
        return Vec::new();
    }
    let times = kinds.iter().flat_map(|kind| [kind.times.p50, kind.times.p99]).flatten();
    let unit = TimeUnit::for_times(times);
    let header =
        [&format!("Convergence, {}", unit.symbol()), "changes", "p50", "p90", "p99", "last", "never"];
    let time = |time: Option<f64>| time.map_or_else(|| NEVER.to_owned(), |time| unit.number(time));
    let row = |kind: &Kind<'_>| {
        let times = &kind.times;
        let mut row = vec![name(kind, result), format::count(kind.made)];
        if times.requests() == 0 {
            row.extend(std::iter::repeat_n(format::ABSENT.to_owned(), 4));
        } else {
            row.extend([times.p50, times.p90, times.p99, times.max].map(time));
        }
        row.push(format::count(kind.expected.saturating_sub(kind.reached)));
        row
    };
    let mut lines = drawn_table(&header.map(ToOwned::to_owned), kinds.iter().map(row), options);
    let method = "From the API's acknowledgement of a change to the arrival of its content at each proxy that must have it.";
    lines.extend(wrapped(&format!("{method} {NOT_INCLUDED}"), options));
    lines
}

fn name(kind: &Kind<'_>, result: &FleetResult) -> String {
    match kind.istiod.and_then(|istiod| result.istiod.get(istiod)) {
        Some(istiod) => format!("{} at {istiod}", kind.name),
        None => kind.name.to_owned(),
    }
}

/// In the order in which each kind first appears. Failed changes are reported elsewhere.
fn kinds(changes: &[FleetChange]) -> Vec<Kind<'_>> {
    let mut kinds: Vec<(Kind<'_>, LatencyHistogram, u64)> = Vec::new();
    for change in changes.iter().filter(|change| change.failure.is_none()) {
        let times = &change.convergence_us;
        let histogram = LatencyHistogram::decode(&times.histogram).unwrap_or_default();
        let is_same = |(kind, ..): &(Kind<'_>, LatencyHistogram, u64)| {
            kind.name == change.kind && kind.istiod == change.istiod
        };
        match kinds.iter_mut().find(|known| is_same(known)) {
            Some((kind, all, censored)) => {
                kind.made += change.made.max(1);
                kind.expected += change.expected;
                kind.reached += change.reached;
                all.merge(&histogram);
                *censored += times.censored;
            }
            None => {
                let kind = Kind {
                    name: &change.kind,
                    istiod: change.istiod,
                    made: change.made.max(1),
                    expected: change.expected,
                    reached: change.reached,
                    times: HistogramSummary::default(),
                };
                kinds.push((kind, histogram, times.censored));
            }
        }
    }
    let summed = kinds
        .into_iter()
        .map(|(kind, histogram, censored)| Kind { times: histogram.summary_with(censored), ..kind });
    summed.collect()
}
