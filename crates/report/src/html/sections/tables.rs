//! Every figure as a table, collapsed by default: for readers who check or copy figures, or cannot see the
//! charts.

use super::context::Context;
use crate::differences::{self, PERCENTILES, difference};
use crate::drivers::over_copies_estimate;
use crate::footprint::label;
use crate::format::{self, Interval, SizeUnit};
use crate::marks;
use crate::table::{Difference, ResultTable, valid_trials};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, Estimate, Figure, Metric, ModeComparison, Role, RoleTotal, TrialRecord};
use serde::Serialize;
use statistics::copies::{ComponentGroup, component_groups};

/// The tables; those without rows are absent.
#[derive(Debug, Serialize)]
pub struct Tables {
    time_unit: &'static str,
    memory_unit: &'static str,
    network_unit: &'static str,
    /// The baseline of the modes.
    floor: &'static str,
    closed_loop: bool,
    of_streams: bool,
    cells: Option<Table>,
    added: Option<Table>,
    comparisons: Option<Table>,
    components: Option<Table>,
    /// Every component, if rows of `components` combine several.
    all_components: Option<Table>,
    trials: Option<Table>,
}

impl Tables {
    pub fn new(context: &Context) -> Self {
        let summary = &context.run.summary;
        let table = ResultTable::new(summary);
        let cells: Vec<&Cell> = context.conditions.all().flat_map(|at| context.cells_of(at)).collect();
        let components = Components::new(context);
        Self {
            time_unit: table.unit.symbol(),
            memory_unit: components.memory_unit.symbol(),
            network_unit: components.network_unit.symbol(),
            floor: table.floor,
            closed_loop: table.closed_loop,
            of_streams: table.of_streams,
            cells: times(context, &cells, &table),
            added: differences::added(summary),
            comparisons: comparisons(context, &table),
            components: components.table(cells.iter().flat_map(|cell| components.rows(cell))),
            all_components: components.table(cells.iter().flat_map(|cell| components.folded_rows(cell))),
            trials: trials(context, &table),
        }
    }
}

/// `None` without rows.
fn table(columns: Vec<Column>, rows: impl IntoIterator<Item = TableRow>) -> Option<Table> {
    let rows: Vec<TableRow> = rows.into_iter().collect();
    (!rows.is_empty()).then(|| Table { columns, groups: vec![Group::new(String::new(), rows)] })
}

fn place_columns() -> Vec<Column> {
    vec![Column::text("Load"), Column::name("Mode")]
}

fn place(context: &Context, cell: &Cell) -> TableRow {
    vec![context.conditions.label(cell.conditions()).into(), cell.mode.name().into()]
}

/// Response times in the table.
const FULL: [(&str, Figure); 6] = [
    ("Mean", Figure::Mean),
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p95", Figure::P95),
    ("p99", Figure::P99),
    ("p99.9", Figure::P99_9),
];

fn times(context: &Context, cells: &[&Cell], shown: &ResultTable) -> Option<Table> {
    let mut columns = place_columns();
    columns.push(Column::number("Valid"));
    columns.extend(FULL.map(|(name, _)| Column::number(name)));
    columns.extend(["Completed/s", "Errors"].map(Column::number));
    columns.extend(["Verdict", "Unusable"].map(Column::prose));
    let row = |cell: &&Cell| {
        let times = cell.response_time_us.as_ref();
        let mut row = place(context, cell);
        row.push(valid_trials(cell.valid, cell.places(), cell.retakes, "").into());
        row.extend(FULL.map(|(_, figure)| match times {
            Some(_) => shown.unit.percentile(times, figure).text().into(),
            None => format::ABSENT.into(),
        }));
        row.extend([
            text(cell.rate_completed, Interval::new),
            format::percent(cell.errors).into(),
            cell.verdict.as_str().into(),
            marks::spoiled(cell).into(),
        ]);
        row
    };
    table(columns, cells.iter().map(row))
}

fn comparisons(context: &Context, shown: &ResultTable) -> Option<Table> {
    let mut columns = place_columns();
    columns.push(Column::text("Against"));
    columns.extend(PERCENTILES.map(|(name, _)| Column::number(name)));
    columns.extend(shown.closed_loop.then(|| Column::number("Throughput, %")));
    columns.push(Column::number("Proxy CPU per request, %"));
    let row = |comparison: &ModeComparison| {
        let times = comparison.leading_times();
        let mut row: TableRow = vec![
            context.conditions.label(comparison.conditions()).into(),
            comparison.mode.name().into(),
            comparison.than.name().into(),
        ];
        row.extend(PERCENTILES.map(|(_, figure)| {
            difference(times.judged(figure), |judged| Difference::new(judged, shown.unit))
        }));
        let throughput = || difference(comparison.judged_throughput(), Difference::percent);
        row.extend(shown.closed_loop.then(throughput));
        row.push(difference(comparison.judged_proxy_cpu(), Difference::percent));
        row
    };
    table(columns, context.run.summary.comparisons.iter().map(row))
}

/// An estimate with its interval in one text; a dash without an estimate.
fn text(estimate: Option<Estimate>, read: impl Fn(&Estimate) -> Interval) -> TableCell {
    estimate.map_or_else(|| format::ABSENT.to_owned(), |estimate| read(&estimate).text()).into()
}

/// Memory, the anonymous part of it, and the working set that a cluster would show.
const MEMORY: [Metric; 3] =
    [Metric::MemoryBytes, Metric::MemoryAnonymousBytes, Metric::MemoryWorkingSetBytes];
/// Received and sent.
const NETWORK: [Metric; 2] = [Metric::NetworkBytesReceivedS, Metric::NetworkBytesSentS];

/// Usage of components.
struct Components<'a> {
    context: &'a Context<'a>,
    memory_unit: SizeUnit,
    network_unit: SizeUnit,
}

impl<'a> Components<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        let components = || context.run.summary.cells.iter().flat_map(|cell| &cell.components);
        let unit = |metrics: &[Metric]| {
            SizeUnit::for_sizes(components().flat_map(|component| {
                metrics.iter().filter_map(|metric| Some(component.estimate(*metric)?.estimate))
            }))
        };
        Self { context, memory_unit: unit(&[Metric::MemoryBytes]), network_unit: unit(&NETWORK) }
    }

    fn table(&self, rows: impl Iterator<Item = TableRow>) -> Option<Table> {
        let mut columns = vec![Column::text("Load"), Column::text("Mode"), Column::name("Component")];
        let figures = ["CPU", "CPU per 1000 requests/s", "Memory", "Of it anonymous", "Working set"];
        columns.extend(figures.into_iter().chain(["Received", "Sent"]).map(Column::number));
        table(columns, rows)
    }

    /// Components, those that are alike together, then all of each role.
    fn rows(&self, cell: &Cell) -> Vec<TableRow> {
        let groups = component_groups(cell);
        let components = groups.iter().map(|group| self.group(cell, group));
        let totals = cell.totals.iter().filter(|total| total.components > 1);
        components.chain(totals.map(|total| self.total(cell, total))).collect()
    }

    /// Each component of those that are alike.
    fn folded_rows(&self, cell: &Cell) -> Vec<TableRow> {
        let folded = component_groups(cell).into_iter().filter(|group| group.components.len() > 1);
        let each = folded.flat_map(|group| group.components.into_iter().map(ComponentGroup::of));
        each.map(|group| self.group(cell, &group)).collect()
    }

    fn group(&self, cell: &Cell, group: &ComponentGroup<'_>) -> TableRow {
        let each = |metric| over_copies_estimate(group.components.iter().map(|one| one.estimate(metric)));
        self.row(cell, label(group), each)
    }

    /// All components of a role together.
    fn total(&self, cell: &Cell, total: &RoleTotal) -> TableRow {
        let name = match total.role {
            Role::Proxy => "all proxies",
            Role::FilterService => "all services of filters",
            _ => "all of the control plane",
        };
        self.row(cell, name.to_owned(), |metric| match metric {
            Metric::CpuCores => Some(total.cpu_cores),
            Metric::CpuCoresPer1000Rps => Some(total.cpu_cores_per_1000_rps),
            Metric::MemoryBytes => total.memory_bytes,
            Metric::MemoryAnonymousBytes => total.memory_anonymous_bytes,
            _ => None,
        })
    }

    fn row(&self, cell: &Cell, name: String, estimate: impl Fn(Metric) -> Option<Estimate>) -> TableRow {
        let sized = |metric, unit: SizeUnit| {
            text(estimate(metric), |bytes| Interval::scaled(bytes, 1.0 / unit.bytes()))
        };
        let mut row = place(self.context, cell);
        row.extend([
            name.into(),
            text(estimate(Metric::CpuCores), format::cores_interval),
            text(estimate(Metric::CpuCoresPer1000Rps), format::cores_interval),
        ]);
        row.extend(MEMORY.map(|metric| sized(metric, self.memory_unit)));
        row.extend(NETWORK.map(|metric| sized(metric, self.network_unit)));
        row
    }
}

/// Response times of a trial in the table.
const OF_TRIAL: [(&str, Figure); 5] = [
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p99", Figure::P99),
    ("p99.9", Figure::P99_9),
    ("Greatest", Figure::Max),
];

fn trials(context: &Context, shown: &ResultTable) -> Option<Table> {
    let retaken = context.run.trials.iter().any(|trial| trial.take() > 1);
    let mut columns = vec![Column::number("Trial"), Column::number("Repeat")];
    columns.extend(retaken.then(|| Column::number("Take")));
    columns.extend(place_columns());
    columns.extend(OF_TRIAL.map(|(name, _)| Column::number(name)));
    columns.extend(["Service time p99", "Schedule lag p99", "Completed"].map(Column::number));
    columns.push(Column::text("Unusable"));
    table(columns, context.run.trials.iter().map(|trial| trial_row(context, trial, shown, retaken)))
}

fn trial_row(context: &Context, trial: &TrialRecord, shown: &ResultTable, retaken: bool) -> TableRow {
    let absent = || format::ABSENT.to_owned();
    let result = trial.result.as_ref().filter(|result| result.response_time_us.count > 0);
    let above_us = result.and_then(|result| result.censored_above_us);
    let time = |time_us: Option<f64>| shown.unit.number_or_above(time_us, above_us);
    let value = |figure, text: String| TableCell::from(text).spoiled(spoiling_reasons(trial, figure));
    let completed = trial.result.as_ref().map(|result| format::count(result.requests.completed));
    let mut row: TableRow = vec![(trial.index + 1).into(), (trial.repeat + 1).into()];
    row.extend(retaken.then(|| trial.take().into()));
    row.extend([context.conditions.label(trial.conditions()).into(), trial.mode.name().into()]);
    row.extend(OF_TRIAL.map(|(_, figure)| {
        value(figure, result.map_or_else(absent, |result| time(result.response_time_us.figure(figure))))
    }));
    row.extend([
        result.map_or_else(absent, |result| time(result.service_time_us.p99)).into(),
        result.map_or_else(absent, |result| time(result.schedule_lag_us.p99)).into(),
        value(Figure::Throughput, completed.unwrap_or_else(absent)),
        TableCell::from(spoiled_figures(trial)).flagged(true),
    ]);
    row
}

/// `p99 and beyond`; empty if every figure is usable.
pub(super) fn spoiled_figures(trial: &TrialRecord) -> String {
    let figures: Vec<Figure> = trial.verdict.spoiled_figures().iter().collect();
    if figures.is_empty() { String::new() } else { marks::named(&figures) }
}

/// Reason why a figure of a trial is unusable; `None` if it is usable.
pub(super) fn spoiling_reasons(trial: &TrialRecord, figure: Figure) -> Option<String> {
    let reasons = trial.verdict.reasons_with_figures().filter(|(_, figures)| figures.contains(figure));
    let reasons: Vec<&str> = reasons.map(|(reason, _)| reason).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
