//! Every trial as a dot, and the excluded trials with their reasons.

use super::context::{Chart, Context};
use super::lateness::{Gaps, gaps, lateness};
use super::tables::{spoiled_figures, spoiling_reasons};
use super::timelines::{Timelines, timelines};
use crate::format::{self, TimeUnit};
use crate::html::charts::rows::{Dot, Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::svg::Marker;
use crate::table::valid_trials;
use results::{CellKey, Figure, HistogramSummary, Retake, TrialRecord, UnavailableMode};
use serde::Serialize;
use statistics::is_excluded;
use std::collections::BTreeMap;

/// One chart per load.
#[derive(Debug, Serialize)]
pub struct TrialSection {
    charts: Vec<Chart>,
    lateness: Vec<Chart>,
    gaps: Vec<Gaps>,
    timelines: Vec<Timelines>,
    any_invalid: bool,
    any_again: bool,
}

pub fn trials(context: &Context) -> Option<TrialSection> {
    let times = || {
        context
            .run
            .trials
            .iter()
            .filter_map(percentiles)
            .flat_map(|(p50_us, p99_us)| [p50_us, p99_us])
            .flatten()
    };
    let unit = TimeUnit::for_times(times());
    let shared: Vec<f64> = times().map(|time_us| time_us / unit.us()).collect();
    let mut charts = Vec::new();
    // Fleet trials are drawn second by second in their own section.
    let of_requests = || context.conditions.all().filter(|at| !at.load.is_fleet());
    let is_alone = of_requests().count() == 1;
    for (index, at) in of_requests().enumerate() {
        let lines: Vec<Line> = context
            .modes
            .iter()
            .filter_map(|mode| row(context, at.cell(*mode), unit))
            .map(Line::Row)
            .collect();
        if lines.is_empty() {
            continue;
        }
        let caption = context.conditions.label(at);
        let what = if at.load.stream.is_some() { "time to the first token" } else { "response time" };
        let axis = format!("{what}, {}", unit.symbol());
        let chart = RowChart { axis, lines, shared: shared.clone(), may_be_logarithmic: true };
        let title = format!("Every trial at {caption}");
        let draw = |width, id: &str| chart.draw_in(width, id, &title);
        charts.push(Chart::in_row(caption, &format!("trials-{index}"), is_alone, draw));
    }
    let has_spoiled = |trial: &&TrialRecord| {
        let figures = [Figure::P50, Figure::P99];
        trial.result.is_some() && figures.into_iter().any(|figure| !trial.verdict.is_usable(figure))
    };
    let any_invalid = context.run.trials.iter().any(|trial| has_spoiled(&trial));
    let any_again = context.run.trials.iter().any(|trial| trial.take() > 1);
    (!charts.is_empty()).then(|| TrialSection {
        charts,
        lateness: lateness(context),
        gaps: gaps(context),
        timelines: timelines(context),
        any_invalid,
        any_again,
    })
}

/// Median and 99th percentile of the times that the load is about, if any request was completed.
fn percentiles(trial: &TrialRecord) -> Option<(Option<f64>, Option<f64>)> {
    let times = trial.leading_times()?;
    (times.count > 0).then_some((times.p50, times.p99))
}

fn row(context: &Context, cell: CellKey<'_>, unit: TimeUnit) -> Option<Row> {
    let mode = cell.mode;
    let trials = context.trials.of(cell);
    if trials.is_empty() {
        return None;
    }
    let style = ModeStyle::for_mode(mode);
    let mut dots = Vec::new();
    for (track, trial) in trials.iter().enumerate() {
        let Some((p50_us, p99_us)) = percentiles(trial) else { continue };
        let again = trial.retake.as_ref();
        let again = again
            .map(|retake| format!(" (rerun of trial {})", retake.of.saturating_add(1)))
            .unwrap_or_default();
        for (figure, time_us, filled) in [(Figure::P50, p50_us, true), (Figure::P99, p99_us, false)] {
            let Some(time_us) = time_us else { continue };
            let spoiled = spoiling_reasons(trial, figure);
            let valid = spoiled.is_none() && trial.verdict.is_usable(figure);
            let fill = if filled && valid { "mark" } else { "hollow" };
            let state = spoiled.map_or_else(String::new, |reasons| format!(", unusable: {reasons}"));
            let name = figure.name();
            dots.push(Dot {
                value: time_us / unit.us(),
                track,
                marker: if valid { style.marker } else { Marker::Cross },
                class: format!("{fill} {}", style.class),
                tip: format!(
                    "trial {}{again}, {mode}: {name} {}{state}",
                    trial.index + 1,
                    unit.time(time_us)
                ),
            });
        }
    }
    Some(Row {
        label: mode.name().to_owned(),
        symbol: Some((style.marker, style.class)),
        value: format!("{}{}", validity(context, cell), unanswered(trials)),
        mark: if dots.is_empty() { Mark::Nothing } else { Mark::Dots(dots) },
    })
}

/// `8 of 8 trials valid, 2 rerun`.
fn validity(context: &Context, key: CellKey<'_>) -> String {
    context.run.summary.cell(key).map_or_else(String::new, |cell| {
        valid_trials(cell.valid, cell.places(), cell.retakes, " trials valid")
    })
}

/// `, p99 > 10 s in 2`: trials whose percentiles fall among requests without a response, and so have no
/// position on the axis.
fn unanswered(trials: &[&TrialRecord]) -> String {
    let of_figure = |figure: Figure| {
        let is_censored = |times: &HistogramSummary| times.requests() > 0 && times.figure(figure).is_none();
        let censored = || trials.iter().filter(|trial| trial.leading_times().is_some_and(is_censored));
        let above_us = censored().filter_map(|trial| trial.leading_above_us()).reduce(f64::min);
        let count = censored().count();
        (count > 0).then(|| format!(", {} {} in {count}", figure.name(), format::above(above_us)))
    };
    of_figure(Figure::P50).or_else(|| of_figure(Figure::P99)).unwrap_or_default()
}

/// Excluded trials, and notes on the others.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    recorded: usize,
    planned: usize,
    trials: Vec<LeftOutTrial>,
    /// Trials with a usable median, but other figures unusable.
    partly: Vec<LeftOutTrial>,
    /// Explanations of the kinds of reasons that occur.
    kinds: Vec<&'static Kind>,
    /// Modes that could not run.
    refused: Vec<UnavailableMode>,
    /// Hints on failed trials.
    hints: Vec<Note>,
    notes: Vec<Note>,
}

/// A kind of reason: the part before the colon.
#[derive(Debug, Serialize)]
struct Kind {
    name: &'static str,
    meaning: &'static str,
}

/// Meaning of each kind of reason, and what helps (docs/method.md, 4).
const KINDS: [Kind; 11] = [
    Kind {
        name: "schedule-lag",
        meaning: "the generator sent late by its own fault, mostly because the CPUs were busy: the figures would include \
                  its lateness. A quieter machine, a lower rate or more repeats help.",
    },
    Kind {
        name: "other-processes",
        meaning: "programs outside the experiment used CPU, which affects modes unequally. Run it again when they have \
                  ended.",
    },
    Kind {
        name: "saturated",
        meaning: "the target did not keep up with the rate: response times are those of a growing queue. Offer less.",
    },
    Kind { name: "errors", meaning: "requests failed: a failure is often faster or slower than a response." },
    Kind {
        name: "path-not-proven",
        meaning: "the proxies’ own counters do not show that the requests took the path of the mode: another \
                  deployment may have been measured.",
    },
    Kind {
        name: "throttled",
        meaning: "a component reached its CPU limit: times would be those of the limit, not of the mode.",
    },
    Kind {
        name: "connections",
        meaning: "not all connections were open at the start: the load was not the requested one.",
    },
    Kind {
        name: "not-observed",
        meaning: "CPU and memory could not be read at both ends of the window: they would cover different times.",
    },
    Kind { name: "nothing-measured", meaning: "no response came within the window." },
    Kind {
        name: "interrupted",
        meaning: "the run was stopped during this trial; what it measured is shown.",
    },
    Kind {
        name: "failed",
        meaning: "a component did not start, died, or stopped responding; the last lines of its log, if any, are with \
                  the trial.",
    },
];

/// The kinds of reasons that occur in these trials.
fn kinds(trials: &[&TrialRecord]) -> Vec<&'static Kind> {
    let is_of = |kind: &&Kind| {
        let mut reasons = trials.iter().flat_map(|trial| &trial.verdict.reasons);
        reasons.any(|reason| reason.split(':').next().is_some_and(|name| name.trim() == kind.name))
    };
    KINDS.iter().filter(is_of).collect()
}

#[derive(Debug, Serialize)]
struct LeftOutTrial {
    number: usize,
    mode: &'static str,
    load: String,
    /// Example: `p99 and beyond`.
    figures: String,
    reasons: Vec<String>,
    /// How it was rerun, and which trial it is a rerun of.
    takes: Option<String>,
    logs: Vec<LogTail>,
}

#[derive(Debug, Serialize)]
struct LogTail {
    component: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Note {
    text: String,
    trials: String,
}

impl LeftOut {
    pub fn new(context: &Context) -> Self {
        let (excluded, valid): (Vec<&TrialRecord>, Vec<&TrialRecord>) =
            context.run.trials.iter().partition(|trial| is_excluded(trial));
        let partly: Vec<&TrialRecord> =
            valid.into_iter().filter(|trial| !trial.verdict.spoiled_figures().is_empty()).collect();
        Self {
            recorded: context.run.summary.trials_recorded,
            planned: context.run.summary.trials_planned,
            kinds: kinds(&[excluded.as_slice(), partly.as_slice()].concat()),
            trials: excluded.iter().map(|trial| left_out(context, trial)).collect(),
            partly: partly.iter().map(|trial| left_out(context, trial)).collect(),
            refused: context.run.host.refused_modes.clone(),
            hints: by_text(&context.run.trials, |trial| &trial.hints),
            notes: notes(&context.run.trials),
        }
    }
}

fn left_out(context: &Context, trial: &TrialRecord) -> LeftOutTrial {
    let mut reasons = trial.verdict.reasons.clone();
    if reasons.is_empty() {
        reasons.push("no reason recorded".to_owned());
    }
    let logs = trial
        .log_tails
        .iter()
        .map(|(component, lines)| LogTail { component: component.clone(), text: lines.join("\n") })
        .collect();
    LeftOutTrial {
        number: trial.index + 1,
        mode: trial.mode.name(),
        load: context.conditions.label(trial.conditions()),
        figures: spoiled_figures(trial),
        reasons,
        takes: takes(context, trial),
        logs,
    }
}

/// `Rerun as trial 7, which is valid.`; `None` if there is a single take.
fn takes(context: &Context, trial: &TrialRecord) -> Option<String> {
    let of = |retake: &Retake| format!("Rerun of trial {}.", retake.of.saturating_add(1));
    let earlier = trial.retake.as_ref().map(of);
    let mut all = context.run.trials.iter();
    let later = all.find(|other| other.retake.as_ref().is_some_and(|retake| retake.of == trial.index));
    let later = later.map(|later| {
        let valid = if is_excluded(later) { "which is excluded too" } else { "which is valid" };
        format!("Rerun as trial {}, {valid}.", later.index + 1)
    });
    let takes: Vec<String> = earlier.into_iter().chain(later).collect();
    (!takes.is_empty()).then(|| takes.join(" "))
}

/// Notes of the valid trials.
fn notes(trials: &[TrialRecord]) -> Vec<Note> {
    by_text(trials.iter().filter(|trial| !is_excluded(trial)), |trial| &trial.verdict.notes)
}

/// Distinct texts of the trials, each with the numbers of its trials.
fn by_text<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord>,
    texts: impl Fn(&'a TrialRecord) -> &'a Vec<String>,
) -> Vec<Note> {
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for trial in trials {
        for text in texts(trial) {
            by_text.entry(text).or_default().push((trial.index + 1).to_string());
        }
    }
    by_text
        .into_iter()
        .map(|(text, numbers)| Note {
            text: text.to_owned(),
            trials: if numbers.len() > 12 {
                format::counted(numbers.len() as u64, "trial", "trials")
            } else {
                format!("{} {}", if numbers.len() == 1 { "trial" } else { "trials" }, numbers.join(", "))
            },
        })
        .collect()
}
