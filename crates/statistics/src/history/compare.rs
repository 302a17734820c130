//! Comparison of finished runs, with a history or without one.
//!
//! Without a history nothing shows how far runs of the same state differ: the change is printed with the interval of both runs, and
//! no figure is judged. With one, further runs are judged by its runs of the same environment since the last change of each figure.

use super::change_points::change_points;
use super::course::{Series, is_counterpart, is_positive, series};
use super::environment::{changed_programs, differences, is_same};
use super::prediction::{logarithms, predict};
use super::record::{Recorded, UNKNOWN};
use crate::comparison::{DEFAULT_MARGIN, difference, error_rate, rule, weight};
use crate::interval;
use crate::words;
use results::{
    BetweenRuns, COMPARISON_SCHEMA, Clock, ComparedArm, ComparedFigure, Comparison, ComparisonCourse,
    ComparisonEnd, ComparisonVerdict, ComponentVersion, Estimate, Figure, FigureVerdict, FinishedRuns,
    HistoryFigure, HistoryRun, HistoryUse, InconclusiveReason, MarginSource, OwnedCellKey,
};
use std::collections::{BTreeMap, BTreeSet};

/// Wishes of the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Relative difference up to which runs count as equivalent.
    pub margin: Option<f64>,
    /// Compare runs of different environments.
    pub across_environments: bool,
}

/// A history, as read.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// Path of the file, as given.
    pub file: &'a str,
    /// Runs of the lines that could be read, in the order of the file.
    pub runs: &'a [HistoryRun],
    /// Numbers of lines that could not be read.
    pub skipped_lines: &'a [usize],
}

/// A comparison while it is made.
#[derive(Debug, Default)]
struct Draft {
    figures: Vec<ComparedFigure>,
    environment_changes: Vec<String>,
    /// Reasons why nothing may be concluded.
    failures: Vec<String>,
    /// Data that only one side has. A figure that is worse all the same is worse.
    missing: Vec<String>,
    finished: FinishedRuns,
}

impl Draft {
    fn new(request: &Request, runs: &[&Recorded]) -> Self {
        let mut draft = Self::default();
        draft.finished.across_environments = request.across_environments;
        for recorded in runs {
            draft.failures.extend(recorded.failures.iter().cloned());
            draft.missing.extend(recorded.missing.iter().cloned());
            for limit in &recorded.run.limits {
                if !draft.finished.limits.contains(limit) {
                    draft.finished.limits.push(limit.clone());
                }
            }
        }
        draft
    }

    fn end(mut self, base: ComparedArm, heads: &[Recorded]) -> Comparison {
        if self.figures.is_empty() && self.failures.is_empty() {
            self.failures
                .push("nothing can be compared: the runs have no cell and figure in common".to_owned());
        }
        self.figures.sort_by_key(|figure| figure.verdict);
        let (is_void, lacks_data) = (!self.failures.is_empty(), !self.missing.is_empty());
        let verdict = ComparisonVerdict::new(&self.figures, is_void, lacks_data);
        let runs: Vec<&HistoryRun> = heads.iter().map(|head| &head.run).collect();
        Comparison {
            schema: COMPARISON_SCHEMA.to_owned(),
            name: runs.first().map_or_else(String::new, |run| name(run)),
            seed: runs.first().and_then(|run| run.seed).unwrap_or(0),
            base,
            head: arm(&runs),
            control: ComparedArm::default(),
            looks: 0,
            looks_planned: 0,
            ended: ComparisonEnd::Recorded,
            figures: self.figures,
            modes_not_compared: Vec::new(),
            environment_changes: self.environment_changes,
            course: ComparisonCourse::default(),
            failures: self.failures.into_iter().chain(self.missing).collect(),
            verdict,
            finished: Some(self.finished),
        }
    }
}

/// Name of the study or target; of a load without a known target its file.
fn name(run: &HistoryRun) -> String {
    if run.name == UNKNOWN { run.run.clone() } else { run.name.clone() }
}

fn arm(runs: &[&HistoryRun]) -> ComparedArm {
    let mut versions: Vec<ComponentVersion> = Vec::new();
    for (name, version) in runs.iter().flat_map(|run| &run.programs) {
        let version =
            ComponentVersion { name: name.clone(), version: version.clone(), ..ComponentVersion::default() };
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    let settings = |run: &&HistoryRun| match &run.label {
        Some(label) => format!("{} ({label})", run.run),
        None => run.run.clone(),
    };
    ComparedArm {
        settings: runs.iter().map(settings).collect(),
        trials: runs.iter().map(|run| run.trials).sum(),
        valid: runs.iter().map(|run| run.valid).sum(),
        versions,
    }
}

/// Compares finished runs with a first one. Nothing is judged: see the module.
#[must_use]
pub fn compare_runs(base: &Recorded, heads: &[Recorded], request: &Request) -> Comparison {
    let all: Vec<&Recorded> = [base].into_iter().chain(heads).collect();
    let mut draft = Draft::new(request, &all);
    for head in heads {
        let of =
            |text: &str| if heads.len() > 1 { format!("{}: {text}", head.run.run) } else { text.to_owned() };
        let mut changes = differences(&base.run, &head.run);
        changes.extend(changed_programs(&base.run, &head.run));
        draft.environment_changes.extend(changes.iter().map(|change| of(change)));
        if let Some(reason) = of_other_kind(&base.run, &head.run) {
            draft.failures.push(reason);
            continue;
        }
        if !changes.is_empty() && !request.across_environments {
            draft.failures.push(of(&unknown_environment(
                changes.len(),
                "--across-environments compares the runs all the same",
            )));
            continue;
        }
        let head_run = (heads.len() > 1).then(|| head.run.run.clone());
        compare_pair(&mut draft, &base.run, &head.run, head_run.as_deref(), request);
    }
    draft.end(arm(&[&base.run]), heads)
}

/// Reason why a run and a load are never compared, the same in either order: a cell has a mode and services, a load has none.
fn of_other_kind(one: &HistoryRun, other: &HistoryRun) -> Option<String> {
    let (run, load) = if one.has_modes() { (one, other) } else { (other, one) };
    (run.has_modes() && !load.has_modes()).then(|| {
        format!(
            "{} is a run with modes and {} the result of a load: they have no cell in common",
            run.run, load.run
        )
    })
}

fn unknown_environment(differences: usize, hint: &str) -> String {
    format!(
        "an unknown environment: {differences} difference{}; {hint}",
        if differences == 1 { "" } else { "s" }
    )
}

fn compare_pair(
    draft: &mut Draft,
    base: &HistoryRun,
    head: &HistoryRun,
    head_run: Option<&str>,
    request: &Request,
) {
    for (one, other) in [(base, head), (head, base)] {
        draft.finished.not_compared.extend(
            cells_only_in(one, other)
                .into_iter()
                .map(|cell| format!("{} is only in {}", words::place(cell.key()), one.run)),
        );
    }
    say_without_ratio(draft, [base, head].into_iter());
    let (ours, theirs) = (compared_figures(base, head), compared_figures(head, base));
    for figure in &ours {
        let Some(counterpart) = theirs.iter().find(|other| is_counterpart(head, other, figure)) else {
            miss(draft, figure, base, head);
            continue;
        };
        let ratio = ratio_of(figure.estimate, counterpart.estimate);
        let (margin, margin_source) = margin(request);
        draft.figures.push(ComparedFigure {
            key: figure.key,
            cell: figure.cell.clone(),
            base: Some(figure.estimate),
            head: Some(counterpart.estimate),
            difference: difference(Some(figure.estimate), Some(ratio)),
            ratio: Some(ratio),
            control: None,
            control_ratio: None,
            equivalence_ratio: None,
            margin,
            margin_source,
            verdict: FigureVerdict::Inconclusive,
            reason: Some(InconclusiveReason::RunVariationUnknown),
            error_rate: 0.0,
            between_runs: Some(BetweenRuns {
                head_run: head_run.map(str::to_owned),
                without_mode: !base.has_modes(),
                ..BetweenRuns::default()
            }),
        });
    }
    for figure in theirs.iter().filter(|figure| !ours.iter().any(|other| is_counterpart(head, other, figure)))
    {
        miss(draft, figure, head, base);
    }
}

/// Cells of a run that another one lacks. Loads have one cell each, whose load is part of the environment.
fn cells_only_in<'a>(one: &'a HistoryRun, other: &HistoryRun) -> Vec<&'a OwnedCellKey> {
    let mut cells: Vec<&OwnedCellKey> = Vec::new();
    if one.has_modes() {
        let lacks = |cell: &OwnedCellKey| !other.figures.iter().any(|figure| figure.cell == *cell);
        for cell in one.figures.iter().map(|figure| &figure.cell) {
            if !cells.contains(&cell) && lacks(cell) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// Clocks of requests by precedence: of those that both sides have, the first is compared. Response times include service times,
/// and the end of a stream that of its schedule.
const PRECEDENCE: [Clock; 3] = [Clock::FirstEvent, Clock::ResponseTime, Clock::ServiceTime];

/// Figures of a run to compare with another one.
fn compared_figures<'a>(run: &'a HistoryRun, other: &HistoryRun) -> Vec<&'a HistoryFigure> {
    let has =
        |run: &HistoryRun, clock: Clock| run.figures.iter().any(|figure| figure.key.clock() == Some(clock));
    let first = PRECEDENCE.into_iter().find(|clock| has(run, *clock) && has(other, *clock));
    let is_leading = |clock: Clock| match first {
        Some(first) => clock == first || !PRECEDENCE.contains(&clock) && clock != Clock::FirstByte,
        None => true,
    };
    let is_compared =
        |figure: &&HistoryFigure| is_positive(figure) && figure.key.clock().is_none_or(is_leading);
    run.figures.iter().filter(is_compared).collect()
}

/// Says which figures have values in runs that no ratio can be made of.
fn say_without_ratio<'a>(draft: &mut Draft, runs: impl Iterator<Item = &'a HistoryRun>) {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for run in runs {
        for figure in run.figures.iter().filter(|figure| !is_positive(figure)) {
            found.entry(name_of(run, figure)).or_default().push(run.shown_name());
        }
    }
    draft.finished.not_compared.extend(found.into_iter().map(|(name, runs)| match runs.as_slice() {
        [run] => format!("{name} in {run} is not above 0 and is left out"),
        _ => format!("{name} in {} runs is not above 0 and is left out of them: {}, …", runs.len(), runs[0]),
    }));
}

/// Says that a figure is only in one run. If both measured its cell alike, it is missing data.
fn miss(draft: &mut Draft, figure: &HistoryFigure, with: &HistoryRun, without: &HistoryRun) {
    let measured_cell = !with.has_modes() || without.figures.iter().any(|other| other.cell == figure.cell);
    if !measured_cell {
        // Its whole cell is named.
        return;
    }
    let text = format!("{} is only in {}", name_of(with, figure), with.run);
    let is_far_out =
        figure.key.spoiled_by().quantile().is_some_and(|quantile| Some(quantile) > Figure::P99.quantile());
    if with.source == without.source && !is_far_out {
        draft.missing.push(text);
    } else {
        draft.finished.not_compared.push(text);
    }
}

fn name_of(run: &HistoryRun, figure: &HistoryFigure) -> String {
    if run.has_modes() {
        format!("{} of {}", figure.key.key(), words::place(figure.cell.key()))
    } else {
        figure.key.key().to_owned()
    }
}

/// Ratio of two estimates with the interval that follows from theirs (G. Y. Zou and A. Donner, Stat. Med. 27 (2008), 1693-1702).
/// It covers what varied within both runs, and nothing between them.
fn ratio_of(base: Estimate, head: Estimate) -> Estimate {
    let ratio = head.estimate / base.estimate;
    let side = |end: Option<f64>, middle: f64| end.filter(|end| *end > 0.0).map(|end| (end / middle).ln());
    let combined = |one: Option<f64>, other: Option<f64>| Some((one?.powi(2) + other?.powi(2)).sqrt());
    let below = combined(side(head.low, head.estimate), side(base.high, base.estimate));
    let above = combined(side(head.high, head.estimate), side(base.low, base.estimate));
    Estimate {
        estimate: ratio,
        low: below.map(|below| ratio * (-below).exp()),
        high: above.map(|above| ratio * above.exp()),
        n: head.n.min(base.n),
        alone: None,
    }
}

fn margin(request: &Request) -> (f64, MarginSource) {
    request.margin.map_or((DEFAULT_MARGIN, MarginSource::Default), |margin| (margin, MarginSource::User))
}

/// Judges runs by a history.
///
/// Several runs are judged together, as repeats of one state: each figure by all runs that have it.
#[must_use]
pub fn compare_with_history(history: &History<'_>, heads: &[Recorded], request: &Request) -> Comparison {
    let mut draft = Draft::new(request, &heads.iter().collect::<Vec<_>>());
    let Some(first) = heads.first() else { return draft.end(ComparedArm::default(), heads) };
    let others: Vec<&HistoryRun> =
        history.runs.iter().filter(|run| !heads.iter().any(|head| head.run.is_same_run(run))).collect();
    for head in &heads[1..] {
        let mut changes = differences(&first.run, &head.run);
        if let Some(reason) = of_other_kind(&first.run, &head.run) {
            draft.failures.push(reason);
        } else if !changes.is_empty() && !request.across_environments {
            let hint = "runs that are judged together must share one; --across-environments judges them all the same";
            draft.failures.push(format!("{}: {}", head.run.run, unknown_environment(changes.len(), hint)));
        }
        changes.extend(changed_programs(&first.run, &head.run));
        draft
            .environment_changes
            .extend(changes.into_iter().map(|change| format!("{}: {change}", head.run.run)));
    }
    let used: Vec<&HistoryRun> = others
        .iter()
        .copied()
        .filter(|run| is_same(run, &first.run) || request.across_environments)
        .filter(|run| of_other_kind(run, &first.run).is_none())
        .collect();
    say_environments(&mut draft, &others, &used, &first.run);
    draft.finished.history = Some(HistoryUse {
        file: history.file.to_owned(),
        runs: others.len(),
        used: used.len(),
        skipped_lines: history.skipped_lines.to_vec(),
    });
    if used.is_empty() {
        draft.failures.push(match others.len() {
            0 => format!("{} has no other run: add runs to it", history.file),
            runs => format!("none of the {runs} runs of {} is of this environment", history.file),
        });
    } else {
        judge_figures(&mut draft, &used, heads, request);
    }
    draft.end(arm(&used), heads)
}

/// Says which runs of a history are of another environment, and which programs are new.
fn say_environments(draft: &mut Draft, others: &[&HistoryRun], used: &[&HistoryRun], head: &HistoryRun) {
    let foreign: Vec<&&HistoryRun> = others.iter().filter(|run| !is_same(run, head)).collect();
    if let Some(last) = foreign.last() {
        let facts: BTreeSet<String> = differences(last, head).into_iter().collect();
        draft.environment_changes.push(format!(
            "{} of {} runs of the history are of another environment and are {}; the last of them: {}",
            foreign.len(),
            others.len(),
            if used.len() == others.len() { "compared all the same" } else { "left out" },
            facts.into_iter().collect::<Vec<_>>().join("; ")
        ));
    }
    if let Some(last) = used.last() {
        let changes = changed_programs(last, head).into_iter();
        draft
            .environment_changes
            .extend(changes.map(|change| format!("since the last run of the history: {change}")));
    }
}

fn judge_figures(draft: &mut Draft, used: &[&HistoryRun], heads: &[Recorded], request: &Request) {
    let all = series(used, is_positive);
    say_without_ratio(draft, used.iter().copied().chain(heads.iter().map(|head| &head.run)));
    let compared = figures_of_heads(heads, used[used.len() - 1]);
    let found: Vec<(&Series<'_>, &Vec<&HistoryFigure>)> =
        compared.iter().filter_map(|judged| Some((judged.series(&all)?, &judged.figures))).collect();
    say_missing(draft, used, heads, &compared, &all);
    let weights = found.iter().map(|(_, figures)| weight(figures[0].key)).sum::<u32>().max(1);
    for (series, figures) in found {
        let share = error_rate(weight(figures[0].key), weights);
        draft.figures.push(judge(series, figures, share, request));
    }
}

/// A figure of the judged runs.
struct Judged<'a> {
    /// The first run that has it.
    run: &'a HistoryRun,
    /// Of each run that has it.
    figures: Vec<&'a HistoryFigure>,
}

impl Judged<'_> {
    fn series<'a, 'b>(&self, all: &'b [Series<'a>]) -> Option<&'b Series<'a>> {
        all.iter().find(|series| is_counterpart(self.run, self.figures[0], series.figure))
    }
}

/// Figures that any of the judged runs has to compare with a history.
fn figures_of_heads<'a>(heads: &'a [Recorded], last: &HistoryRun) -> Vec<Judged<'a>> {
    let mut all: Vec<Judged<'a>> = Vec::new();
    for head in heads {
        for figure in compared_figures(&head.run, last) {
            match all.iter_mut().find(|judged| is_counterpart(&head.run, figure, judged.figures[0])) {
                Some(judged) => judged.figures.push(figure),
                None => all.push(Judged { run: &head.run, figures: vec![figure] }),
            }
        }
    }
    all
}

/// Names what only the judged runs have, or only the history.
fn say_missing(
    draft: &mut Draft,
    used: &[&HistoryRun],
    heads: &[Recorded],
    compared: &[Judged<'_>],
    all: &[Series<'_>],
) {
    for judged in compared.iter().filter(|judged| judged.series(all).is_none()) {
        let name = name_of(judged.run, judged.figures[0]);
        draft.finished.not_compared.push(format!("{name} is not in the history"));
    }
    // What the last run has and a judged one lacks is missing data, unless it lacks the whole cell.
    let last = used[used.len() - 1];
    for head in heads {
        let cells = cells_only_in(last, &head.run).into_iter();
        let named = cells.map(|cell| format!("{} is not in {}", words::place(cell.key()), head.run.run));
        draft.finished.not_compared.extend(named);
        for figure in compared_figures(last, &head.run) {
            if !head.run.figures.iter().any(|other| is_counterpart(last, other, figure)) {
                miss(draft, figure, last, &head.run);
            }
        }
    }
}

fn judge(series: &Series<'_>, judged: &[&HistoryFigure], share: f64, request: &Request) -> ComparedFigure {
    let figure = judged[0];
    let since = change_points(&logarithms(&series.values)).last().copied();
    let history = &series.values[since.unwrap_or(0)..];
    let values: Vec<f64> = judged.iter().map(|figure| figure.estimate.estimate).collect();
    let (margin, margin_source) = margin(request);
    let predicted = predict(history, &values, rule(figure.key, margin), share);
    let base = interval::mean(history, 0.0);
    ComparedFigure {
        key: figure.key,
        cell: figure.cell.clone(),
        base,
        head: if let [only] = judged { Some(only.estimate) } else { interval::mean(&values, 0.0) },
        difference: difference(base, Some(predicted.ratio)),
        ratio: Some(predicted.ratio),
        control: None,
        control_ratio: None,
        equivalence_ratio: Some(predicted.equivalence_ratio),
        margin,
        margin_source,
        verdict: predicted.verdict,
        reason: predicted.reason,
        error_rate: share,
        between_runs: Some(BetweenRuns {
            head_run: None,
            without_mode: !series.runs[0].has_modes(),
            runs: history.len(),
            deviation: predicted.deviation,
            since: since.map(|at| series.runs[at].shown_name().to_owned()),
            bimodal: predicted.bimodal,
            superiority: Some(predicted.superiority),
        }),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
