//! Sentences of a comparison of finished runs beside its rows.

use super::figure;
use crate::format::counted;
use crate::history::ranges;
use results::{BetweenRuns, ComparedFigure, Comparison, FinishedRuns, InconclusiveReason};
use statistics::comparison::{ALARM_RATE, MISS_RATE};
use statistics::words;

/// Headline without a history.
pub(super) const WITHOUT_HISTORY: &str = "Inconclusive: run to run variation unknown: add runs to a history";

/// Cell of a figure in words, and the judged run if there are several: `sidecar at 1000 requests/s`, `1000 requests/s` of a load.
/// `None` for the only load of unknown strength.
pub(crate) fn place(figure: &ComparedFigure) -> Option<String> {
    let runs = figure.between_runs.as_ref();
    let load = &figure.cell.load;
    let cell = if runs.is_some_and(|runs| runs.without_mode) {
        let is_known = load.rate.is_some() || load.clients.is_some();
        is_known.then(|| words::offered(load))
    } else {
        Some(words::place(figure.cell.key()))
    };
    let run = runs.and_then(|runs| runs.head_run.as_deref());
    match (cell, run) {
        (Some(cell), Some(run)) => Some(format!("{cell} in {run}")),
        (None, Some(run)) => Some(run.to_owned()),
        (cell, None) => cell,
    }
}

/// The same for a column that every figure has.
pub(super) fn cell(figure: &ComparedFigure) -> String {
    place(figure).unwrap_or_else(|| "load".to_owned())
}

/// Judged runs and runs of the history: `1 + 12`.
pub(super) fn runs(figure: &ComparedFigure) -> Option<String> {
    let runs = figure.between_runs.as_ref().filter(|runs| runs.superiority.is_some())?;
    Some(format!("{} + {}", figure.ratio.map_or(0, |ratio| ratio.n), runs.runs))
}

/// True if nothing shows the variation between runs.
pub(super) fn is_without_history(comparison: &Comparison) -> bool {
    comparison.figures.iter().any(|figure| figure.reason == Some(InconclusiveReason::RunVariationUnknown))
}

/// Differences between environments, said before all figures.
pub(super) fn environment(comparison: &Comparison, finished: &FinishedRuns) -> Vec<String> {
    let changes = comparison.environment_changes.iter();
    match finished.history {
        None => changes.map(|change| format!("unknown environment: {change}")).collect(),
        Some(_) => changes.cloned().collect(),
    }
}

pub(super) fn notes(comparison: &Comparison, finished: &FinishedRuns) -> Vec<String> {
    let mut notes = Vec::new();
    let runs = |runs: &[String]| runs.join(", ");
    match &finished.history {
        None => notes.push(format!("base: {}", runs(&comparison.base.settings))),
        Some(history) => {
            notes.push(format!(
                "base: {} of {} in {}{}",
                counted(history.used as u64, "run", "runs"),
                history.runs,
                history.file,
                skipped(&history.skipped_lines)
            ));
        }
    }
    notes.push(format!("head: {}", runs(&comparison.head.settings)));
    notes.push(method(comparison, finished));
    if finished.history.is_some() {
        notes.extend(super::margins(comparison));
    }
    notes.extend(comparison.figures.iter().filter_map(bimodal));
    notes.extend(comparison.figures.iter().filter_map(since));
    notes.extend(finished.not_compared.iter().map(|text| format!("not compared: {text}")));
    notes.extend(finished.limits.iter().cloned());
    notes
}

/// `; line 12 cannot be read and is left out`.
pub(crate) fn skipped(lines: &[usize]) -> String {
    match lines {
        [] => String::new(),
        [one] => format!("; line {one} cannot be read and is left out"),
        several => format!("; lines {} cannot be read and are left out", ranges(several)),
    }
}

fn method(comparison: &Comparison, finished: &FinishedRuns) -> String {
    if finished.history.is_none() {
        return "intervals cover what varied within both runs; how far runs of the same state differ is unknown, so no figure is \
                judged"
            .to_owned();
    }
    let deviations = comparison.figures.iter().filter_map(|figure| figure.between_runs.as_ref()?.deviation);
    let widest = deviations.fold(0.0, f64::max);
    format!(
        "if nothing changed, at most {} of comparisons call any figure worse or better; a figure that differs by its margin is \
         called equivalent in at most {}. Runs of the history differ by up to {} (standard deviation), from which intervals \
         follow; n: judged runs + runs since the last change",
        figure::percent(ALARM_RATE),
        figure::percent(MISS_RATE),
        figure::percent(widest)
    )
}

/// The two modes of a figure, with the probability of superiority.
fn bimodal(compared: &ComparedFigure) -> Option<String> {
    let BetweenRuns { bimodal, superiority, .. } = compared.between_runs.as_ref()?;
    Some(format!(
        "bimodal: {}: {}; a judged run is worse than one of the history with a probability of {}",
        name(compared),
        figure::modes(compared.key, (*bimodal)?),
        figure::percent((*superiority)?)
    ))
}

fn since(compared: &ComparedFigure) -> Option<String> {
    let BetweenRuns { since, runs, .. } = compared.between_runs.as_ref()?;
    let since = since.as_ref()?;
    Some(format!(
        "{}: the history changed at {since}; {} from there on count",
        name(compared),
        counted(*runs as u64, "run", "runs")
    ))
}

/// Name of a figure with its place: `p50 of sidecar at 1000 requests/s`, `p50 at 1000 requests/s` of a load.
pub(super) fn name(compared: &ComparedFigure) -> String {
    let label = figure::label(compared.key);
    let Some(place) = place(compared) else { return label };
    let load = compared.between_runs.as_ref().filter(|runs| runs.without_mode).map(|_| &compared.cell.load);
    let preposition = match load {
        Some(load) if load.rate.is_some() => "at",
        Some(load) if load.clients.is_some() => "with",
        _ => "of",
    };
    format!("{label} {preposition} {place}")
}
