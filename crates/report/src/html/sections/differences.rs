//! Factors with non-numeric values: each value against the first, as charts and a table.

use super::context::{Chart, Context};
use crate::format::{Interval, SizeUnit, TimeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::table::Difference;
use crate::tables::{Column, Group, Table};
use results::{Conditions, Estimate, FactorDifference, Metric};
use serde::Serialize;

/// Comparison of each such factor.
#[derive(Debug, Serialize)]
pub struct DifferenceSection {
    charts: Vec<Chart>,
    /// Unit of times.
    time_unit: &'static str,
    memory_unit: &'static str,
    of_fleets: bool,
    /// One group per factor, mode and load, such as `ingress.scenario against no-filters: ingress at 50 clients`; one row
    /// per value.
    table: Table,
}

/// A figure with the title of its column, and with the caption and the id of its chart, if it has one.
type Shown = (Metric, &'static str, Option<(&'static str, &'static str)>);

/// Figures of requests.
const OF_REQUESTS: [Shown; 8] = [
    (Metric::ResponseTimeP50Us, "p50", Some(("Added to the median", "p50"))),
    (Metric::ResponseTimeP90Us, "p90", None),
    (Metric::ResponseTimeP99Us, "p99", Some(("Added to the 99th percentile", "p99"))),
    (Metric::RateCompleted, "Throughput", Some(("Throughput", "throughput"))),
    (
        Metric::ProxiesCpuCoresPer1000Rps,
        "CPU of all proxies per request",
        Some(("CPU of all proxies per request", "cpu")),
    ),
    (Metric::ProxiesMemoryAnonymousBytes, "Anonymous memory of all proxies", None),
    (
        Metric::ProxiesConfigurationBytes,
        "Configuration of all proxies",
        Some(("Configuration of all proxies", "configuration")),
    ),
    (Metric::ConfiguredLastUs, "Last proxy configured", None),
];

/// Figures of fleets.
const OF_FLEETS: [Shown; 9] = [
    (Metric::ConvergenceP50Us, "p50", None),
    (Metric::ConvergenceP90Us, "p90", None),
    (Metric::ConvergenceP99Us, "p99", Some(("Added to the 99th percentile of convergence", "convergence"))),
    (Metric::ConvergenceLastUs, "Last", None),
    (Metric::FirstConfigurationLastUs, "First configuration, last", None),
    (Metric::IstiodCpuS, "CPU time of istiod", Some(("CPU time of istiod", "istiod-cpu"))),
    (
        Metric::IstiodMemoryBytes,
        "Resident memory of istiod",
        Some(("Resident memory of istiod", "istiod-memory")),
    ),
    (
        Metric::IstiodMemoryAnonymousBytes,
        "Anonymous memory of istiod",
        Some(("Anonymous memory of istiod", "istiod-memory-anonymous")),
    ),
    (Metric::BytesPerProxy, "Bytes per proxy", Some(("Bytes per proxy", "bytes"))),
];

/// Columns that only some factors have.
const OF_SOME_FACTORS: [Metric; 4] = [
    Metric::ProxiesConfigurationBytes,
    Metric::ConfiguredLastUs,
    Metric::IstiodMemoryBytes,
    Metric::IstiodMemoryAnonymousBytes,
];

/// `None` if no factor has non-numeric values.
pub fn differences(context: &Context) -> Option<DifferenceSection> {
    let all = &context.run.summary.factor_differences;
    let of = |is: fn(Metric) -> bool| {
        all.iter().filter(move |one| is(one.figure)).map(|one| one.estimate.estimate)
    };
    let time_unit = TimeUnit::for_times(of(Metric::is_time));
    let memory_unit = SizeUnit::for_sizes(of(|figure| figure == Metric::ProxiesMemoryAnonymousBytes));
    let is_fleet = all.iter().any(|difference| difference.load.is_fleet());
    let figures: &[Shown] = if is_fleet { &OF_FLEETS } else { &OF_REQUESTS };
    let is_compared = |figure: Metric| {
        !OF_SOME_FACTORS.contains(&figure) || all.iter().any(|difference| difference.figure == figure)
    };
    let columns: Vec<(Metric, &str)> = figures
        .iter()
        .filter(|(figure, ..)| is_compared(*figure))
        .map(|(figure, title, _)| (*figure, *title))
        .collect();
    let mut groups: Vec<(String, Vec<&FactorDifference>)> = Vec::new();
    for difference in all {
        let name = group_name(context, difference);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of_group)) => of_group.push(difference),
            None => groups.push((name, vec![difference])),
        }
    }
    let charts = OF_REQUESTS.into_iter().chain(OF_FLEETS).filter_map(|(figure, _, chart_of)| {
        let (caption, id) = chart_of?;
        let chart = chart(&groups, figure, time_unit)?;
        Some(Chart { svg: chart.draw(&format!("differences-{id}"), caption), caption: caption.to_owned() })
    });
    let charts = charts.collect();
    let groups = groups.into_iter().map(|(name, of_group)| {
        let rows = values(&of_group).into_iter().map(|to| {
            let cells = columns.iter().map(|(figure, _)| {
                let of_value = of_group.iter().find(|one| one.figure == *figure && one.to == to.to);
                of_value.map_or_else(String::new, |one| text(one, time_unit, memory_unit)).into()
            });
            std::iter::once((&to.to).into()).chain(cells).collect()
        });
        Group::new(name, rows.collect())
    });
    let titles = columns.iter().map(|(_, name)| Column::number(name));
    (!all.is_empty()).then(|| DifferenceSection {
        charts,
        time_unit: time_unit.symbol(),
        memory_unit: memory_unit.symbol(),
        of_fleets: is_fleet,
        table: Table {
            columns: std::iter::once(Column::name("Value")).chain(titles).collect(),
            groups: groups.collect(),
        },
    })
}

fn group_name(context: &Context, difference: &FactorDifference) -> String {
    let FactorDifference { factor, mode, factors, load, from, .. } = difference;
    let mut with_value = factors.clone();
    with_value.insert(factor.clone(), from.clone());
    let at = context.conditions.label_without(Conditions { factors: &with_value, load }, factor);
    format!("{factor} against {from}, {mode} at {at}")
}

/// One difference per value.
fn values<'a>(of_group: &[&'a FactorDifference]) -> Vec<&'a FactorDifference> {
    let mut values: Vec<&FactorDifference> = Vec::new();
    for difference in of_group {
        if !values.iter().any(|known| known.to == difference.to) {
            values.push(difference);
        }
    }
    values
}

fn chart(
    groups: &[(String, Vec<&FactorDifference>)],
    figure: Metric,
    time_unit: TimeUnit,
) -> Option<RowChart> {
    let mut lines = Vec::new();
    for (name, of_group) in groups {
        let of_figure = of_group.iter().filter(|difference| difference.figure == figure);
        let rows: Vec<Line> =
            of_figure.filter_map(|difference| row(difference, time_unit)).map(Line::Row).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(name.clone()));
            lines.extend(rows);
        }
    }
    let axis = if figure.is_time() { time_unit.symbol() } else { "percent" };
    let axis = axis.to_owned();
    (!lines.is_empty()).then(|| RowChart { axis, lines, shared: Vec::new(), may_be_logarithmic: false })
}

fn row(difference: &FactorDifference, unit: TimeUnit) -> Option<Row> {
    let style = ModeStyle::for_mode(difference.mode);
    let (drawn, text) = if difference.figure.is_time() {
        let text = Difference::new((&difference.estimate, difference.verdict), unit);
        (difference.estimate.map(|us| us / unit.us()), shown(&text, unit.symbol()))
    } else {
        let relative = difference.relative?;
        let text = Difference::percent((&relative, difference.verdict));
        (relative.map(|fraction| fraction * 100.0), shown(&text, "%"))
    };
    let Estimate { estimate, low, high, .. } = drawn;
    Some(Row {
        label: difference.to.to_string(),
        symbol: Some((style.marker, style.class)),
        value: text,
        mark: Mark::Whisker { estimate, interval: low.zip(high), marker: style.marker, class: style.class },
    })
}

/// Example: `+0.21 ms (0.18–0.24)`, or `none shown (−0.02 to 0.03 ms)`.
fn shown(difference: &Difference, unit: &str) -> String {
    match (&difference.interval.range, difference.shown) {
        (_, true) => difference.interval.text_with_unit(unit),
        (Some(range), false) => format!("none shown ({range} {unit})"),
        (None, false) => format!("{}, no interval", difference.interval.text_with_unit(unit)),
    }
}

fn text(difference: &FactorDifference, time_unit: TimeUnit, memory_unit: SizeUnit) -> String {
    let FactorDifference { figure, estimate, relative, verdict, .. } = difference;
    match (figure, relative) {
        (figure, _) if figure.is_time() => Difference::new((estimate, *verdict), time_unit).text(),
        (Metric::ProxiesMemoryAnonymousBytes, _) => {
            let interval = Interval::scaled(estimate, 1.0 / memory_unit.bytes()).signed();
            if *verdict == results::FindingVerdict::Shown {
                interval.text()
            } else {
                let range = interval.range.as_deref().unwrap_or("no interval");
                format!("none shown ({range})")
            }
        }
        (_, Some(relative)) => shown(&Difference::percent((relative, *verdict)), "%"),
        (_, None) => String::new(),
    }
}
