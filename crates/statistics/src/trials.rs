//! Trials of a run by cell, and which figures of them are usable.

use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{
    CellKey, Clock, ComponentVersion, Conditions, Figure, Figures, HistogramSummary, LoadResult, Mode, Role,
    TrialRecord, Verdict,
};
use std::collections::HashMap;

/// Trials of a run, indexed by cell.
#[derive(Clone, Debug)]
pub struct TrialsByCell<'a> {
    all: &'a [TrialRecord],
    positions: HashMap<CellKey<'a>, usize>,
    cells: Vec<Vec<&'a TrialRecord>>,
    /// Positions of the cells of each mode.
    modes: HashMap<Mode, Vec<usize>>,
}

impl<'a> TrialsByCell<'a> {
    /// Groups trials in one pass.
    #[must_use]
    pub fn new(all: &'a [TrialRecord]) -> Self {
        let (mut positions, mut cells) = (HashMap::new(), Vec::new());
        let mut modes: HashMap<Mode, Vec<usize>> = HashMap::new();
        for trial in all {
            let position = *positions.entry(trial.cell()).or_insert_with(|| {
                cells.push(Vec::new());
                modes.entry(trial.mode).or_default().push(cells.len() - 1);
                cells.len() - 1
            });
            cells[position].push(trial);
        }
        Self { all, positions, cells, modes }
    }

    /// Every trial, in the order of execution.
    #[must_use]
    pub fn all(&self) -> &'a [TrialRecord] {
        self.all
    }

    /// Trials of each cell, in the order of execution.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &[&'a TrialRecord]> {
        self.cells.iter().map(Vec::as_slice)
    }

    /// Trials of a cell, in the order of execution.
    #[must_use]
    pub fn of(&self, cell: CellKey<'_>) -> &[&'a TrialRecord] {
        self.position(cell).map_or(&[], |position| &self.cells[position])
    }

    /// Cell of a mode under these conditions: the one that is compared with cells of other modes under them. If factors
    /// cannot touch the mode, that is one cell for all their values.
    #[must_use]
    pub fn cell_under(&self, at: Conditions<'_>, mode: Mode) -> Option<CellKey<'a>> {
        let position = self.position(at.cell(mode)).or_else(|| {
            let mut of_mode = self.modes.get(&mode)?.iter().copied();
            of_mode.find(|position| self.key(*position).conditions.covers(at))
        });
        position.map(|position| self.key(position))
    }

    fn key(&self, position: usize) -> CellKey<'a> {
        self.cells[position][0].cell()
    }

    fn position(&self, cell: CellKey<'_>) -> Option<usize> {
        self.positions.get(&cell).copied()
    }

    /// Results of the trials of a cell whose median is usable, one per repeat.
    pub(crate) fn valid_results(&self, cell: CellKey<'_>) -> impl Iterator<Item = &'a LoadResult> {
        usable(self.of(cell), Figure::P50).into_iter().filter_map(|trial| trial.result.as_ref())
    }

    /// The smallest number of events at and beyond a percentile in any trial of a cell whose median is
    /// usable; infinite without such a trial.
    pub(crate) fn events_beyond(&self, cell: CellKey<'_>, percentile: Figure) -> f64 {
        let results = self.valid_results(cell);
        let of_trials = results.filter_map(|result| events_beyond(result, Clock::ResponseTime, percentile));
        of_trials.fold(f64::INFINITY, f64::min)
    }
}

/// Separate events at and beyond a percentile: episodes of slow responses if known, at most the number of
/// times. `None` for figures that are not percentiles, and for times that the load does not have.
pub(crate) fn events_beyond(result: &LoadResult, clock: Clock, percentile: Figure) -> Option<f64> {
    let times = result.times(clock)?.count as f64 * (1.0 - percentile.quantile()?);
    let episodes = result.episodes.get(percentile.name()).filter(|_| clock == Clock::ResponseTime);
    Some(times.min(episodes.map_or(f64::INFINITY, |episodes| *episodes as f64)))
}

/// True if this many events support a percentile. The fraction beyond a percentile is not exact in binary:
/// ten must suffice.
pub(crate) fn are_enough(events: f64) -> bool {
    events >= SAMPLES_BEYOND_A_PERCENTILE - 1e-6
}

/// The trials whose whole distributions speak for their cell: those with a sound 99th percentile, or one that is known to fall
/// among requests without a response, one per repeat. Where no trial has one, those with a sound median, whose tail is then the
/// generator's or the machine's.
pub(crate) fn with_sound_tail<'a>(trials: &[&'a TrialRecord]) -> Vec<&'a TrialRecord> {
    let sound = usable_or_unanswered(trials, Figure::P99, |result| Some(&result.response_time_us));
    if sound.is_empty() { usable(trials, Figure::P50) } else { sound }
}

/// Requests without a response in these trials: in those with a sound median, and in those whose 99th percentile is known to fall
/// among such requests, one per repeat.
pub(crate) fn censored(trials: &[&TrialRecord]) -> u64 {
    let is_known = |trial: &TrialRecord| {
        is_valid(trial) || is_trial_unanswered(trial, Figure::P99, |result| Some(&result.response_time_us))
    };
    let known = first_takes(trials, is_known).into_iter();
    known.filter_map(|trial| Some(trial.result.as_ref()?.response_time_us.censored)).sum()
}

/// The trials whose figure is usable: per cell and repeat, the first take in which it is.
pub(crate) fn usable<'a>(trials: &[&'a TrialRecord], figure: Figure) -> Vec<&'a TrialRecord> {
    first_takes(trials, |trial| is_usable(trial, figure))
}

/// Like [`usable`], plus trials in which the figure falls among requests without a response and only errors
/// spoil it. They show that the figure is beyond every response.
pub(crate) fn usable_or_unanswered<'a>(
    trials: &[&'a TrialRecord],
    figure: Figure,
    times: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> Vec<&'a TrialRecord> {
    first_takes(trials, |trial| is_usable(trial, figure) || is_trial_unanswered(trial, figure, &times))
}

fn is_trial_unanswered(
    trial: &TrialRecord,
    figure: Figure,
    times: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> bool {
    let times = trial.result.as_ref().and_then(times);
    times.is_some_and(|times| is_unanswered(times, &trial.verdict, figure))
}

/// True if a figure falls among the requests without a response, and only errors spoil it.
pub(crate) fn is_unanswered(times: &HistogramSummary, verdict: &Verdict, figure: Figure) -> bool {
    let mut spoiling = verdict.reasons_with_figures().filter(|(_, figures)| figures.contains(figure));
    times.count > 0
        && times.censored > 0
        && times.figure(figure).is_none()
        && spoiling.all(|(reason, _)| kind_of(reason) == ERRORS)
}

/// Kind of the reason for too many failed requests for times to be usable.
pub(crate) const ERRORS: &str = "errors";
/// Kind of the reason that the offered rate was not kept up.
pub(crate) const SATURATED: &str = "saturated";
/// Kinds of first reasons of a measurement that was cut short.
const CUT_SHORT: [&str; 3] = ["interrupted", "failed", "generator-lost"];

/// Whether the offered rate was not kept up, by the flag or by any reason. After a measurement was cut short, a reason alone
/// says nothing: the missing responses may follow from that.
pub(crate) fn shows_saturation(verdict: &Verdict) -> bool {
    let mut kinds = verdict.reasons.iter().map(|reason| kind_of(reason)).peekable();
    let is_cut_short = kinds.peek().is_some_and(|first| CUT_SHORT.contains(first));
    verdict.saturated || !is_cut_short && kinds.any(|kind| kind == SATURATED)
}

/// Per cell and repeat, the first take that meets a condition.
pub(crate) fn first_takes<'a>(
    trials: &[&'a TrialRecord],
    meets: impl Fn(&TrialRecord) -> bool,
) -> Vec<&'a TrialRecord> {
    let met: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| meets(trial)).collect();
    // Only a rerun trial shares its cell and repeat with another. Keys of cells are slow to hash.
    if met.iter().all(|trial| trial.retake.is_none()) {
        return met;
    }
    let mut positions: HashMap<(CellKey<'a>, usize), usize> = HashMap::new();
    let mut first: Vec<&TrialRecord> = Vec::new();
    for trial in met {
        let position = *positions.entry((trial.cell(), trial.repeat)).or_insert_with(|| {
            first.push(trial);
            first.len() - 1
        });
        if trial.take() < first[position].take() {
            first[position] = trial;
        }
    }
    first
}

/// True if a trial's figure may enter estimates: no reason spoils it and there are responses.
pub(crate) fn is_usable(trial: &TrialRecord, figure: Figure) -> bool {
    trial.verdict.is_usable(figure) && has_figures(trial)
}

/// True if requests were answered, or a fleet was measured.
fn has_figures(trial: &TrialRecord) -> bool {
    trial.result.as_ref().is_some_and(|result| result.response_time_us.count > 0) || trial.fleet().is_some()
}

/// Like [`is_usable`], if the CPU limit of a role's components is what is studied: throttling by it is then
/// not a fault.
pub(crate) fn is_usable_at_limit(trial: &TrialRecord, figure: Figure, limited: Role) -> bool {
    let spoils = |(reason, figures): (&str, Figures)| {
        figures.contains(figure) && !is_throttled(trial, reason, limited)
    };
    trial.result.as_ref().is_some_and(|result| result.response_time_us.count > 0)
        && (is_usable(trial, figure)
            || !trial.verdict.reasons.is_empty() && !trial.verdict.reasons_with_figures().any(spoils))
}

/// True if the reason is that a component of the role was throttled by its CPU limit.
pub(crate) fn is_throttled(trial: &TrialRecord, reason: &str, limited: Role) -> bool {
    let throttled = reason.strip_prefix("throttled: ").and_then(|rest| rest.split_once(", in "));
    let is_limited = |name: &str| {
        let component = trial.components.iter().find(|component| component.name == name);
        component.is_some_and(|component| component.role == limited)
    };
    throttled.is_some_and(|(name, _)| is_limited(name))
}

/// True if the generator, and not the target, kept the rate down.
pub(crate) fn is_limited_by_generator(trial: &TrialRecord) -> bool {
    trial.verdict.reasons.iter().any(|reason| match kind_of(reason) {
        "generator-full" => true,
        "saturated" => reason.contains("the generator's CPU was full"),
        _ => false,
    })
}

/// True if a trial's median may enter estimates.
pub(crate) fn is_valid(trial: &TrialRecord) -> bool {
    is_usable(trial, Figure::P50)
}

/// True for an excluded trial: its median is in no estimate. Every output counts excluded trials by this rule, each take by
/// itself.
#[must_use]
pub fn is_excluded(trial: &TrialRecord) -> bool {
    !is_valid(trial)
}

/// Kind of a reason: the text before its colon.
pub(crate) fn kind_of(reason: &str) -> &str {
    reason.split(':').next().unwrap_or_default().trim()
}

/// Kind of the first reason why a trial is not valid.
pub(crate) fn reason_kind(trial: &TrialRecord) -> &str {
    match trial.verdict.reasons.first() {
        Some(reason) => kind_of(reason),
        None if trial.result.is_none() && trial.fleet().is_none() => "no result",
        None => "no responses",
    }
}

/// Distinct versions of the programs of trials.
pub(crate) fn versions<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Vec<&'a ComponentVersion> {
    let mut versions: Vec<&ComponentVersion> = Vec::new();
    for version in trials.into_iter().flat_map(|trial| &trial.versions) {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}
