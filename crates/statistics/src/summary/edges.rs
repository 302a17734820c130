//! Calls between services over the trials of a cell.

use super::estimates::{estimate, percentiles_alone, with_unanswered};
use super::readings::{Readings, WindowRates};
use crate::trials::is_valid;
use results::{DisturbedFigures, EdgeRecord, EdgeSummary, HistogramSummary, TrialRecord};
use std::collections::{BTreeMap, HashMap};

type Key<'a> = (&'a str, &'a str);

/// Every edge of the trials of a cell, in the order in which the trials list them. The drivers of an edge are
/// those of its caller.
pub(super) fn edges(trials: &[&TrialRecord]) -> Vec<EdgeSummary> {
    let mut readings = Readings::new();
    let mut counts: HashMap<Key<'_>, Counts> = HashMap::new();
    for trial in trials {
        let rates = WindowRates::new(trial.drivers());
        for edge in &trial.edges {
            let key = (edge.from.as_str(), edge.to.as_str());
            counts.entry(key).or_default().add(edge);
            let reading = rates.of(namespace(&edge.from)).map(|rate| Reading::new(edge, rate));
            readings.add(key, trial.repeat, reading);
        }
    }
    let proven = proven(trials);
    let summary = |(key, readings): (Key<'_>, BTreeMap<usize, Reading<'_>>)| {
        let times: Vec<&HistogramSummary> =
            readings.values().filter_map(|reading| reading.response_time_us).collect();
        EdgeSummary {
            from: key.0.to_owned(),
            to: key.1.to_owned(),
            requests_per_s: estimate(readings.values().filter_map(|reading| reading.requests_per_s)),
            response_time_us: percentiles_alone(|_| times.clone())
                .map(|percentiles| with_unanswered(percentiles, &times)),
            errors: counts[&key].error_fraction(),
            proven: proven.get(&key).copied().unwrap_or(false),
            disturbed: DisturbedFigures::new(),
        }
    };
    readings.into_iter().map(summary).collect()
}

/// Namespace of a qualified name; empty in a topology with a single namespace.
pub(crate) fn namespace(qualified_name: &str) -> &str {
    qualified_name.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// An edge in one trial whose drivers are valid.
struct Reading<'a> {
    requests_per_s: Option<f64>,
    response_time_us: Option<&'a HistogramSummary>,
}

impl<'a> Reading<'a> {
    fn new(edge: &'a EdgeRecord, rate_per_request: f64) -> Self {
        Self {
            requests_per_s: Some(edge.requests as f64 * rate_per_request).filter(|rate| rate.is_finite()),
            response_time_us: edge.response_time_us.as_ref().filter(|times| times.requests() > 0),
        }
    }
}

/// Requests over an edge in all trials, including invalid ones.
#[derive(Default)]
struct Counts {
    requests: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, edge: &EdgeRecord) {
        self.requests += edge.requests;
        self.failed += edge.failed;
    }

    fn error_fraction(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.failed as f64 / self.requests as f64 }
    }
}

/// Whether the valid trials proved each edge; without a valid trial, whether all trials with a result did, as
/// for the path of a cell.
fn proven<'a>(trials: &[&'a TrialRecord]) -> HashMap<Key<'a>, bool> {
    let valid: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| is_valid(trial)).collect();
    let measured = || trials.iter().copied().filter(|trial| trial.result.is_some()).collect();
    let judged: Vec<&TrialRecord> = if valid.is_empty() { measured() } else { valid };
    let mut proven: HashMap<Key<'_>, bool> = HashMap::new();
    for trial in judged {
        let proofs: HashMap<Key<'_>, bool> =
            trial.path.edges.iter().map(|proof| ((&*proof.from, &*proof.to), proof.proven)).collect();
        for edge in &trial.edges {
            let key = (edge.from.as_str(), edge.to.as_str());
            // A topology with one edge has no list: that edge is the path.
            *proven.entry(key).or_insert(true) &= proofs.get(&key).copied().unwrap_or(trial.path.proven);
        }
    }
    proven
}
