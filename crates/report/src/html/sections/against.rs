//! Figures of cells against a number: which figures are drawn, and one chart per panel.

use super::context::{Chart, Context};
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use crate::html::charts::lines::{Axes, Point, Series, chart};
use results::{Cell, Conditions, Estimate, Figure, FleetSummary, Metric, Role};

/// Reads a figure of a cell.
type Read<'a> = Box<dyn Fn(&Cell) -> Option<Value> + 'a>;

/// A figure that is drawn for each cell.
pub(super) struct Drawn<'a> {
    pub(super) id: &'static str,
    pub(super) caption: String,
    pub(super) unit: &'static str,
    read: Read<'a>,
}

/// A figure of a cell.
struct Value {
    /// In the unit of the axis; `None` if it is beyond every axis.
    estimate: Option<Estimate>,
    text: String,
}

/// Figures that are drawn for a run: throughput of closed loops, response times, and CPU of all proxies.
pub(super) fn drawn(
    context: &Context,
    figures: &[(Figure, &'static str, &'static str)],
) -> Vec<Drawn<'static>> {
    let cells = &context.run.summary.cells;
    let times = cells.iter().flat_map(|cell| {
        let times = cell.leading_times();
        figures.iter().filter_map(move |(figure, ..)| Some(times?.figure(*figure)?.estimate))
    });
    let unit = TimeUnit::for_times(times);
    let throughput = |cell: &Cell| {
        let rate = cell.rate_completed.filter(|_| cell.load.is_closed_loop())?;
        Some(Value { estimate: Some(rate), text: format!("{} requests/s", Interval::new(&rate).text()) })
    };
    let cpu = |cell: &Cell| {
        let total = cell.total(Role::Proxy)?;
        let text = format!("{} cores", format::cores_interval(&total.cpu_cores).text());
        Some(Value { estimate: Some(total.cpu_cores), text })
    };
    let mut drawn = vec![Drawn {
        id: "throughput",
        caption: "Throughput".to_owned(),
        unit: "/s",
        read: Box::new(throughput),
    }];
    let of_streams = cells.iter().any(|cell| cell.load.stream.is_some());
    drawn.extend(figures.iter().map(|(figure, id, caption)| {
        let caption = if of_streams {
            caption.replace("response time", "time to the first token")
        } else {
            (*caption).to_owned()
        };
        Drawn { id, caption, unit: unit.symbol(), read: Box::new(time(*figure, unit)) }
    }));
    let caption = "CPU of all proxies".to_owned();
    drawn.push(Drawn { id: "cpu", caption, unit: "cores", read: Box::new(cpu) });
    drawn.extend(of_fleets(context));
    drawn
}

/// Convergence, and the control plane's usage.
fn of_fleets(context: &Context) -> Vec<Drawn<'static>> {
    type OfFleet = fn(&FleetSummary) -> Option<Estimate>;
    let fleets = || context.run.summary.cells.iter().filter_map(|cell| cell.fleet.as_ref());
    let times: [(&str, &str, OfFleet); 5] = [
        ("convergence-p50", "Convergence, median", |fleet| fleet.convergence_us.p50),
        ("convergence-p99", "Convergence, 99th percentile", |fleet| fleet.convergence_us.p99),
        ("convergence-last", "Convergence, last proxy", |fleet| fleet.convergence_us.last),
        ("first-p50", "First configuration, median", |fleet| fleet.first_configuration_us.p50),
        ("first-last", "First configuration, last proxy", |fleet| fleet.first_configuration_us.last),
    ];
    let of_fleet = |read: OfFleet, factor: f64, unit: &'static str| {
        Box::new(move |cell: &Cell| {
            let estimate = read(cell.fleet.as_ref()?)?.map(|value| value * factor);
            Some(Value { text: Interval::new(&estimate).text_with_unit(unit), estimate: Some(estimate) })
        }) as Read<'static>
    };
    let sizes = |read: OfFleet| SizeUnit::for_sizes(fleets().filter_map(|fleet| Some(read(fleet)?.estimate)));
    let mut drawn: Vec<Drawn<'static>> = times
        .into_iter()
        .map(|(id, caption, read)| {
            let unit = TimeUnit::for_times(fleets().filter_map(|fleet| Some(read(fleet)?.estimate)));
            let read = of_fleet(read, 1.0 / unit.us(), unit.symbol());
            Drawn { id, caption: caption.to_owned(), unit: unit.symbol(), read }
        })
        .collect();
    let cores: OfFleet = |fleet| fleet.estimates.get(Metric::IstiodCpuCores);
    drawn.push(Drawn {
        id: "istiod-cpu",
        caption: "CPU of istiod".to_owned(),
        unit: "cores",
        read: of_fleet(cores, 1.0, "cores"),
    });
    let memories: [(&str, &str, OfFleet); 2] = [
        ("istiod-memory", "Memory of istiod", |fleet| fleet.estimates.get(Metric::IstiodMemoryBytes)),
        ("bytes-per-proxy", "Received per proxy", |fleet| fleet.estimates.get(Metric::BytesPerProxy)),
    ];
    drawn.extend(memories.into_iter().map(|(id, caption, read)| {
        let unit = sizes(read);
        let read = of_fleet(read, 1.0 / unit.bytes(), unit.symbol());
        Drawn { id, caption: caption.to_owned(), unit: unit.symbol(), read }
    }));
    drawn
}

fn time(figure: Figure, unit: TimeUnit) -> impl Fn(&Cell) -> Option<Value> {
    move |cell| {
        let times = cell.leading_times()?;
        match (times.figure(figure), times.censored(figure)) {
            (Some(time), _) => Some(Value {
                estimate: Some(time.map(|us| us / unit.us())),
                text: unit.interval(&time).text_with_unit(unit.symbol()),
            }),
            (None, Some(censored)) => Some(Value { estimate: None, text: format::above(censored.above_us) }),
            (None, None) => None,
        }
    }
}

/// A chart and its cells.
pub(super) struct Panel<'a> {
    /// Suffix of the caption, such as ` at 1000/s`.
    pub(super) of: String,
    pub(super) conditions: Vec<Conditions<'a>>,
}

/// The number that cells are drawn against.
pub(super) struct Against<'a> {
    pub(super) id: &'static str,
    /// Name for the title.
    pub(super) name: &'a str,
    /// Label of the axis.
    pub(super) axis: &'a str,
    /// The number of a cell, and its text.
    pub(super) read: &'a dyn Fn(&Cell) -> Option<(f64, String)>,
}

/// One chart per panel in which a mode has at least two points; the charts share their axes.
pub(super) fn charts(
    context: &Context,
    panels: &[Panel<'_>],
    against: &Against<'_>,
    drawn: &Drawn<'_>,
) -> Vec<Chart> {
    let with_series = panels.iter().filter_map(|panel| {
        let all = context.modes.iter().map(|mode| {
            let cells = panel.conditions.iter().flat_map(|at| context.cells_of(*at));
            let points =
                cells.filter(|cell| cell.mode == *mode).filter_map(|cell| point(cell, against, drawn));
            Series { mode: *mode, points: points.collect() }
        });
        let series: Vec<Series> = all.filter(|series| series.points.len() > 1).collect();
        let has_estimate = |series: &Series| series.points.iter().any(|point| point.estimate.is_some());
        series.iter().any(has_estimate).then_some((&panel.of, series))
    });
    let panels: Vec<(&String, Vec<Series>)> = with_series.collect();
    let axes = Axes::new(panels.iter().flat_map(|(_, series)| series), against.axis, drawn.unit);
    let figure = |(index, (of, series)): (usize, &(&String, Vec<Series>))| {
        let caption = format!("{}{of}", drawn.caption);
        let id = format!("{}-{}-{index}", against.id, drawn.id);
        let svg = chart(&id, &format!("{caption} against {}", against.name), series, &axes);
        Chart::new(caption, svg)
    };
    panels.iter().enumerate().map(figure).collect()
}

fn point(cell: &Cell, against: &Against<'_>, drawn: &Drawn<'_>) -> Option<Point> {
    let (at, label) = (against.read)(cell)?;
    let Value { estimate, text } = (drawn.read)(cell)?;
    Some(Point {
        at,
        estimate: estimate.map(|estimate| estimate.estimate),
        interval: estimate.and_then(|estimate| estimate.low.zip(estimate.high)),
        text: format!("{label} {text}"),
    })
}
