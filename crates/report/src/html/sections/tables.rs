//! Every figure as a table, collapsed by default: for readers who check or copy figures, or cannot see the
//! charts.

use super::context::Context;
use crate::drivers::over_copies_estimate;
use crate::footprint::label;
use crate::format::{self, Interval, SizeUnit};
use crate::marks;
use crate::table::{Difference, ResultTable, valid_trials};
use results::{
    Cell, ComponentSummary, Estimate, Figure, FindingVerdict, ModeComparison, Role, RoleTotal, TimeFigure,
    TrialRecord,
};
use serde::Serialize;
use statistics::copies::{ComponentGroup, component_groups};

/// The tables.
#[derive(Debug, Serialize)]
pub struct Tables {
    time_unit: &'static str,
    memory_unit: &'static str,
    network_unit: &'static str,
    compares: bool,
    /// The baseline of the modes.
    floor: &'static str,
    closed_loop: bool,
    comparisons: Vec<ComparisonRow>,
    cells: Vec<CellRow>,
    components: Vec<ComponentRow>,
    /// Every component, if rows of `components` combine several.
    all_components: Vec<ComponentRow>,
    /// True if any trial was rerun.
    retaken: bool,
    trials: Vec<TrialRow>,
}

#[derive(Debug, Serialize)]
struct CellRow {
    load: String,
    mode: &'static str,
    valid: String,
    verdict: String,
    completed: String,
    errors: String,
    /// mean, p50, p90, p95, p99, p99.9.
    percentiles: Vec<String>,
    /// Figures that do not cover every trial, with the reason.
    spoiled: String,
    /// p50, p90, p99.
    added: Vec<String>,
}

/// Comparison of two modes.
#[derive(Debug, Serialize)]
struct ComparisonRow {
    load: String,
    mode: &'static str,
    than: &'static str,
    /// p50, p90, p99.
    response: Vec<String>,
    throughput: String,
    proxy_cpu: String,
}

#[derive(Debug, Serialize)]
struct ComponentRow {
    load: String,
    mode: &'static str,
    name: String,
    cpu: String,
    cpu_per_1000: String,
    /// Total memory, its anonymous part, and the working set that a cluster would show.
    memory: [String; 3],
    received: String,
    sent: String,
}

#[derive(Debug, Serialize)]
struct TrialRow {
    number: usize,
    repeat: usize,
    /// Number of the take of this planned trial.
    take: usize,
    load: String,
    mode: &'static str,
    /// Response time: p50, p90, p99, p99.9, max.
    response: Vec<TrialValue>,
    service_p99: String,
    lag_p99: String,
    completed: TrialValue,
    /// Figures that are not usable.
    spoiled: String,
}

/// A figure of a trial.
#[derive(Debug, Serialize)]
struct TrialValue {
    text: String,
    /// Reason why it is not usable.
    spoiled: Option<String>,
}

impl TrialValue {
    fn new(trial: &TrialRecord, figure: Figure, text: String) -> Self {
        Self { text, spoiled: spoiling_reasons(trial, figure) }
    }
}

impl Tables {
    pub fn new(context: &Context) -> Self {
        let table = ResultTable::new(&context.run.summary);
        let components = || context.run.summary.cells.iter().flat_map(|cell| &cell.components);
        let memory_unit = SizeUnit::for_sizes(
            components().filter_map(|component| component.memory_bytes.map(|memory| memory.estimate)),
        );
        let network_unit = SizeUnit::for_sizes(components().flat_map(|component| {
            [component.network_bytes_received_s, component.network_bytes_sent_s]
                .into_iter()
                .flatten()
                .map(|traffic| traffic.estimate)
        }));
        let cells_in_order: Vec<&Cell> =
            context.conditions.all().flat_map(|at| context.cells_of(at)).collect();
        Self {
            time_unit: table.unit.symbol(),
            memory_unit: memory_unit.symbol(),
            network_unit: network_unit.symbol(),
            compares: table.compares,
            floor: table.floor,
            closed_loop: table.closed_loop,
            comparisons: context
                .run
                .summary
                .comparisons
                .iter()
                .map(|comparison| comparison_row(context, comparison, &table))
                .collect(),
            cells: cells_in_order.iter().map(|cell| cell_row(context, cell, &table)).collect(),
            components: cells_in_order
                .iter()
                .flat_map(|cell| {
                    let groups = component_groups(cell);
                    let components = groups
                        .iter()
                        .map(|group| component_row(context, cell, group, memory_unit, network_unit));
                    let totals = cell.totals.iter().filter(|total| total.components > 1);
                    let totals = totals.map(|total| total_row(context, cell, total, memory_unit));
                    components.chain(totals).collect::<Vec<_>>()
                })
                .collect(),
            all_components: cells_in_order
                .iter()
                .flat_map(|cell| {
                    let groups = component_groups(cell);
                    let folded = groups.into_iter().filter(|group| group.components.len() > 1);
                    let each = folded.flat_map(|group| group.components.into_iter().map(ComponentGroup::of));
                    each.map(|group| component_row(context, cell, &group, memory_unit, network_unit))
                        .collect::<Vec<_>>()
                })
                .collect(),
            retaken: context.run.trials.iter().any(|trial| trial.take() > 1),
            trials: context.run.trials.iter().map(|trial| trial_row(context, trial, &table)).collect(),
        }
    }
}

fn cell_row(context: &Context, cell: &Cell, table: &ResultTable) -> CellRow {
    let percentiles = cell.response_time_us.as_ref().map_or_else(
        || vec![format::ABSENT.to_owned(); FULL.len()],
        |all| FULL.iter().map(|figure| table.unit.percentile(Some(all), *figure).text()).collect(),
    );
    let added = match &cell.added_us {
        Some(added) => DIFFERENCES.map(|figure| difference(added.judged(figure), table)).into(),
        None => vec![format::ABSENT.to_owned(); 3],
    };
    CellRow {
        load: context.conditions.label(cell.conditions()),
        mode: cell.mode.name(),
        valid: valid_trials(cell.valid, cell.places(), cell.retakes),
        verdict: cell.verdict.clone(),
        completed: cell
            .rate_completed
            .as_ref()
            .map_or_else(|| format::ABSENT.to_owned(), |rate| Interval::new(rate).text()),
        errors: format::percent(cell.errors),
        percentiles,
        spoiled: marks::spoiled(cell),
        added,
    }
}

/// Response times in the table.
const FULL: [TimeFigure; 6] =
    [TimeFigure::Mean, TimeFigure::P50, TimeFigure::P90, TimeFigure::P95, TimeFigure::P99, TimeFigure::P99_9];

/// Percentiles whose differences are in the table.
const DIFFERENCES: [TimeFigure; 3] = [TimeFigure::P50, TimeFigure::P90, TimeFigure::P99];

fn difference(judged: Option<(Estimate, FindingVerdict)>, table: &ResultTable) -> String {
    let text = judged.map(|(estimate, verdict)| Difference::new((&estimate, verdict), table.unit).text());
    text.unwrap_or_else(|| format::ABSENT.to_owned())
}

fn comparison_row(context: &Context, comparison: &ModeComparison, table: &ResultTable) -> ComparisonRow {
    let times = comparison.response_time_us;
    let change = |change: Option<(Estimate, FindingVerdict)>| {
        let text = change.map(|(change, verdict)| Difference::percent((&change, verdict)).text());
        text.unwrap_or_else(|| format::ABSENT.to_owned())
    };
    ComparisonRow {
        load: context.conditions.label(comparison.conditions()),
        mode: comparison.mode.name(),
        than: comparison.than.name(),
        response: DIFFERENCES.map(|figure| difference(times.judged(figure), table)).into(),
        throughput: change(comparison.judged_throughput()),
        proxy_cpu: change(comparison.judged_proxy_cpu()),
    }
}

/// All components of a role together.
fn total_row(context: &Context, cell: &Cell, total: &RoleTotal, memory_unit: SizeUnit) -> ComponentRow {
    let name = match total.role {
        Role::Proxy => "all proxies",
        Role::FilterService => "all services of filters",
        _ => "all of the control plane",
    };
    let absent = || format::ABSENT.to_owned();
    let memory = |memory: Estimate| Interval::scaled(&memory, 1.0 / memory_unit.bytes()).text();
    ComponentRow {
        load: context.conditions.label(cell.conditions()),
        mode: cell.mode.name(),
        name: name.to_owned(),
        cpu: format::cores_interval(&total.cpu_cores).text(),
        cpu_per_1000: format::cores_interval(&total.cpu_cores_per_1000_rps).text(),
        memory: [total.memory_bytes, total.memory_anonymous_bytes, None]
            .map(|bytes| bytes.map_or_else(absent, memory)),
        received: absent(),
        sent: absent(),
    }
}

fn component_row(
    context: &Context,
    cell: &Cell,
    group: &ComponentGroup<'_>,
    memory_unit: SizeUnit,
    network_unit: SizeUnit,
) -> ComponentRow {
    let each = |read: fn(&ComponentSummary) -> Option<Estimate>| {
        over_copies_estimate(group.components.iter().map(|component| read(component)))
    };
    let text = |estimate: Option<Estimate>, text: &dyn Fn(&Estimate) -> Interval| {
        estimate.map_or_else(|| format::ABSENT.to_owned(), |estimate| text(&estimate).text())
    };
    let sized = |estimate: Option<Estimate>, unit: SizeUnit| {
        text(estimate, &|estimate| Interval::scaled(estimate, 1.0 / unit.bytes()))
    };
    ComponentRow {
        load: context.conditions.label(cell.conditions()),
        mode: cell.mode.name(),
        name: label(group),
        cpu: text(each(|component| Some(component.cpu_cores)), &format::cores_interval),
        cpu_per_1000: text(each(|component| Some(component.cpu_cores_per_1000_rps)), &format::cores_interval),
        memory: [
            each(|component| component.memory_bytes),
            each(|component| component.memory_anonymous_bytes),
            each(|component| component.memory_working_set_bytes),
        ]
        .map(|memory| sized(memory, memory_unit)),
        received: sized(each(|component| component.network_bytes_received_s), network_unit),
        sent: sized(each(|component| component.network_bytes_sent_s), network_unit),
    }
}

fn trial_row(context: &Context, trial: &TrialRecord, table: &ResultTable) -> TrialRow {
    let absent = || format::ABSENT.to_owned();
    let result = trial.result.as_ref().filter(|result| result.response_time_us.count > 0);
    let above_us = result.and_then(|result| result.censored_above_us);
    let time = |time_us: Option<f64>| table.unit.number_or_above(time_us, above_us);
    TrialRow {
        number: trial.index + 1,
        repeat: trial.repeat + 1,
        take: trial.take(),
        load: context.conditions.label(trial.conditions()),
        mode: trial.mode.name(),
        response: [Figure::P50, Figure::P90, Figure::P99, Figure::P99_9, Figure::Max]
            .map(|figure| {
                let text = result.map_or_else(absent, |result| time(result.response_time_us.figure(figure)));
                TrialValue::new(trial, figure, text)
            })
            .into(),
        service_p99: result.map_or_else(absent, |result| time(result.service_time_us.p99)),
        lag_p99: result.map_or_else(absent, |result| time(result.schedule_lag_us.p99)),
        completed: TrialValue::new(
            trial,
            Figure::Throughput,
            trial.result.as_ref().map_or_else(absent, |result| format::count(result.requests.completed)),
        ),
        spoiled: spoiled_figures(trial),
    }
}

/// `p99 and beyond`; empty if every figure is usable.
pub(super) fn spoiled_figures(trial: &TrialRecord) -> String {
    let figures: Vec<Figure> = trial.verdict.spoiled_figures().iter().collect();
    if figures.is_empty() { String::new() } else { marks::named(&figures) }
}

/// Why a figure of a trial is not usable; `None` if it is.
pub(super) fn spoiling_reasons(trial: &TrialRecord, figure: Figure) -> Option<String> {
    let reasons = trial.verdict.reasons_with_figures().filter(|(_, figures)| figures.contains(figure));
    let reasons: Vec<&str> = reasons.map(|(reason, _)| reason).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
