//! Configuration counts of each proxy, and its memory before, under and after the load.

use super::context::{Context, Figure};
use super::resources::{bar, with_anonymous};
use crate::footprint::{self, FootprintRow, FootprintTable, Sort};
use crate::format::{self, Interval, SizeUnit};
use crate::html::charts::rows::{Line, Row, RowChart};
use crate::html::style::ModeStyle;
use results::{Estimate, Mode, Role};
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
    charts: Vec<Figure>,
    /// Charts of the components that configure the proxies. They are separate because their memory would
    /// dwarf that of the proxies.
    folded: Vec<Figure>,
    /// Every component under every load, for the table of all figures.
    full: Vec<FullRow>,
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
    rows: Vec<TableRow>,
}

#[derive(Debug, Serialize)]
struct TableRow {
    name: String,
    size: Value,
    counts: Vec<String>,
    configured_in: Value,
}

#[derive(Debug, Serialize)]
struct FullRow {
    load: String,
    mode: &'static str,
    name: String,
    /// Memory before, under and after the load with its anonymous part. Then heap in use before and after the
    /// load, and heap held before and after.
    memory: Vec<String>,
    size: String,
    dump: String,
    configured_in: String,
}

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
        Sort::Envoy => "What Envoys were configured with: clusters, endpoints, listeners and routes.",
        Sort::Ztunnel => {
            "What ztunnels were told of the mesh, of all namespaces: services, the workloads behind them, policies."
        }
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

fn full(context: &Context, table: &FootprintTable) -> Vec<FullRow> {
    let sized = |estimate: Option<Estimate>, unit: SizeUnit| {
        estimate.map_or_else(
            || format::ABSENT.to_owned(),
            |estimate| Interval::scaled(&estimate, 1.0 / unit.bytes()).text(),
        )
    };
    let cells = context.conditions.all().flat_map(|at| context.cells_of(at));
    let components = cells.flat_map(|cell| cell.components.iter().map(move |component| (cell, component)));
    components
        .filter(|(_, component)| footprint::says(component))
        .map(|(cell, component)| {
            let (before, after) = (component.heap_before_load, component.heap_after_load);
            let memory = [
                component.memory_before_load_bytes,
                component.memory_bytes,
                component.memory_after_load_bytes,
                component.memory_anonymous_before_load_bytes,
                component.memory_anonymous_bytes,
                component.memory_anonymous_after_load_bytes,
                before.map(|heap| heap.allocated_bytes),
                after.map(|heap| heap.allocated_bytes),
                before.map(|heap| heap.heap_bytes),
                after.map(|heap| heap.heap_bytes),
            ];
            let configured_in = component
                .configured_in_s
                .map(|time| table.time_unit.interval(&footprint::in_us(&time)).text());
            FullRow {
                load: context.conditions.label(cell.conditions()),
                mode: cell.mode.name(),
                name: component.name.clone(),
                memory: memory.map(|memory| sized(memory, table.memory_unit)).to_vec(),
                size: sized(component.configuration.map(|held| held.size_bytes), table.size_unit),
                dump: sized(component.configuration.map(|held| held.dump_bytes), table.size_unit),
                configured_in: configured_in.unwrap_or_else(|| format::ABSENT.to_owned()),
            }
        })
        .collect()
}

fn table_row(row: &FootprintRow, kinds: &[usize]) -> TableRow {
    let value = |interval: &Option<Interval>| {
        interval.as_ref().map_or_else(Value::default, |interval| Value {
            estimate: Some(interval.estimate.clone()),
            range: interval.range.clone(),
        })
    };
    let count = |kind: &usize| {
        row.counts[*kind].as_ref().map_or_else(|| format::ABSENT.to_owned(), footprint::count_text)
    };
    TableRow {
        name: row.name.clone(),
        size: value(&row.size),
        counts: kinds.iter().map(count).collect(),
        configured_in: value(&row.configured_in),
    }
}

/// Memory of a role's components, per mode that has any and per size of the mesh; the charts share an axis.
fn charts(table: &FootprintTable, role: Role) -> Vec<Figure> {
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
        Figure { caption: format!("Memory{whose} in {mode} at {load}"), svg }
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
