//! CPU and memory of every component: proxies, application, generator, the kernel's share and our own sampling.

use super::context::{Context, Figure};
use crate::format::{self, Interval, SizeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use experiment::Mode;
use experiment::schema::{Cell, ComponentSummary, Conditions, Estimate, Role};
use serde::Serialize;

/// With more loads than this, the CPU of all but the last is folded away.
const MOST_OPEN_LOADS: usize = 2;

/// Charts of CPU for each load, and of memory at the last.
#[derive(Debug, Serialize)]
pub struct ResourceSection {
    charts: Vec<Figure>,
    /// Charts that readers open if they want them.
    folded: Vec<Figure>,
}

/// Absent where no component was measured.
pub fn resources(context: &Context) -> Option<ResourceSection> {
    let mut cpu = figures(context, "cpu", "CPU", &cpu_charts(context));
    let mut memory = figures(context, "memory", "Memory", &memory_charts(context));
    let mut folded = Vec::new();
    if cpu.len() > MOST_OPEN_LOADS {
        folded.extend(cpu.drain(..cpu.len() - 1));
    }
    // Memory hardly follows the load: one chart is enough to read.
    folded.extend(memory.drain(..memory.len().saturating_sub(1)));
    cpu.append(&mut memory);
    (!cpu.is_empty()).then_some(ResourceSection { charts: cpu, folded })
}

fn cpu_charts(context: &Context) -> Vec<RowChart> {
    let row = |component: &ComponentSummary, class| {
        Some(Row {
            label: component.name.clone(),
            symbol: None,
            value: format::cores_interval(&component.cpu_cores).text(),
            mark: bar(&component.cpu_cores, None, 1.0, class),
        })
    };
    charts(context, "cores, mean over the measured window", row)
}

fn memory_charts(context: &Context) -> Vec<RowChart> {
    let sizes = context.run.summary.cells.iter().flat_map(|cell| &cell.components);
    let unit = SizeUnit::for_sizes(
        sizes.filter_map(|component| component.memory_bytes.map(|memory| memory.estimate)),
    );
    let factor = 1.0 / unit.bytes();
    let row = |component: &ComponentSummary, class| {
        component.memory_bytes.as_ref().map(|memory| Row {
            label: component.name.clone(),
            symbol: None,
            value: with_anonymous(memory, component.memory_anonymous_bytes.as_ref(), factor),
            mark: bar(memory, component.memory_anonymous_bytes.as_ref(), factor, class),
        })
    };
    charts(context, &format!("{} at the end of the window", unit.symbol()), row)
}

/// A chart for each load, without captions; they share an axis.
fn charts(
    context: &Context,
    axis: &str,
    row: impl Fn(&ComponentSummary, &'static str) -> Option<Row>,
) -> Vec<RowChart> {
    let mut charts: Vec<RowChart> =
        context.conditions.all().map(|at| chart(context, at, axis, &row)).collect();
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
    row: &impl Fn(&ComponentSummary, &'static str) -> Option<Row>,
) -> RowChart {
    let mut lines = Vec::new();
    for cell in context.cells_of(at) {
        let rows =
            in_order(cell).into_iter().filter_map(|component| row(component, class(cell.mode, component)));
        let rows: Vec<Line> = rows.map(Line::Row).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(cell.mode.name().to_owned()));
            lines.extend(rows);
        }
    }
    RowChart { axis: axis.to_owned(), lines, shared: Vec::new(), may_be_logarithmic: false }
}

fn figures(context: &Context, id: &str, what: &str, charts: &[RowChart]) -> Vec<Figure> {
    let loads = context.conditions.all().zip(charts).enumerate();
    loads
        .filter(|(_, (_, chart))| !chart.lines.is_empty())
        .map(|(index, (at, chart))| {
            let caption = format!("{what} at {}", context.conditions.label(at));
            let svg = chart.draw(&format!("{id}-{index}"), &format!("{what} by component"));
            Figure { caption, svg }
        })
        .collect()
}

/// Proxies first: they are the question.
fn in_order(cell: &Cell) -> Vec<&ComponentSummary> {
    let mut components: Vec<&ComponentSummary> = cell.components.iter().collect();
    components.sort_by_key(|component| match component.role {
        Role::Proxy => 0,
        Role::ControlPlane => 1,
        Role::App => 2,
        Role::Generator => 3,
        Role::Kernel => 4,
        Role::Observer => 5,
    });
    components
}

fn class(mode: Mode, component: &ComponentSummary) -> &'static str {
    if component.role == Role::Proxy { ModeStyle::of(mode).class } else { "other" }
}

/// Memory in words, such as `108 (107–109), 28.4 anonymous`.
pub(super) fn with_anonymous(memory: &Estimate, anonymous: Option<&Estimate>, factor: f64) -> String {
    let anonymous = anonymous.map(|part| format!(", {} anonymous", format::digits(part.estimate * factor)));
    Interval::scaled(memory, factor).text() + &anonymous.unwrap_or_default()
}

/// A bar; of memory with what of it is anonymous.
pub(super) fn bar(estimate: &Estimate, part: Option<&Estimate>, factor: f64, class: &'static str) -> Mark {
    Mark::Bar {
        value: estimate.estimate * factor,
        part: part.map(|part| part.estimate * factor),
        interval: estimate.low.zip(estimate.high).map(|(low, high)| (low * factor, high * factor)),
        class,
    }
}
