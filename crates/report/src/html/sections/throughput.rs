//! Closed loops: throughput by clients and mode, compared with the baseline, and the CPU per request.

use super::context::{Chart, Context};
use crate::format::{Interval, TimeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::table::{Difference, floor, throughput_change};
use results::{Cell, Conditions, Estimate, Role};

/// The charts; `None` without a closed loop.
pub fn throughput(context: &Context) -> Option<Vec<Chart>> {
    let summary = &context.run.summary;
    let rate = |cell: &Cell| {
        let rate = cell.rate_completed?;
        let Interval { estimate, range } = Interval::new(&rate);
        let range = range.map(|range| format!(" ({range})")).unwrap_or_default();
        Some((rate, format!("{estimate}/s{range}")))
    };
    let change = |cell: &Cell| {
        let (change, verdict) = throughput_change(summary, cell)?;
        let percent = change.map(|fraction| fraction * 100.0);
        Some((percent, Difference::percent((&change, verdict)).text_with_unit("%")))
    };
    let unit = TimeUnit::for_times(
        summary.cells.iter().filter_map(|cell| Some(cpu_us(cell, Role::Proxy)?.estimate)),
    );
    let cpu = |role: Role| {
        move |cell: &Cell| {
            let cpu = cpu_us(cell, role)?;
            Some((cpu.map(|us| us / unit.us()), unit.interval(&cpu).text_with_unit(unit.symbol())))
        }
    };
    let cpu_axis = format!("{} of CPU", unit.symbol());
    let against = format!("Throughput against {}", floor(summary));
    let figures: Vec<Chart> = [
        figure(context, "throughput", "Throughput", "responses/s", &rate),
        figure(context, "throughput-change", &against, "percent", &change),
        figure(context, "cpu-each", "CPU of all proxies per request", &cpu_axis, &cpu(Role::Proxy)),
        figure(
            context,
            "cpu-each-control",
            "CPU of the control plane per request",
            &cpu_axis,
            &cpu(Role::ControlPlane),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!figures.is_empty()).then_some(figures)
}

/// CPU of a role's components per request, in microseconds; cores per 1000 requests/s equal milliseconds per
/// request.
fn cpu_us(cell: &Cell, role: Role) -> Option<Estimate> {
    let total = cell.total(role)?;
    Some(total.cpu_cores_per_1000_rps.map(|milliseconds| milliseconds * 1000.0))
}

fn figure(
    context: &Context,
    id: &str,
    caption: &str,
    axis: &str,
    read: &dyn Fn(&Cell) -> Option<(Estimate, String)>,
) -> Option<Chart> {
    let mut lines = Vec::new();
    let is_shown = |at: &Conditions<'_>| at.load.rate.is_none() && at.load.stream.is_none();
    for at in context.conditions.all().filter(is_shown) {
        let rows: Vec<Line> =
            context.cells_of(at).into_iter().filter_map(|cell| row(cell, read)).map(Line::Row).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(context.conditions.label(at)));
            lines.extend(rows);
        }
    }
    if lines.is_empty() {
        return None;
    }
    let chart = RowChart { axis: axis.to_owned(), lines, shared: Vec::new(), may_be_logarithmic: false };
    Some(Chart::new(caption.to_owned(), chart.draw(id, caption)))
}

fn row(cell: &Cell, read: &dyn Fn(&Cell) -> Option<(Estimate, String)>) -> Option<Row> {
    let (estimate, value) = read(cell)?;
    let style = ModeStyle::for_mode(cell.mode);
    Some(Row {
        label: cell.mode.name().to_owned(),
        symbol: Some((style.marker, style.class)),
        value,
        mark: Mark::Whisker {
            estimate: estimate.estimate,
            interval: estimate.low.zip(estimate.high),
            marker: style.marker,
            class: style.class,
        },
    })
}
