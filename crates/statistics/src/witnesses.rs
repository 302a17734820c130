//! Real sidecars beside a fleet: their update times against the arrivals at simulated proxies.
//!
//! istiod pushes to its connections in no particular order, so a real sidecar is like any proxy of the fleet.
//! Its times differ from the fleet's mean by the spread of the pushes, and on average by the time that Envoy
//! takes to apply an update.

use crate::interval;
use results::{Estimate, FleetWitness, HistogramSummary, LatencyHistogram};

/// Comparisons for one kind of change.
#[derive(Clone, Debug, PartialEq)]
pub struct WitnessedKind {
    /// Kind of change.
    pub kind: String,
    /// Number of compared pairs of change and sidecar.
    pub compared: usize,
    /// Number of sidecars that showed no update.
    pub missed: usize,
    /// Delay of the sidecars' updates after the mean proxy of the fleet; absent in results of earlier
    /// versions.
    pub later_us: Option<Estimate>,
    /// Mean fraction of the fleet that already had the change.
    pub rank: Option<f64>,
    /// Maximum distance from the nearest arrival at the fleet.
    pub nearest_us: Option<f64>,
    /// Maximum distance from the span of the fleet's arrivals.
    pub outside_us: f64,
}

/// An update time compared with the fleet's arrivals of the same change, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Delay after the mean arrival.
    pub later_us: f64,
    /// Fraction of the fleet's arrivals before it.
    pub rank: f64,
    /// Delay after the nearest arrival.
    pub nearest_us: f64,
    /// Delay after the last arrival, or (negative) lead before the first; 0 between them.
    pub outside_us: f64,
}

/// Compares an update; `None` if the change arrived nowhere.
#[must_use]
pub fn compare(updated_us: f64, arrivals: &HistogramSummary) -> Option<Comparison> {
    let histogram = LatencyHistogram::decode(&arrivals.histogram).ok().filter(|all| all.count() > 0)?;
    let (mut before, mut nearest_us) = (0, f64::INFINITY);
    for value in histogram.recorded() {
        let distance = updated_us - value.value_us as f64;
        before += if distance > 0.0 { value.count } else { 0 };
        if distance.abs() < f64::abs(nearest_us) {
            nearest_us = distance;
        }
    }
    let (first, last) = (arrivals.min, arrivals.max.unwrap_or_else(|| histogram.max_us()));
    Some(Comparison {
        later_us: updated_us - histogram.mean_us(),
        rank: before as f64 / histogram.count() as f64,
        nearest_us,
        outside_us: if updated_us > last { updated_us - last } else { (updated_us - first).min(0.0) },
    })
}

/// Comparisons by kind of change, in the order in which each kind first appears.
pub fn witnessed<'a>(all: impl Iterator<Item = &'a FleetWitness>) -> Vec<WitnessedKind> {
    let mut kinds: Vec<(&str, Vec<&FleetWitness>)> = Vec::new();
    for witness in all {
        match kinds.iter_mut().find(|(kind, _)| *kind == witness.kind) {
            Some((_, of_kind)) => of_kind.push(witness),
            None => kinds.push((&witness.kind, vec![witness])),
        }
    }
    kinds.into_iter().map(|(kind, witnesses)| of_kind(kind, &witnesses)).collect()
}

fn of_kind(kind: &str, witnesses: &[&FleetWitness]) -> WitnessedKind {
    let values = |read: fn(&FleetWitness) -> Option<f64>| -> Vec<f64> {
        witnesses.iter().filter_map(|witness| read(witness)).collect()
    };
    let greatest = |values: Vec<f64>| values.into_iter().map(f64::abs).max_by(f64::total_cmp);
    let ranks = values(|witness| witness.rank);
    let missed = witnesses.iter().filter(|witness| witness.updated_us.is_none()).count();
    WitnessedKind {
        kind: kind.to_owned(),
        compared: witnesses.len() - missed,
        missed,
        later_us: interval::mean(&values(|witness| witness.later_us), 0.0),
        rank: (!ranks.is_empty()).then(|| ranks.iter().sum::<f64>() / ranks.len() as f64),
        nearest_us: greatest(values(|witness| witness.nearest_us)),
        outside_us: greatest(values(|witness| witness.difference_us)).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn arrivals(times_ms: &[u64]) -> HistogramSummary {
        let mut histogram = LatencyHistogram::new();
        times_ms.iter().for_each(|time| histogram.record(Duration::from_millis(*time)));
        histogram.summary_with(0)
    }

    #[test]
    fn update_is_compared_with_mean_rank_nearest_and_span() {
        let arrivals = arrivals(&[100, 110, 120, 150]);
        let near = |found: f64, expected: f64| (found - expected).abs() < 200.0;
        let inside = compare(123_000.0, &arrivals).unwrap();
        assert!(near(inside.later_us, 3000.0) && near(inside.nearest_us, 3000.0), "{inside:?}");
        assert_eq!((inside.rank, inside.outside_us), (0.75, 0.0));
        let before = compare(90_000.0, &arrivals).unwrap();
        assert!(near(before.outside_us, -10_000.0) && near(before.nearest_us, -10_000.0), "{before:?}");
        assert_eq!(before.rank, 0.0);
        let after = compare(152_000.0, &arrivals).unwrap();
        assert!(near(after.outside_us, 2000.0) && after.rank == 1.0, "{after:?}");
        assert_eq!(compare(1.0, &HistogramSummary::default()), None);
    }

    #[test]
    fn comparisons_are_grouped_by_kind_with_interval() {
        let witness = |kind: &str, later_us: Option<f64>| FleetWitness {
            kind: kind.to_owned(),
            updated_us: later_us.map(|later_us| later_us + 100_000.0),
            later_us,
            rank: later_us.map(|_| 0.5),
            difference_us: later_us.map(|_| -3.0),
            ..FleetWitness::default()
        };
        let all = [
            witness("a", Some(1000.0)),
            witness("b", Some(5.0)),
            witness("a", Some(3000.0)),
            witness("a", None),
        ];
        let kinds = witnessed(all.iter());
        assert_eq!(kinds.iter().map(|kind| kind.kind.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let first = &kinds[0];
        assert_eq!((first.compared, first.missed, first.rank, first.outside_us), (2, 1, Some(0.5), 3.0));
        let later = first.later_us.unwrap();
        assert!(later.estimate == 2000.0 && later.low.unwrap() < 0.0, "{later:?}");
    }
}
