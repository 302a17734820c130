//! Figures that others published for the same question, beside this run's own. The experiment brings them along.

use crate::findings::words;
use experiment::Experiment;
use experiment::published::{PublishedPercentile, ReferenceFigure, ReferenceValue};
use experiment::schema::{
    AddedLatency, Cell, ComponentSummary, Estimate, Percentiles, PublishedFigure, Role, Summary,
};

/// Every published figure of a mode that the run has or was to have, with what the run measured for it.
pub(crate) fn figures(experiment: &Experiment, summary: &Summary) -> Vec<PublishedFigure> {
    let is_of_the_run = |figure: &&ReferenceFigure| {
        let refused = summary.host.refused_modes.iter().any(|refused| refused.mode == figure.mode);
        refused || experiment.modes.contains(&figure.mode)
    };
    let sources = experiment.published.iter();
    sources
        .flat_map(|source| {
            source.figures.iter().filter(is_of_the_run).map(|figure| {
                let measured = measured(figure, summary);
                PublishedFigure {
                    source: source.source.clone(),
                    what: what(figure),
                    value: value(figure.value),
                    measured: measured.as_ref().map(|measured| measured.text.clone()),
                    ratio: measured.map(|measured| measured.mean / in_base_units(figure.value)),
                    differs: source.differs.clone(),
                }
            })
        })
        .collect()
}

/// What a run has for a figure.
struct Measured {
    text: String,
    /// Cores, bytes or microseconds.
    mean: f64,
}

fn measured(figure: &ReferenceFigure, summary: &Summary) -> Option<Measured> {
    let cell = cell(figure, summary)?;
    match figure.value {
        ReferenceValue::Cpu(_) => {
            resource(figure, cell, words::cores, |component| Some(component.cpu_cores_per_1000_rps))
        }
        ReferenceValue::Memory(_) => {
            resource(figure, cell, words::memory, |component| component.memory_bytes)
        }
        ReferenceValue::ResponseTime(percentile, _) => {
            cell.response_time_us.map(|times| latency(&response_time(&times, percentile)))
        }
        ReferenceValue::Added(percentile, _) => {
            cell.added_us.map(|times| latency(&added(&times, percentile)))
        }
    }
}

/// The cell at the figure's rate, or at the lowest where it names none.
fn cell<'a>(figure: &ReferenceFigure, summary: &'a Summary) -> Option<&'a Cell> {
    let fits = |cell: &&Cell| {
        let at_the_rate = figure.rate.is_none() || cell.load.rate == figure.rate;
        cell.mode == figure.mode && cell.valid > 0 && at_the_rate
    };
    summary.cells.iter().find(fits)
}

/// Of the component that the figure names, or of each proxy.
fn resource(
    figure: &ReferenceFigure,
    cell: &Cell,
    in_words: impl Fn(&Estimate) -> String,
    read: impl Fn(&ComponentSummary) -> Option<Estimate>,
) -> Option<Measured> {
    let is_meant = |component: &&ComponentSummary| match &figure.component {
        Some(name) => component.name == *name,
        None => component.role == Role::Proxy,
    };
    let components = cell.components.iter().filter(is_meant);
    let estimates: Vec<(&str, Estimate)> =
        components.filter_map(|component| Some((component.name.as_str(), read(component)?))).collect();
    let text: Vec<String> =
        estimates.iter().map(|(name, estimate)| format!("{name} {}", in_words(estimate))).collect();
    let sum: f64 = estimates.iter().map(|(_, estimate)| estimate.estimate).sum();
    (!estimates.is_empty()).then(|| Measured { text: text.join(", "), mean: sum / estimates.len() as f64 })
}

fn latency(estimate: &Estimate) -> Measured {
    Measured { text: words::latency(estimate), mean: estimate.estimate }
}

fn response_time(times: &Percentiles, percentile: PublishedPercentile) -> Estimate {
    match percentile {
        PublishedPercentile::P50 => times.p50,
        PublishedPercentile::P90 => times.p90,
        PublishedPercentile::P99 => times.p99,
    }
}

fn added(times: &AddedLatency, percentile: PublishedPercentile) -> Estimate {
    match percentile {
        PublishedPercentile::P50 => times.p50,
        PublishedPercentile::P90 => times.p90,
        PublishedPercentile::P99 => times.p99,
    }
}

/// What was measured, in words.
fn what(figure: &ReferenceFigure) -> String {
    let of_whom = figure.component.as_deref().unwrap_or("each proxy");
    let what = match figure.value {
        ReferenceValue::Cpu(_) => format!("CPU of {of_whom} for every 1000 requests/s"),
        ReferenceValue::Memory(_) => format!("memory of {of_whom}"),
        ReferenceValue::ResponseTime(percentile, _) => format!("{} of the response time", percentile.name()),
        ReferenceValue::Added(percentile, _) => format!("added to the {} of no mesh", percentile.name()),
    };
    let rate = figure.rate.map(|rate| format!(" at {}", words::rate(rate))).unwrap_or_default();
    format!("{}: {what}{rate}", figure.mode)
}

/// The published value with its unit.
fn value(value: ReferenceValue) -> String {
    match value {
        ReferenceValue::Cpu(cores) => words::cores_value(cores),
        ReferenceValue::Memory(bytes) => {
            words::memory(&Estimate { estimate: bytes as f64, low: None, high: None })
        }
        ReferenceValue::ResponseTime(..) | ReferenceValue::Added(..) => {
            words::latency_value(in_base_units(value))
        }
    }
}

/// Cores, bytes or microseconds.
fn in_base_units(value: ReferenceValue) -> f64 {
    match value {
        ReferenceValue::Cpu(cores) => cores,
        ReferenceValue::Memory(bytes) => bytes as f64,
        ReferenceValue::ResponseTime(_, time) | ReferenceValue::Added(_, time) => time.as_secs_f64() * 1e6,
    }
}
