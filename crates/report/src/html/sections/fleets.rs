//! Fleets of simulated proxies: tables by cell, convergence distributions, a breakdown of the time, and each
//! trial's timeline.

use super::context::{Chart, Context};
use crate::fleets::FleetTable;
use crate::format;
use crate::html::charts::percentiles::{Axes, Subject, chart};
use crate::html::charts::{WIDTH, fleet_timeline};
use crate::html::curves::Curve;
use crate::html::style::ModeStyle;
use crate::witnesses::{WitnessRow, rows};
use results::{Conditions, FleetEvent, FleetResult, TrialRecord};
use serde::Serialize;
use statistics::is_excluded;

/// Maximum number of timelines, to limit the size of the page.
const MAX_TIMELINES: usize = 24;
/// Maximum number of events listed under a timeline.
const MAX_EVENTS: usize = 40;

/// Tables and charts.
#[derive(Debug, Serialize)]
pub struct FleetSection {
    table: FleetTable,
    distributions: Vec<Chart>,
    logarithmic: bool,
    /// Real sidecars beside the fleets.
    witnesses: Vec<Witnessed>,
    timelines: Vec<Timeline>,
    /// Number of trials without a chart.
    further: usize,
}

/// Real sidecars beside the fleets under one condition.
#[derive(Debug, Serialize)]
struct Witnessed {
    label: String,
    rows: Vec<WitnessRow>,
}

/// A trial second by second.
#[derive(Debug, Serialize)]
struct Timeline {
    figure: Chart,
    /// Events other than changes that were made and arrived.
    events: Vec<String>,
}

/// `None` for a run without fleets.
pub fn fleets(context: &Context) -> Option<FleetSection> {
    let table = FleetTable::new(&context.run.summary)?;
    let curves: Vec<Curve> = context
        .conditions
        .all()
        .flat_map(|at| context.modes.iter().map(move |mode| (at, *mode)))
        .filter_map(|(at, mode)| Curve::of_convergence(at.cell(mode), &context.trials).ok().flatten())
        .collect();
    let axes = Axes::new(&curves, WIDTH);
    let figure = |(index, curve): (usize, &Curve)| {
        let label = context.conditions.label(curve.conditions());
        let draw = |width, id: &str| chart(id, &label, &[curve], &axes.in_width(width), Subject::Convergence);
        Chart::in_row(label.clone(), &format!("convergence-{index}"), curves.len() == 1, draw)
    };
    let with_fleet: Vec<(&TrialRecord, &FleetResult)> =
        context.run.trials.iter().filter_map(|trial| Some((trial, trial.fleet()?))).collect();
    let with_series = with_fleet.iter().filter(|(_, fleet)| !fleet.series.is_empty());
    let witnessed = |at: Conditions<'_>| {
        let of_condition =
            with_fleet.iter().filter(|(trial, _)| !is_excluded(trial) && trial.conditions() == at);
        let rows = rows(of_condition.flat_map(|(_, fleet)| &fleet.witnesses));
        (!rows.is_empty()).then(|| Witnessed { label: context.conditions.label(at), rows })
    };
    Some(FleetSection {
        table,
        witnesses: context.conditions.all().filter_map(witnessed).collect(),
        logarithmic: axes.is_logarithmic(),
        distributions: curves.iter().enumerate().map(figure).collect(),
        timelines: with_series
            .clone()
            .take(MAX_TIMELINES)
            .map(|(trial, fleet)| timeline(context, trial, fleet))
            .collect(),
        further: with_series.count().saturating_sub(MAX_TIMELINES),
    })
}

fn timeline(context: &Context, trial: &TrialRecord, fleet: &FleetResult) -> Timeline {
    let number = trial.index + 1;
    let state = if is_excluded(trial) { ", excluded" } else { "" };
    let label = context.conditions.label(trial.conditions());
    let caption = format!("Trial {number}, {label}, repeat {}{state}", trial.repeat + 1);
    let class = ModeStyle::for_mode(trial.mode).class;
    let id = format!("fleet-seconds-{number}");
    let svg = fleet_timeline::chart(&id, &caption, class, &fleet.series, &fleet.events);
    Timeline { figure: Chart::new(caption, svg), events: events(&fleet.events) }
}

/// Events other than changes, which are in the tables.
fn events(all: &[FleetEvent]) -> Vec<String> {
    let told: Vec<&FleetEvent> = all.iter().filter(|event| event.kind != "change").collect();
    let mut texts: Vec<String> =
        told.iter().take(MAX_EVENTS).map(|event| fleet_timeline::describe(event)).collect();
    if told.len() > MAX_EVENTS {
        let further = (told.len() - MAX_EVENTS) as u64;
        texts.push(format!("and {} more", format::counted(further, "event", "events")));
    }
    texts
}
