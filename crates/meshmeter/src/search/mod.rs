//! Carries out a search for the highest rate that holds an objective: asks [`statistics::search`] what to do, has it done by
//! whoever can run one probe ([`Probing`]), and puts everything into one result.
//!
//! Nothing here knows what a probe is made of: a run of the generator, or a trial of a whole arrangement.

mod progress;
mod result;

pub use progress::SearchProgress;

use crate::failure::Failure;
use experiment::Objective;
use experiment::schema::{LoadResult, ProbeRecord};
use statistics::search::{Phase, ProbeLength, ProbeOutcome, Search, SearchPlan, Step, classify, rest_after};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the closed loop runs that measures the capacity.
const CAPACITY_WINDOW: Duration = Duration::from_secs(2);
/// How often a pause looks whether it is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Whoever can measure at a rate.
pub trait Probing {
    /// The completed rate of a closed loop on all connections.
    fn capacity(&mut self, window: Duration, progress: &mut SearchProgress) -> Result<LoadResult, Failure>;

    /// An open loop at a rate. `seed` is another one for each probe.
    fn probe(
        &mut self,
        rate: f64,
        window: Duration,
        seed: u64,
        progress: &mut SearchProgress,
    ) -> Result<LoadResult, Failure>;
}

/// What is searched, and how.
pub struct SearchSettings {
    /// The targets, for the result.
    pub urls: Vec<String>,
    /// What is to hold.
    pub objective: Objective,
    /// Range, precision and bounds.
    pub plan: SearchPlan,
    /// How long probes last.
    pub length: ProbeLength,
}

/// A search on its way.
pub struct Course<'a> {
    settings: &'a SearchSettings,
    search: Search,
    records: Vec<ProbeRecord>,
    started: Instant,
    /// The target could not be reached any more.
    unreachable: bool,
    /// A probe was shorter than its objective needs.
    too_short_at: Option<f64>,
}

/// Searches to the end, or until `stop` is set; what is known by then is the result.
pub fn run(
    settings: &SearchSettings,
    probing: &mut dyn Probing,
    progress: &mut SearchProgress,
    stop: &AtomicBool,
) -> Result<experiment::schema::SearchResult, Failure> {
    let mut course = Course {
        settings,
        search: Search::new(settings.plan),
        records: Vec::new(),
        started: Instant::now(),
        unreachable: false,
        too_short_at: None,
    };
    while let Some(rest) = course.step(probing, progress, stop)? {
        pause(rest, stop);
    }
    Ok(course.result())
}

/// Waits, at most until `stop` is set.
fn pause(rest: Duration, stop: &AtomicBool) {
    let until = Instant::now() + rest;
    while !stop.load(Ordering::Relaxed) && Instant::now() < until {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK_INTERVAL));
    }
}

impl Course<'_> {
    /// One probe. Returns how long to rest after it; nothing where the search is over.
    fn step(
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
            // Errors may be faster than answers: then this says nothing.
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
        let judged = statistics::judge_result(&self.settings.objective, &result);
        let (outcome, reason) = classify(&result, &judged);
        result.objective = Some(judged);
        let rest = rest_after(outcome, &result);
        // A target that is gone for a moment after too much load may come back; one that stays away has nothing to tell.
        let was_unreachable = self.records.last().is_none_or(|last| is_unreachable(&last.result));
        self.unreachable = is_unreachable(&result) && was_unreachable;
        let (name, reason) = if interrupted {
            (None, "interrupted".to_owned())
        } else {
            (Some(result::outcome_name(outcome).to_owned()), reason)
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
