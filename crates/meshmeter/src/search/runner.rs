//! Executes the steps of a search.

use super::progress::SearchProgress;
use crate::failure::Failure;
use experiment::Objective;
use results::{LoadResult, ProbeRecord};
use statistics::search::{Phase, ProbeLength, ProbeOutcome, Search, SearchPlan, Step, classify, rest_after};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Duration of the closed loop that measures the capacity.
const CAPACITY_WINDOW: Duration = Duration::from_secs(2);

/// Runs probes.
pub trait Probing {
    /// Runs a closed loop on all connections. Its completed rate is the capacity.
    fn capacity(&mut self, window: Duration, progress: &mut SearchProgress) -> Result<LoadResult, Failure>;

    /// Runs an open loop at `rate`. `seed` differs per probe.
    fn probe(
        &mut self,
        rate: f64,
        window: Duration,
        seed: u64,
        progress: &mut SearchProgress,
    ) -> Result<LoadResult, Failure>;
}

/// Target, objective and bounds of a search.
pub struct SearchSettings {
    /// URLs of the targets, for the result.
    pub urls: Vec<String>,
    /// The objective to hold.
    pub objective: Objective,
    /// Range, precision and bounds.
    pub plan: SearchPlan,
    /// Length of probes.
    pub length: ProbeLength,
}

/// A search under way.
pub(super) struct SearchRunner<'a> {
    pub(super) settings: &'a SearchSettings,
    pub(super) search: Search,
    pub(super) records: Vec<ProbeRecord>,
    pub(super) started: Instant,
    /// True if the target can no longer be reached.
    pub(super) unreachable: bool,
    /// Highest rate at which a probe was shorter than its objective needs.
    pub(super) too_short_at: Option<f64>,
}

/// Name of an outcome in results.
pub(super) fn outcome_name(outcome: ProbeOutcome) -> &'static str {
    match outcome {
        ProbeOutcome::Held => "held",
        ProbeOutcome::Failed => "failed",
        ProbeOutcome::GeneratorLimited => "generator-limited",
    }
}

impl SearchRunner<'_> {
    /// Executes one step. Returns how long to rest after it; `None` once the search is over.
    pub(super) fn step(
        &mut self,
        probing: &mut dyn Probing,
        progress: &mut SearchProgress,
        stop: &AtomicBool,
    ) -> Result<Option<Duration>, Failure> {
        if stop.load(Ordering::Relaxed) {
            self.search.interrupt();
        }
        match self.search.next() {
            Step::Done => Ok(None),
            Step::MeasureCapacity => {
                progress.started(self.records.len() + 1, Phase::Capacity, None, CAPACITY_WINDOW);
                let result = probing.capacity(CAPACITY_WINDOW, progress)?;
                Ok(self.take_capacity(result, progress))
            }
            Step::Probe { rate, phase } => {
                let confirmation = phase == Phase::Confirmation;
                let (window, enough) = self.settings.length.at(&self.settings.objective, rate, confirmation);
                if !enough {
                    self.too_short_at = Some(self.too_short_at.map_or(rate, |before| before.max(rate)));
                }
                let probe = self.records.len() + 1;
                progress.started(probe, phase, Some(rate), window);
                let result = probing.probe(rate, window, probe as u64, progress)?;
                let interrupted = stop.load(Ordering::Relaxed);
                Ok(self.take_probe(rate, phase, result, interrupted, progress))
            }
        }
    }

    fn take_capacity(&mut self, result: LoadResult, progress: &mut SearchProgress) -> Option<Duration> {
        let rest = rest_after(ProbeOutcome::Failed, &result);
        if is_unreachable(&result) {
            self.unreachable = true;
            self.search.interrupt();
        } else {
            // Errors may be faster than responses; then this is not the capacity.
            let sound = result.requests.error_fraction() < 0.5;
            self.search.record_capacity(sound.then_some(result.rate.completed));
        }
        let record = ProbeRecord {
            rate: None,
            phase: Phase::Capacity.name().to_owned(),
            outcome: None,
            reason: String::new(),
            result,
        };
        progress.ended(self.records.len() + 1, &record);
        self.records.push(record);
        (!self.unreachable).then_some(rest)
    }

    fn take_probe(
        &mut self,
        rate: f64,
        phase: Phase,
        mut result: LoadResult,
        interrupted: bool,
        progress: &mut SearchProgress,
    ) -> Option<Duration> {
        let judged = statistics::check_result(&self.settings.objective, &result);
        let (outcome, reason) = classify(&result, &judged);
        result.objective = Some(judged);
        let rest = rest_after(outcome, &result);
        // A target that is unreachable for a moment after overload may come back; one that stays unreachable
        // ends the search.
        let was_unreachable = self.records.last().is_none_or(|last| is_unreachable(&last.result));
        self.unreachable = is_unreachable(&result) && was_unreachable;
        let (name, reason) = if interrupted {
            (None, "interrupted".to_owned())
        } else {
            (Some(outcome_name(outcome).to_owned()), reason)
        };
        let record =
            ProbeRecord { rate: Some(rate), phase: phase.name().to_owned(), outcome: name, reason, result };
        progress.ended(self.records.len() + 1, &record);
        self.records.push(record);
        if interrupted || self.unreachable {
            self.search.interrupt();
            return None;
        }
        self.search.record(outcome);
        Some(rest)
    }
}

fn is_unreachable(result: &LoadResult) -> bool {
    result.verdict.reasons.iter().any(|reason| reason.starts_with("unreachable:"))
}
