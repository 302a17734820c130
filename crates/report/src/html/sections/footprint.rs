//! Configuration counts of each proxy, and its memory before, under and after the load.

use super::context::{Chart, Context};
use super::resources::{bar, with_anonymous};
use crate::footprint::{self, FootprintRow, FootprintTable, Sort};
use crate::format::{self, Interval, SizeUnit};
use crate::html::charts::rows::{Line, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::tables::{self, Column, TableCell, TableRow};
use results::{Metric, Mode, Role};
use serde::Serialize;

/// Tables of the configurations, and a memory chart per mode.
#[derive(Debug, Serialize)]
pub struct FootprintSection {
    size_unit: &'static str,
    memory_unit: &'static str,
    time_unit: &'static str,
    times: bool,
    /// One per sort of proxy: each sort counts different kinds.
    tables: Vec<Table>,
    warnings: Vec<String>,
    charts: Vec<Chart>,
    /// Charts of the components that configure the proxies. They are separate because their memory would
    /// dwarf that of the proxies.
    folded: Vec<Chart>,
    /// Every component under every load, for the table of all figures.
    full: tables::Table,
}

/// Proxies that count the same kinds.
#[derive(Debug, Serialize)]
struct Table {
    caption: &'static str,
    kinds: Vec<&'static str>,
    groups: Vec<Group>,
}

/// The proxies of one mode, in a mesh of one size.
#[derive(Debug, Serialize)]
struct Group {
    mode: String,
    class: &'static str,
    rows: Vec<ConfigurationRow>,
}

#[derive(Debug, Serialize)]
struct ConfigurationRow {
    name: String,
    size: Value,
    counts: Vec<String>,
    configured_in: Value,
}

/// Memory of a component in the table of all figures, with the columns.
const MEMORY: [(&str, Metric); 10] = [
    ("Memory before", Metric::MemoryBeforeLoadBytes),
    ("Under load", Metric::MemoryBytes),
    ("After", Metric::MemoryAfterLoadBytes),
    ("Of it anonymous before", Metric::MemoryAnonymousBeforeLoadBytes),
    ("Under load", Metric::MemoryAnonymousBytes),
    ("After", Metric::MemoryAnonymousAfterLoadBytes),
    ("Heap in use before", Metric::HeapAllocatedBeforeLoadBytes),
    ("After", Metric::HeapAllocatedAfterLoadBytes),
    ("Heap held before", Metric::HeapBeforeLoadBytes),
    ("After", Metric::HeapAfterLoadBytes),
];

/// A figure with its interval below it; both empty without an estimate.
#[derive(Debug, Default, Serialize)]
struct Value {
    estimate: Option<String>,
    range: Option<String>,
}

/// `None` if no proxy reports its configuration or memory.
pub fn footprint(context: &Context) -> Option<FootprintSection> {
    let table = FootprintTable::new(&context.run.summary)?;
    Some(FootprintSection {
        size_unit: table.size_unit.symbol(),
        memory_unit: table.memory_unit.symbol(),
        time_unit: table.time_unit.symbol(),
        times: table.times,
        tables: tables(&table),
        warnings: table.warnings.clone(),
        charts: charts(&table, Role::Proxy),
        folded: charts(&table, Role::ControlPlane),
        full: full(context, &table),
    })
}

fn tables(table: &FootprintTable) -> Vec<Table> {
    let captions = |sort| match sort {
        Sort::Envoy => "Configuration of Envoys: clusters, endpoints, listeners and routes.",
        Sort::Ztunnel => "Configuration of ztunnels, of all namespaces: services, their workloads, policies.",
    };
    let sorts = table.sorts().into_iter();
    sorts
        .map(|(sort, kinds)| {
            let rows = table.rows.iter().filter(|row| row.role == Role::Proxy && row.sort == sort);
            let groups = groups(rows, &kinds.iter().map(|(index, _)| *index).collect::<Vec<_>>());
            Table {
                caption: captions(sort),
                kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
                groups,
            }
        })
        .collect()
}

/// Rows by mode, each with its counts of the kinds at these indices.
fn groups<'a>(rows: impl Iterator<Item = &'a FootprintRow>, kinds: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let mode = row.place();
        if groups.last().is_none_or(|group| group.mode != mode) {
            groups.push(Group { mode, class: ModeStyle::for_mode(row.mode).class, rows: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.rows.push(table_row(row, kinds));
        }
    }
    groups
}

fn full(context: &Context, table: &FootprintTable) -> tables::Table {
    let mut columns = vec![Column::text("Load"), Column::text("Mode"), Column::name("Component")];
    columns.extend(MEMORY.map(|(name, _)| Column::number(name)));
    columns.extend(["Configuration", "Whole dump"].map(Column::number));
    columns.extend(table.times.then(|| Column::number("Propagated after")));
    let text =
        |interval: Option<Interval>| -> TableCell { interval.unwrap_or_else(Interval::absent).text().into() };
    let cells = context.conditions.all().flat_map(|at| context.cells_of(at));
    let components = cells.flat_map(|cell| cell.components.iter().map(move |component| (cell, component)));
    let rows = components.filter(|(_, component)| footprint::says(component)).map(|(cell, component)| {
        let sized = |metric, unit: SizeUnit| {
            text(component.estimate(metric).map(|size| Interval::scaled(&size, 1.0 / unit.bytes())))
        };
        let configured_in = component.estimate(Metric::ConfiguredInS);
        let configured_in = configured_in.map(|time| table.time_unit.interval(&footprint::in_us(&time)));
        let mut row: TableRow = vec![
            context.conditions.label(cell.conditions()).into(),
            cell.mode.name().into(),
            component.name.as_str().into(),
        ];
        row.extend(MEMORY.map(|(_, metric)| sized(metric, table.memory_unit)));
        row.push(sized(Metric::ConfigurationSizeBytes, table.size_unit));
        row.push(sized(Metric::ConfigurationDumpBytes, table.size_unit));
        row.extend(table.times.then(|| text(configured_in)));
        row
    });
    let groups = vec![tables::Group::new(String::new(), rows.collect())];
    tables::Table { columns, groups }
}

fn table_row(row: &FootprintRow, kinds: &[usize]) -> ConfigurationRow {
    let value = |interval: &Option<Interval>| {
        interval.as_ref().map_or_else(Value::default, |interval| Value {
            estimate: Some(interval.estimate.clone()),
            range: interval.range.clone(),
        })
    };
    let count = |kind: &usize| {
        row.counts[*kind].as_ref().map_or_else(|| format::ABSENT.to_owned(), footprint::count_text)
    };
    ConfigurationRow {
        name: row.name.clone(),
        size: value(&row.size),
        counts: kinds.iter().map(count).collect(),
        configured_in: value(&row.configured_in),
    }
}

/// Memory of a role's components, per mode that has any and per size of the mesh; the charts share an axis.
fn charts(table: &FootprintTable, role: Role) -> Vec<Chart> {
    let rows = || table.rows.iter().filter(move |row| row.role == role);
    let mut places: Vec<(Mode, &str)> = rows().map(|row| (row.mode, row.load.as_str())).collect();
    places.dedup();
    let mut charts: Vec<RowChart> = places
        .iter()
        .map(|place| RowChart {
            axis: format!("{} of memory", table.memory_unit.symbol()),
            lines: rows()
                .filter(|row| (row.mode, row.load.as_str()) == *place)
                .flat_map(|row| lines(row, table.memory_unit))
                .collect(),
            shared: Vec::new(),
            may_be_logarithmic: false,
        })
        .collect();
    let shared: Vec<f64> = charts.iter().flat_map(RowChart::figures).collect();
    let (kind, whose) =
        if role == Role::Proxy { ("holds", "") } else { ("configures", " of the control plane") };
    let drawn = places.iter().zip(&mut charts).enumerate().map(|(index, ((mode, load), chart))| {
        chart.shared.clone_from(&shared);
        let svg = chart.draw(&format!("{kind}-{index}"), "Memory before, under and after the load");
        Chart::new(format!("Memory{whose} in {mode} at {load}"), svg)
    });
    drawn.collect()
}

/// A heading with the component's name, and one bar per moment.
fn lines(row: &FootprintRow, unit: SizeUnit) -> Vec<Line> {
    let class = if row.role == Role::Proxy { ModeStyle::for_mode(row.mode).class } else { "other" };
    let moments = [("before the load", row.before), ("under load", row.under), ("after the load", row.after)];
    let factor = 1.0 / unit.bytes();
    let bars = moments.into_iter().filter_map(|(when, memory)| {
        let (all, anonymous) = (memory.all_bytes?, memory.anonymous_bytes);
        Some(Line::Row(Row {
            label: when.to_owned(),
            symbol: None,
            value: with_anonymous(&all, anonymous.as_ref(), factor),
            mark: bar(&all, anonymous.as_ref(), factor, class),
        }))
    });
    std::iter::once(Line::Heading(row.name.clone())).chain(bars).collect()
}
