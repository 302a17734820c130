//! Each trial second by second, by load.

use super::context::{Chart, Context};
use crate::format;
use crate::html::charts::timeline::{self, Axes, Span};
use crate::html::style::ModeStyle;
use results::TrialRecord;
use serde::Serialize;
use statistics::is_excluded;

/// Maximum number of spans over the charts of all trials, to limit the size of the page.
const MAX_SPANS: usize = 4000;
/// Maximum number of spans in one chart.
pub const MAX_SPANS_PER_TRIAL: usize = 60;
/// Fewer spans would not show the course of a trial.
const MIN_SPANS_PER_TRIAL: usize = 8;

/// Trials of one load.
#[derive(Debug, Serialize)]
pub struct Timelines {
    /// Label of the load.
    caption: String,
    /// Number of trials, such as `15 trials`.
    trials: String,
    charts: Vec<Chart>,
}

/// Trials with series data, by load.
pub fn timelines(context: &Context) -> Vec<Timelines> {
    let spans = MAX_SPANS / context.run.trials.len().max(1);
    let spans = spans.clamp(MIN_SPANS_PER_TRIAL, MAX_SPANS_PER_TRIAL);
    let loads = context.conditions.all().map(|at| {
        let trials = context.modes.iter().flat_map(|mode| context.trials.of(at.cell(*mode)));
        let charts = charts(trials.copied(), spans);
        Timelines {
            caption: context.conditions.label(at),
            trials: format::counted(charts.len() as u64, "trial", "trials"),
            charts,
        }
    });
    loads.filter(|load| !load.charts.is_empty()).collect()
}

/// Charts of the trials with series data, on common axes, with at most `spans` spans each.
pub fn charts<'a>(trials: impl Iterator<Item = &'a TrialRecord>, spans: usize) -> Vec<Chart> {
    let trials: Vec<(&TrialRecord, f64, Vec<Span>)> = trials
        .filter_map(|trial| {
            let result = trial.result.as_ref()?;
            Some((trial, result.duration_s, timeline::spans(&result.series, result.duration_s, spans)))
        })
        .filter(|(.., spans)| !spans.is_empty())
        .collect();
    let axes = Axes::new(&trials.iter().flat_map(|(.., spans)| spans).collect::<Vec<_>>());
    trials.iter().map(|(trial, duration_s, spans)| figure(trial, *duration_s, spans, &axes)).collect()
}

fn figure(trial: &TrialRecord, duration_s: f64, spans: &[Span], axes: &Axes) -> Chart {
    let number = trial.index + 1;
    let state = if is_excluded(trial) { ", excluded" } else { "" };
    let caption = format!("Trial {number}, {}, repeat {}{state}", trial.mode, trial.repeat + 1);
    let class = ModeStyle::for_mode(trial.mode).class;
    let svg = timeline::chart(&format!("seconds-{number}"), &caption, class, spans, axes, duration_s);
    Chart::new(caption, svg)
}
