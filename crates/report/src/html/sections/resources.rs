//! CPU and memory of every component: proxies, application, generator, the kernel's share and our own sampling.

use super::{Context, Figure};
use crate::format::{self, SizeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use experiment::Mode;
use experiment::schema::{Cell, ComponentSummary, Estimate, LoadPoint, Role};
use serde::Serialize;

/// With more loads than this, all but the greatest are folded away.
const MOST_OPEN_LOADS: usize = 3;

/// A chart for each load.
#[derive(Debug, Serialize)]
pub struct ResourceSection {
    charts: Vec<Figure>,
    /// Charts that readers open if they want them.
    folded: Vec<Figure>,
}

impl ResourceSection {
    /// Keeps the last charts, those of the greatest loads, open.
    fn new(mut charts: Vec<Figure>, most_open: usize) -> Option<Self> {
        if charts.is_empty() {
            return None;
        }
        let folded = if charts.len() > most_open { charts.drain(..charts.len() - 1).collect() } else { Vec::new() };
        Some(Self { charts, folded })
    }
}

pub fn cpu(context: &Context) -> Option<ResourceSection> {
    let charts = charts(context, "cpu", "CPU", |load| {
        resource_chart(context, load, "cores, mean over the measured window", |component, class| Row {
            label: component.name.clone(),
            symbol: None,
            value: format::cores_interval(&component.cpu_cores).text(),
            mark: bar(&component.cpu_cores, 1.0, class),
        })
    });
    ResourceSection::new(charts, MOST_OPEN_LOADS)
}

pub fn memory(context: &Context) -> Option<ResourceSection> {
    let sizes = context.run.summary.cells.iter().flat_map(|cell| &cell.components);
    let unit =
        SizeUnit::for_sizes(sizes.filter_map(|component| component.memory_bytes.map(|memory| memory.estimate)));
    let axis = format!("working set, {}", unit.symbol());
    let charts = charts(context, "memory", "Memory", |load| {
        let mut chart = resource_chart(context, load, &axis, |component, class| {
            let memory = component.memory_bytes.unwrap_or(Estimate { estimate: f64::NAN, low: None, high: None });
            Row {
                label: component.name.clone(),
                symbol: None,
                value: format::Interval::scaled(&memory, 1.0 / unit.bytes()).text(),
                mark: bar(&memory, 1.0 / unit.bytes(), class),
            }
        });
        // The kernel has no memory of its own here.
        chart.lines.retain(|line| !matches!(line, Line::Row(row) if row.value == format::ABSENT));
        chart
    });
    // Memory hardly follows the load: one chart is enough to read.
    ResourceSection::new(charts, 1)
}

fn charts(context: &Context, id: &str, what: &str, chart: impl Fn(&LoadPoint) -> RowChart) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (index, load) in context.loads.loads().iter().enumerate() {
        let chart = chart(load);
        if chart.lines.iter().any(|line| matches!(line, Line::Row(_))) {
            let caption = context.loads.label(load);
            let svg = chart.draw(&format!("{id}-{index}"), &format!("{what} by component at {caption}"));
            figures.push(Figure { caption, svg });
        }
    }
    figures
}

fn resource_chart(
    context: &Context,
    load: &LoadPoint,
    axis: &str,
    row: impl Fn(&ComponentSummary, &'static str) -> Row,
) -> RowChart {
    let mut lines = Vec::new();
    for cell in context.cells_of(load) {
        let components = in_order(cell);
        if components.is_empty() {
            continue;
        }
        lines.push(Line::Heading(cell.mode.name().to_owned()));
        lines.extend(components.into_iter().map(|component| Line::Row(row(component, class(cell.mode, component)))));
    }
    RowChart { axis: axis.to_owned(), lines, may_be_logarithmic: false }
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

fn bar(estimate: &Estimate, factor: f64, class: &'static str) -> Mark {
    Mark::Bar {
        value: estimate.estimate * factor,
        interval: estimate.low.zip(estimate.high).map(|(low, high)| (low * factor, high * factor)),
        class,
    }
}
