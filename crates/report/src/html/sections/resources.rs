//! CPU and memory of every component: proxies, application, generator, kernel and our own sampling.

use super::context::{Chart, Context};
use crate::footprint::label;
use crate::format::{self, Interval, SizeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use results::{Cell, Conditions, Estimate, Metric, Mode, Role, RoleTotal};
use serde::Serialize;
use statistics::copies::{ComponentGroup, Spread, component_groups};

/// With more loads, the CPU charts of all but the last are collapsed.
const MAX_OPEN_LOADS: usize = 2;

/// CPU charts per load, and memory charts for the last load.
#[derive(Debug, Serialize)]
pub struct ResourceSection {
    charts: Vec<Chart>,
    /// Collapsed charts.
    folded: Vec<Chart>,
    /// True if identical components share a row.
    grouped: bool,
}

/// `None` if no component was measured.
pub fn resources(context: &Context) -> Option<ResourceSection> {
    let mut cpu = figures(context, "cpu", "CPU", &cpu_charts(context));
    let mut memory = figures(context, "memory", "Memory", &memory_charts(context));
    let mut folded = Vec::new();
    if cpu.len() > MAX_OPEN_LOADS {
        folded.extend(cpu.drain(..cpu.len() - 1));
    }
    // Memory hardly depends on the load: one open chart is enough.
    folded.extend(memory.drain(..memory.len().saturating_sub(1)));
    cpu.append(&mut memory);
    let mut groups = context.run.summary.cells.iter().flat_map(component_groups);
    let grouped = groups.any(|group| group.components.len() > 1);
    (!cpu.is_empty()).then_some(ResourceSection { charts: cpu, folded, grouped })
}

fn cpu_charts(context: &Context) -> Vec<RowChart> {
    let row = |group: &ComponentGroup<'_>, class| {
        let (value, mark) = match group.components.as_slice() {
            [only] => {
                let text = format::cores_interval(&only.cpu_cores).text();
                (text, bar(&only.cpu_cores, None, 1.0, class))
            }
            copies => {
                let spread = Spread::new(copies.iter().map(|component| component.cpu_cores.estimate))?;
                (in_all(&spread, format::cores_number), sum_bar(spread.sum, None, class))
            }
        };
        Some(Row { label: label(group), symbol: None, value, mark })
    };
    let sum = |total: &RoleTotal, class| {
        let value = format::cores_interval(&total.cpu_cores).text();
        let mark = bar(&total.cpu_cores, None, 1.0, class);
        Some(Row { label: all_proxies(total), symbol: None, value, mark })
    };
    charts(context, "cores, mean over the measured window", row, sum)
}

fn memory_charts(context: &Context) -> Vec<RowChart> {
    let sums = context.run.summary.cells.iter().flat_map(component_groups).filter_map(|group| {
        let memory = group.components.iter().map(|component| component.estimate(Metric::MemoryBytes));
        Some(Spread::new(memory.flatten().map(|memory| memory.estimate))?.sum)
    });
    let unit = SizeUnit::for_sizes(sums);
    let factor = 1.0 / unit.bytes();
    let row = |group: &ComponentGroup<'_>, class| {
        let (value, mark) = match group.components.as_slice() {
            [only] => {
                let memory = only.estimate(Metric::MemoryBytes)?;
                let anonymous = only.estimate(Metric::MemoryAnonymousBytes);
                let mark = bar(&memory, anonymous.as_ref(), factor, class);
                (with_anonymous(&memory, anonymous.as_ref(), factor), mark)
            }
            copies => {
                let sizes = |metric| {
                    let known = copies.iter().filter_map(|component| component.estimate(metric));
                    Spread::new(known.map(|memory| memory.estimate * factor))
                };
                let all = sizes(Metric::MemoryBytes)?;
                let anonymous = sizes(Metric::MemoryAnonymousBytes);
                let part = anonymous.filter(|part| part.copies == all.copies).map(|part| part.sum);
                (in_all(&all, format::digits), sum_bar(all.sum, part, class))
            }
        };
        Some(Row { label: label(group), symbol: None, value, mark })
    };
    let sum = |total: &RoleTotal, class| {
        let (memory, anonymous) = (total.memory_bytes?, total.memory_anonymous_bytes);
        let mark = bar(&memory, anonymous.as_ref(), factor, class);
        let value = with_anonymous(&memory, anonymous.as_ref(), factor);
        Some(Row { label: all_proxies(total), symbol: None, value, mark })
    };
    charts(context, &format!("{} at the end of the window", unit.symbol()), row, sum)
}

fn all_proxies(total: &RoleTotal) -> String {
    format!("all {} proxies", total.components)
}

/// `5.1 in all; each 0.10 (0.08–0.13)`: sum, median and range.
fn in_all(spread: &Spread, number: fn(f64) -> String) -> String {
    let [least, median, greatest] = [spread.least, spread.median, spread.greatest].map(number);
    format!("{} in all; each {median} ({least}–{greatest})", number(spread.sum))
}

fn sum_bar(value: f64, part: Option<f64>, class: &'static str) -> Mark {
    Mark::Bar { value, part, interval: None, class }
}

/// One chart per load, without captions; the charts share an axis.
fn charts(
    context: &Context,
    axis: &str,
    row: impl Fn(&ComponentGroup<'_>, &'static str) -> Option<Row>,
    sum: impl Fn(&RoleTotal, &'static str) -> Option<Row>,
) -> Vec<RowChart> {
    let mut charts: Vec<RowChart> =
        context.conditions.all().map(|at| chart(context, at, axis, &row, &sum)).collect();
    let shared: Vec<f64> = charts.iter().flat_map(RowChart::figures).collect();
    for chart in &mut charts {
        chart.shared.clone_from(&shared);
    }
    charts
}

fn chart(
    context: &Context,
    at: Conditions<'_>,
    axis: &str,
    row: &impl Fn(&ComponentGroup<'_>, &'static str) -> Option<Row>,
    sum: &impl Fn(&RoleTotal, &'static str) -> Option<Row>,
) -> RowChart {
    let mut lines = Vec::new();
    for cell in context.cells_of(at) {
        let groups = in_order(cell);
        let rows = groups.iter().filter_map(|group| row(group, class(cell.mode, group.role)));
        // The sum of the proxies comes before each of them.
        let all = cell.total(Role::Proxy).filter(|total| total.components > 1);
        let sum = all.and_then(|total| sum(total, class(cell.mode, total.role)));
        let rows: Vec<Line> = sum.into_iter().chain(rows).map(Line::Row).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(cell.mode.name().to_owned()));
            lines.extend(rows);
        }
    }
    RowChart { axis: axis.to_owned(), lines, shared: Vec::new(), may_be_logarithmic: false }
}

fn figures(context: &Context, id: &str, what: &str, charts: &[RowChart]) -> Vec<Chart> {
    let loads = context.conditions.all().zip(charts).enumerate();
    loads
        .filter(|(_, (_, chart))| !chart.lines.is_empty())
        .map(|(index, (at, chart))| {
            let caption = format!("{what} at {}", context.conditions.label(at));
            let svg = chart.draw(&format!("{id}-{index}"), &format!("{what} by component"));
            Chart::new(caption, svg)
        })
        .collect()
}

/// Proxies come first: they are what the question is about.
fn in_order(cell: &Cell) -> Vec<ComponentGroup<'_>> {
    let mut groups = component_groups(cell);
    groups.sort_by_key(|group| match group.role {
        Role::Proxy => 0,
        Role::FilterService => 1,
        Role::ControlPlane => 2,
        Role::App => 3,
        Role::Generator => 4,
        Role::Kernel => 5,
        Role::Observer => 6,
    });
    groups
}

fn class(mode: Mode, role: Role) -> &'static str {
    if role == Role::Proxy { ModeStyle::for_mode(mode).class } else { "other" }
}

/// Memory as text, such as `108 (107–109), 28.4 anonymous`.
pub(super) fn with_anonymous(memory: &Estimate, anonymous: Option<&Estimate>, factor: f64) -> String {
    let anonymous = anonymous.map(|part| format!(", {} anonymous", format::digits(part.estimate * factor)));
    Interval::scaled(memory, factor).text() + &anonymous.unwrap_or_default()
}

/// A bar; for memory, with its anonymous part drawn solid.
pub(super) fn bar(estimate: &Estimate, part: Option<&Estimate>, factor: f64, class: &'static str) -> Mark {
    Mark::Bar {
        value: estimate.estimate * factor,
        part: part.map(|part| part.estimate * factor),
        interval: estimate.low.zip(estimate.high).map(|(low, high)| (low * factor, high * factor)),
        class,
    }
}
