//! Every trial as a dot, and what was left out and why.

use super::{Context, Figure};
use crate::format::{self, TimeUnit};
use crate::html::charts::rows::{Dot, Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::svg::Marker;
use experiment::Mode;
use experiment::schema::{LoadPoint, RefusedMode, TrialRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// A chart for each load.
#[derive(Debug, Serialize)]
pub struct TrialSection {
    charts: Vec<Figure>,
    any_invalid: bool,
}

pub fn trials(context: &Context) -> Option<TrialSection> {
    let times =
        || context.run.trials.iter().filter_map(percentiles).flat_map(|(p50_us, p99_us)| [p50_us, p99_us]);
    let unit = TimeUnit::for_times(times());
    let shared: Vec<f64> = times().map(|time_us| time_us / unit.us()).collect();
    let mut charts = Vec::new();
    for (index, load) in context.loads.loads().iter().enumerate() {
        let lines: Vec<Line> =
            context.modes.iter().filter_map(|mode| row(context, *mode, load, unit)).map(Line::Row).collect();
        if lines.is_empty() {
            continue;
        }
        let caption = context.loads.label(load);
        let axis = format!("response time, {}", unit.symbol());
        let chart = RowChart { axis, lines, shared: shared.clone(), may_be_logarithmic: true };
        let svg = chart.draw(&format!("trials-{index}"), &format!("Every trial at {caption}"));
        charts.push(Figure { caption, svg });
    }
    let any_invalid = context.run.trials.iter().any(|trial| !trial.verdict.valid && trial.result.is_some());
    (!charts.is_empty()).then_some(TrialSection { charts, any_invalid })
}

/// Median and 99th percentile of the response time, where any request was completed.
fn percentiles(trial: &TrialRecord) -> Option<(f64, f64)> {
    let times = &trial.result.as_ref()?.response_time_us;
    (times.count > 0).then_some((times.p50, times.p99))
}

fn row(context: &Context, mode: Mode, load: &LoadPoint, unit: TimeUnit) -> Option<Row> {
    let trials: Vec<&TrialRecord> =
        context.run.trials.iter().filter(|trial| trial.mode == mode && trial.load == *load).collect();
    if trials.is_empty() {
        return None;
    }
    let style = ModeStyle::of(mode);
    let mut dots = Vec::new();
    for (track, trial) in trials.iter().enumerate() {
        let Some((p50_us, p99_us)) = percentiles(trial) else { continue };
        let valid = trial.verdict.valid;
        for (name, time_us, filled) in [("p50", p50_us, true), ("p99", p99_us, false)] {
            let fill = if filled && valid { "mark" } else { "hollow" };
            let state = if valid { "" } else { ", left out" };
            dots.push(Dot {
                value: time_us / unit.us(),
                track,
                marker: if valid { style.marker } else { Marker::Cross },
                class: format!("{fill} {}", style.class),
                tip: format!("trial {}, {mode}: {name} {}{state}", trial.index + 1, unit.time(time_us)),
            });
        }
    }
    let valid = trials.iter().filter(|trial| trial.verdict.valid).count();
    Some(Row {
        label: mode.name().to_owned(),
        symbol: Some((style.marker, style.class)),
        value: format!("{valid} of {} valid", trials.len()),
        mark: if dots.is_empty() { Mark::Nothing } else { Mark::Dots(dots) },
    })
}

/// Trials that are in no estimate, and what to know of those that are.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    recorded: usize,
    planned: usize,
    trials: Vec<LeftOutTrial>,
    /// Modes that could not run.
    refused: Vec<RefusedMode>,
    notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
struct LeftOutTrial {
    number: usize,
    mode: &'static str,
    load: String,
    reasons: Vec<String>,
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
        let invalid = context.run.trials.iter().filter(|trial| !trial.verdict.valid);
        Self {
            recorded: context.run.summary.trials_recorded,
            planned: context.run.summary.trials_planned,
            trials: invalid.map(|trial| left_out(context, trial)).collect(),
            refused: context.run.host.refused_modes.clone(),
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
        load: context.loads.label(&trial.load),
        reasons,
        logs,
    }
}

/// Notes of the valid trials, each once, with the trials that carry it.
fn notes(trials: &[TrialRecord]) -> Vec<Note> {
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.verdict.valid) {
        for note in &trial.verdict.notes {
            by_text.entry(note).or_default().push((trial.index + 1).to_string());
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
