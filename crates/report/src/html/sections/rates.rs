//! Latency and CPU against the rate, or against the clients of a closed loop, with the other factors held.

use super::context::{Context, Figure};
use crate::format::{self, Interval, TimeUnit};
use crate::html::charts::lines::{Axes, Point, Series, chart};
use experiment::schema::{Cell, Conditions, Estimate, LoadPoint, Role};
use serde::Serialize;

/// With more charts than this, the others are folded away.
const MAX_OPEN_CHARTS: usize = 4;

/// Charts of each figure.
#[derive(Debug, Serialize)]
pub struct RateSection {
    /// `rate` or `clients`.
    against: &'static str,
    charts: Vec<Figure>,
    folded: Vec<Figure>,
}

/// A figure of cells, in the unit of the axis and as text.
struct Drawn<'a> {
    id: &'static str,
    caption: &'static str,
    unit: &'static str,
    read: &'a dyn Fn(&Cell) -> Option<(Estimate, String)>,
}

/// Absent where no mode was measured under two levels of load that differ in nothing else.
pub fn rates(context: &Context) -> Option<RateSection> {
    let cells = &context.run.summary.cells;
    let is_closed = cells.iter().all(|cell| cell.load.rate.is_none());
    let times = cells.iter().filter_map(|cell| Some(cell.response_time_us?.p99?.estimate));
    let unit = TimeUnit::for_times(times);
    let time = |estimate: Option<Estimate>| {
        let estimate = estimate?;
        Some((estimate.map(|us| us / unit.us()), unit.interval(&estimate).text_with_unit(unit.symbol())))
    };
    let median = |cell: &Cell| time(cell.response_time_us?.p50);
    let p99 = |cell: &Cell| time(cell.response_time_us?.p99);
    let cpu = |cell: &Cell| {
        let total = cell.totals.iter().find(|total| total.role == Role::Proxy)?;
        Some((total.cpu_cores, format!("{} cores", format::cores_interval(&total.cpu_cores).text())))
    };
    let completed = |cell: &Cell| {
        let rate = cell.rate_completed.filter(|_| is_closed)?;
        Some((rate, format!("{} requests/s", Interval::new(&rate).text())))
    };
    let drawn = [
        Drawn { id: "throughput", caption: "Throughput", unit: "/s", read: &completed },
        Drawn { id: "median", caption: "Median response time", unit: unit.symbol(), read: &median },
        Drawn { id: "p99", caption: "99th percentile", unit: unit.symbol(), read: &p99 },
        Drawn { id: "cpu", caption: "CPU of all proxies", unit: "cores", read: &cpu },
    ];
    let against = if is_closed { "clients" } else { "rate" };
    let mut charts: Vec<Figure> =
        drawn.iter().flat_map(|drawn| figures(context, is_closed, against, drawn)).collect();
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    (!charts.is_empty()).then_some(RateSection { against, charts, folded })
}

fn level(load: &LoadPoint, is_closed: bool) -> Option<f64> {
    if is_closed { load.clients.map(|clients| clients as f64) } else { load.rate }
}

/// A chart per combination of everything else that was measured under two levels or more.
fn figures(context: &Context, is_closed: bool, against: &str, drawn: &Drawn<'_>) -> Vec<Figure> {
    let mut panels: Vec<Vec<Conditions<'_>>> = Vec::new();
    let held = |at: &Conditions<'_>| {
        let connections = if is_closed { 0 } else { at.load.connections };
        let load = LoadPoint { rate: None, clients: None, connections, ..at.load.clone() };
        (at.factors.clone(), load)
    };
    for at in context.conditions.all().filter(|at| level(at.load, is_closed).is_some()) {
        match panels.iter_mut().find(|panel| held(&panel[0]) == held(&at)) {
            Some(panel) => panel.push(at),
            None => panels.push(vec![at]),
        }
    }
    let with_series = panels.into_iter().filter_map(|panel| {
        let series = series(context, is_closed, &panel, drawn);
        (!series.is_empty()).then(|| (panel[0].factors.clone(), series))
    });
    let panels: Vec<_> = with_series.collect();
    let axis = if is_closed { "clients" } else { "requests/s offered" };
    let axes = Axes::new(panels.iter().flat_map(|(_, series)| series), axis, drawn.unit);
    let figure = |(index, (factors, series)): (usize, &(experiment::schema::Factors, Vec<Series>))| {
        let factors: Vec<String> = factors.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let caption = match factors.is_empty() {
            true => drawn.caption.to_owned(),
            false => format!("{}, {}", drawn.caption, factors.join(", ")),
        };
        let id = format!("rate-{}-{index}", drawn.id);
        Figure { svg: chart(&id, &format!("{caption} against {against}"), series, &axes), caption }
    };
    panels.iter().enumerate().map(figure).collect()
}

fn series(context: &Context, is_closed: bool, panel: &[Conditions<'_>], drawn: &Drawn<'_>) -> Vec<Series> {
    let of_mode = |mode| {
        let cells = panel.iter().flat_map(|at| context.cells_of(*at)).filter(|cell| cell.mode == mode);
        let points = cells.filter_map(|cell| {
            let (estimate, text) = (drawn.read)(cell)?;
            let label = context.conditions.level(cell.conditions());
            Some(Point {
                at: level(&cell.load, is_closed)?,
                estimate: estimate.estimate,
                interval: estimate.low.zip(estimate.high),
                text: format!("{label} {text}"),
            })
        });
        Series { mode, points: points.collect() }
    };
    let all = context.modes.iter().map(|mode| of_mode(*mode));
    all.filter(|series| series.points.len() > 1).collect()
}
