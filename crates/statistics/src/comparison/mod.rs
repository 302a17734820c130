//! Comparison of two sets of settings, measured in one run with a control arm: worse, better, equivalent or inconclusive.
//!
//! [`Judge`] reads trials and judges every figure after each repeat. [`judge`] has the verdict on one figure from its values
//! alone, [`boundary`] the levels that keep the error rate over all looks, [`margins`] the margins of equivalence; [`self_test`]
//! counts verdicts on known changes. The method and what else was tried: docs/decisions/0029-compare.md.

mod boundary;
mod judge;
mod margins;
pub mod self_test;
#[cfg(test)]
mod simulation_tests;

pub use boundary::{Look, normal_quantile};
pub use judge::{ALARM_RATE, ArmValues, Judgement, MIN_REPEATS, MISS_RATE, Rule, Tests, WorseIf};
pub(crate) use judge::{Logarithms, error_rate};
pub use margins::{DEFAULT_MARGIN, Margins};

use crate::trials::{TrialsByCell, is_valid, usable, versions};
use crate::words;
use experiment::plan::{ComparedCell, ComparisonArm};
use experiment::{Experiment, MeshKind};
use results::{
    ComparedArm, ComparedFigure, Estimate, FigureVerdict, InconclusiveReason, MarginSource, Metric, Mode,
    OwnedCellKey, TrialRecord,
};
use std::collections::BTreeMap;

/// Figures of a load whose requests are compared; of streams, those of the first event take the place of response times.
const OF_LOAD: [Metric; 8] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP99Us,
    Metric::EventGapP50Us,
    Metric::EventGapP99Us,
    Metric::RateCompleted,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ProxiesMemoryAnonymousBytes,
    Metric::ProxiesConfigurationBytes,
];
/// Figures of a fleet.
const OF_FLEET: [Metric; 6] = [
    Metric::ConvergenceP50Us,
    Metric::ConvergenceP99Us,
    Metric::FirstConfigurationLastUs,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryAnonymousBytes,
    Metric::BytesPerProxy,
];
/// Requests of a trial that p99 needs.
pub const P99_REQUESTS: f64 = crate::SAMPLES_BEYOND_A_PERCENTILE / 0.01;
/// Relative resolution of a difference of two times: each is rounded to three digits.
const RESOLUTION_OF_TIMES: f64 = 0.002;
/// Fraction of the repeats that must have a figure. Fewer are the ones in which an arm happened to be measurable.
const MIN_SHARE_OF_REPEATS: f64 = 0.5;

/// Judges the figures of a comparison.
#[derive(Debug)]
pub struct Judge {
    cells: Vec<JudgedCell>,
    tests: Tests,
    looks: usize,
}

/// A cell with the figures that it can have.
#[derive(Debug)]
struct JudgedCell {
    cell: ComparedCell,
    figures: Vec<PlannedFigure>,
    /// Requests that a trial of the base and of the head offers; unknown for closed loops.
    requests: [Option<f64>; 2],
}

/// A figure of a cell that is compared if it is measured.
#[derive(Clone, Copy, Debug)]
struct PlannedFigure {
    metric: Metric,
    rule: Rule,
    source: MarginSource,
}

impl Judge {
    /// For these cells of base and head, at up to `looks` looks. The error rate is shared among all figures that the cells can
    /// have, before any is measured.
    #[must_use]
    pub fn new(arms: [&Experiment; 2], cells: &[ComparedCell], looks: usize, margins: &Margins) -> Self {
        let metrics: Vec<Vec<Metric>> = cells.iter().map(|cell| metrics(arms, cell)).collect();
        let weights: Vec<u32> = metrics.iter().flatten().map(|metric| weight(*metric)).collect();
        let tests = Tests::new(&weights, looks);
        let figure = |metric: Metric, cell: &ComparedCell| {
            let (margin, source) = margins.of(metric, cell.base.mode, &tests, looks);
            PlannedFigure { metric, rule: rule(metric, margin), source }
        };
        let judged = |(cell, metrics): (&ComparedCell, Vec<Metric>)| JudgedCell {
            cell: cell.clone(),
            figures: metrics.into_iter().map(|metric| figure(metric, cell)).collect(),
            requests: requests(arms, cell),
        };
        let cells = cells.iter().zip(metrics).map(judged).collect();
        Self { cells, tests, looks }
    }

    /// Maximum number of looks.
    #[must_use]
    pub fn looks(&self) -> usize {
        self.looks
    }

    /// Figures of the planned comparison: key, cell, margin and its source.
    pub fn planned(&self) -> impl Iterator<Item = (Metric, &OwnedCellKey, f64, MarginSource)> {
        self.cells.iter().flat_map(|JudgedCell { cell, figures, .. }| {
            figures.iter().map(|figure| (figure.metric, &cell.base, figure.rule.margin, figure.source))
        })
    }

    /// Cells whose p99 cannot be judged, since an arm offers too few requests for it.
    pub fn without_p99(&self) -> impl Iterator<Item = &OwnedCellKey> {
        let lacks = |judged: &&JudgedCell| {
            let has_p99 = judged.figures.iter().any(|figure| is_p99_of_requests(figure.metric));
            has_p99 && judged.requests.iter().flatten().any(|requests| *requests < P99_REQUESTS)
        };
        self.cells.iter().filter(lacks).map(|judged| &judged.cell.base)
    }

    /// Every figure that was measured, or must have been, at a look; the worse ones first.
    #[must_use]
    pub fn figures(&self, trials: &[TrialRecord], look: Look) -> Vec<ComparedFigure> {
        let by_cell = TrialsByCell::new(trials);
        let mut figures = Vec::new();
        for judged in &self.cells {
            let cell = &judged.cell;
            for (number, figure) in judged.figures.iter().enumerate() {
                let values = values(&by_cell, cell, figure.metric);
                // A cell always has its first figure; others may not exist in its mode. A figure that every trial has and the
                // machine spoiled is one without usable values.
                if number == 0 || !values.is_empty() || is_measured(&by_cell, cell, figure.metric) {
                    let lacks_requests = is_p99_of_requests(figure.metric)
                        && judged.fewest_requests(&by_cell).is_some_and(|fewest| fewest < P99_REQUESTS);
                    figures.push(self.figure(cell, *figure, &values, look, lacks_requests));
                }
            }
        }
        figures.sort_by_key(|figure| figure.verdict);
        figures
    }

    fn figure(
        &self,
        cell: &ComparedCell,
        planned: PlannedFigure,
        values: &ArmValues,
        look: Look,
        lacks_requests: bool,
    ) -> ComparedFigure {
        let PlannedFigure { metric, rule, source } = planned;
        let mut judged = self.tests.judge(values, rule, look);
        let has_few_repeats = (judged.repeats as f64) < MIN_SHARE_OF_REPEATS * look.number as f64;
        let lacking = match (lacks_requests, has_few_repeats) {
            (true, _) => Some(InconclusiveReason::TooFewRequests),
            (_, true) => Some(InconclusiveReason::TooFewTrials),
            _ => None,
        };
        if lacking.is_some() {
            judged.verdict = FigureVerdict::Inconclusive;
            judged.reason = lacking;
        }
        ComparedFigure {
            key: metric,
            cell: cell.base.clone(),
            base: judged.base,
            head: judged.head,
            control: judged.control,
            difference: difference(judged.base, judged.ratio),
            ratio: judged.ratio,
            control_ratio: judged.control_ratio,
            equivalence_ratio: judged.equivalence_ratio,
            margin: rule.margin,
            margin_source: source,
            verdict: judged.verdict,
            reason: judged.reason,
            error_rate: self.tests.error_rate(rule.weight),
            between_runs: None,
        }
    }
}

/// Head less base, by the ratio and the mean of the base.
pub(crate) fn difference(base: Option<Estimate>, ratio: Option<Estimate>) -> Option<Estimate> {
    let base = base?.estimate;
    Some(ratio?.map(|ratio| base * (ratio - 1.0)))
}

/// Figures that a cell of a finished run can have; the first is one that it must have.
pub(crate) fn figures_of(experiment: &Experiment, cell: &OwnedCellKey) -> Vec<Metric> {
    metrics([experiment; 2], &ComparedCell { base: cell.clone(), head: cell.clone() })
}

impl JudgedCell {
    /// Fewest requests of a trial in any arm: those that its rate offers, or for a closed loop those that it had.
    fn fewest_requests(&self, trials: &TrialsByCell<'_>) -> Option<f64> {
        let of = |arm: ComparisonArm| -> Option<f64> {
            let [base, head] = self.requests;
            let planned = if arm == ComparisonArm::Head { head } else { base };
            planned.or_else(|| {
                let own = arm.cell(&self.cell);
                let results = trials.valid_results(own.key());
                results.map(|result| result.response_time_us.requests() as f64).reduce(f64::min)
            })
        };
        ComparisonArm::ALL.into_iter().filter_map(of).reduce(f64::min)
    }
}

/// True for a percentile that needs [`P99_REQUESTS`]. A stream has many times between its events.
fn is_p99_of_requests(metric: Metric) -> bool {
    matches!(metric, Metric::ResponseTimeP99Us | Metric::FirstEventP99Us)
}

/// Requests that a trial of each arm offers; unknown for closed loops.
fn requests([base, head]: [&Experiment; 2], cell: &ComparedCell) -> [Option<f64>; 2] {
    [(base, &cell.base), (head, &cell.head)]
        .map(|(arm, cell)| Some(cell.load.rate? * arm.load.duration.as_secs_f64()))
}

/// Figures that a cell can have; the first is one that it must have. A percentile is one if any arm has requests enough for it:
/// an arm that has fewer makes it inconclusive.
fn metrics(arms: [&Experiment; 2], cell: &ComparedCell) -> Vec<Metric> {
    let own = &cell.base;
    if own.load.is_fleet() {
        return OF_FLEET.to_vec();
    }
    let can_have = |metric: &Metric| match *metric {
        p99 if is_p99_of_requests(p99) => requests(arms, cell)
            .into_iter()
            .any(|requests| requests.is_none_or(|requests| requests >= P99_REQUESTS)),
        Metric::EventGapP50Us | Metric::EventGapP99Us => own.load.stream.is_some(),
        Metric::RateCompleted => own.load.clients.is_some(),
        Metric::ProxiesCpuCoresPer1000Rps | Metric::ProxiesMemoryAnonymousBytes => own.mode != Mode::None,
        Metric::ProxiesConfigurationBytes => own.mode != Mode::None && arms[0].mesh != MeshKind::Envoy,
        _ => true,
    };
    OF_LOAD.into_iter().map(|metric| metric.under(&own.load)).filter(can_have).collect()
}

/// Rule by which a figure is judged.
pub(crate) fn rule(metric: Metric, margin: f64) -> Rule {
    let resolution = if metric.is_time() { RESOLUTION_OF_TIMES } else { 0.0 };
    Rule { weight: weight(metric), worse_if: worse_if(metric), margin, resolution }
}

/// Part of the error rate, relative to the other figures: medians and CPU are looked at first, as everywhere
/// (docs/decisions/0017-families.md). The other figures vary much, or hardly at all.
pub(crate) fn weight(metric: Metric) -> u32 {
    match metric {
        Metric::ResponseTimeP50Us
        | Metric::FirstEventP50Us
        | Metric::RateCompleted
        | Metric::ProxiesCpuCoresPer1000Rps
        | Metric::ConvergenceP50Us
        | Metric::IstiodCpuS => 4,
        _ => 1,
    }
}

pub(crate) fn worse_if(metric: Metric) -> WorseIf {
    if metric == Metric::RateCompleted { WorseIf::Lower } else { WorseIf::Higher }
}

/// Usable values of a figure in each arm, by repeat.
fn values(trials: &TrialsByCell<'_>, cell: &ComparedCell, metric: Metric) -> ArmValues {
    let of = |arm: ComparisonArm| -> BTreeMap<usize, f64> {
        let key = arm.cell(cell);
        let usable = usable(trials.of(key.key()), metric.spoiled_by()).into_iter();
        usable.filter_map(|trial| Some((trial.repeat, metric.read(trial)?))).collect()
    };
    ArmValues {
        base: of(ComparisonArm::Base),
        head: of(ComparisonArm::Head),
        control: of(ComparisonArm::Control),
    }
}

/// True if any trial of the cell has the figure, usable or not.
fn is_measured(trials: &TrialsByCell<'_>, cell: &ComparedCell, metric: Metric) -> bool {
    ComparisonArm::ALL
        .into_iter()
        .any(|arm| trials.of(arm.cell(cell).key()).iter().any(|trial| metric.read(trial).is_some()))
}

/// Summary of the trials of an arm.
#[must_use]
pub fn arm(trials: &[TrialRecord], arm: ComparisonArm, settings: &[String]) -> ComparedArm {
    let of_arm: Vec<&TrialRecord> =
        trials.iter().filter(|trial| ComparisonArm::from_factors(&trial.factors) == Some(arm)).collect();
    ComparedArm {
        settings: settings.to_vec(),
        trials: of_arm.len(),
        valid: of_arm.iter().filter(|trial| is_valid(trial)).count(),
        versions: versions(of_arm).into_iter().cloned().collect(),
    }
}

/// Programs of which an arm ran several builds, or of which the control ran another build than the base. `has_builds`: builds
/// are values of a factor, so that each arm has several.
#[must_use]
pub fn environment_changes(arms: [&ComparedArm; 3], has_builds: bool) -> Vec<String> {
    let builds = |arm: &ComparedArm, name: &str| -> Vec<(String, Option<String>)> {
        let own = arm.versions.iter().filter(|version| version.name == name);
        let mut builds: Vec<_> =
            own.map(|version| (version.version.clone(), version.sha256.clone())).collect();
        builds.sort();
        builds.dedup();
        builds
    };
    let mut names: Vec<&str> =
        arms.iter().flat_map(|arm| &arm.versions).map(|version| version.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let [base, head, control] = arms;
    let has_changed = |name: &&str| {
        let are_several = |arm: &ComparedArm| !has_builds && builds(arm, name).len() > 1;
        are_several(base)
            || are_several(head)
            || control.trials > 0 && base.trials > 0 && builds(base, name) != builds(control, name)
    };
    let changed = names.into_iter().filter(has_changed);
    changed.map(|name| format!("{name} was replaced by another build during the comparison")).collect()
}

/// Reasons why a comparison fails for lack of trials: a cell has no median, or some arms have a figure that another mostly
/// lacks. A tail that the machine spoiled in all arms alike is inconclusive, and no more.
#[must_use]
pub fn missing(figures: &[ComparedFigure], looks: usize) -> Vec<String> {
    let count = |estimate: Option<Estimate>| estimate.map_or(0, |estimate| estimate.n);
    let has_enough = |estimate| count(estimate) as f64 >= MIN_SHARE_OF_REPEATS * looks as f64;
    let is_failure = |figure: &&ComparedFigure| {
        let must_be_there = [OF_LOAD[0].under(&figure.cell.load), OF_FLEET[0]].contains(&figure.key);
        let [base, head, control] = [figure.base, figure.head, figure.control].map(has_enough);
        figure.reason == Some(InconclusiveReason::TooFewTrials)
            && (must_be_there || base != head || base != control)
    };
    let sentence = |figure: &ComparedFigure| {
        format!(
            "too few trials: of {looks} repeats {} of the base, {} of the head and {} of the control have {} of {}",
            count(figure.base),
            count(figure.head),
            count(figure.control),
            figure.key.key(),
            words::place(figure.cell.key())
        )
    };
    figures.iter().filter(is_failure).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::plan::cells;

    #[test]
    fn streams_are_compared_by_first_event_and_gaps() {
        let compared = |load: &str| {
            let text = format!("{{name: t, mesh: istio, modes: [sidecar], load: {{{load}, duration: 10s}}}}");
            let experiment = Experiment::parse(&text, "t").unwrap();
            figures_of(&experiment, &cells(&experiment)[0])
        };
        assert_eq!(
            compared("clients: 4, stream: {prompt: 2KB}")[..5],
            [
                Metric::FirstEventP50Us,
                Metric::FirstEventP99Us,
                Metric::EventGapP50Us,
                Metric::EventGapP99Us,
                Metric::RateCompleted
            ]
        );
        let few = compared("rate: 50, protocol: http/2, stream: {prompt: 2KB}");
        assert!(!few.contains(&Metric::FirstEventP99Us) && few.contains(&Metric::EventGapP99Us), "{few:?}");
        let requests = compared("rate: 500");
        assert_eq!(requests[..2], [Metric::ResponseTimeP50Us, Metric::ResponseTimeP99Us]);
        assert!(!requests.iter().any(|metric| metric.clock().is_some_and(results::Clock::is_of_streams)));
        assert_eq!(weight(Metric::FirstEventP50Us), weight(Metric::ResponseTimeP50Us));
    }
}
