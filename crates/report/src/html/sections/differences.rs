//! Factors with non-numeric values: each value against the first, as charts and a table.

use super::context::{Context, Figure};
use crate::format::{Interval, SizeUnit, TimeUnit};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::table::Difference;
use results::{ComparedFigure, Conditions, Estimate, FactorDifference, FleetFigure};
use serde::Serialize;

/// Comparison of each such factor.
#[derive(Debug, Serialize)]
pub struct DifferenceSection {
    charts: Vec<Figure>,
    /// Unit of times.
    time_unit: &'static str,
    memory_unit: &'static str,
    /// Column names of the table.
    columns: Vec<&'static str>,
    of_fleets: bool,
    groups: Vec<Group>,
}

/// Values of a factor in one mode under one load.
#[derive(Debug, Serialize)]
struct Group {
    /// Example: `ingress.scenario against no-filters: ingress at 50 clients`.
    name: String,
    rows: Vec<ValueRow>,
}

#[derive(Debug, Serialize)]
struct ValueRow {
    value: String,
    /// One per column; empty if there is no such figure.
    cells: Vec<String>,
}

/// A figure with the caption and the id of its chart.
const CHARTS: [(ComparedFigure, &str, &str); 10] = [
    (ComparedFigure::ResponseTimeP50Us, "Added to the median", "p50"),
    (ComparedFigure::ResponseTimeP99Us, "Added to the 99th percentile", "p99"),
    (ComparedFigure::RateCompleted, "Throughput", "throughput"),
    (ComparedFigure::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request", "cpu"),
    (ComparedFigure::ProxiesConfigurationBytes, "Configuration of all proxies", "configuration"),
    (
        ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us),
        "Added to the 99th percentile of convergence",
        "convergence",
    ),
    (ComparedFigure::Fleet(FleetFigure::IstiodCpuS), "CPU time of istiod", "istiod-cpu"),
    (ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes), "Resident memory of istiod", "istiod-memory"),
    (
        ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes),
        "Anonymous memory of istiod",
        "istiod-memory-anonymous",
    ),
    (ComparedFigure::Fleet(FleetFigure::BytesPerProxy), "Bytes per proxy", "bytes"),
];

/// Columns of the table for requests.
const OF_REQUESTS: [(ComparedFigure, &str); 8] = [
    (ComparedFigure::ResponseTimeP50Us, "p50"),
    (ComparedFigure::ResponseTimeP90Us, "p90"),
    (ComparedFigure::ResponseTimeP99Us, "p99"),
    (ComparedFigure::RateCompleted, "Throughput"),
    (ComparedFigure::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
    (ComparedFigure::ProxiesMemoryAnonymousBytes, "Anonymous memory of all proxies"),
    (ComparedFigure::ProxiesConfigurationBytes, "Configuration of all proxies"),
    (ComparedFigure::ConfiguredLastUs, "Last proxy configured"),
];

/// Columns that only some factors have.
const OF_SOME_FACTORS: [ComparedFigure; 4] = [
    ComparedFigure::ProxiesConfigurationBytes,
    ComparedFigure::ConfiguredLastUs,
    ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes),
    ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes),
];

/// Columns of the table for fleets.
const OF_FLEETS: [(ComparedFigure, &str); 9] = [
    (ComparedFigure::Fleet(FleetFigure::ConvergenceP50Us), "p50"),
    (ComparedFigure::Fleet(FleetFigure::ConvergenceP90Us), "p90"),
    (ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us), "p99"),
    (ComparedFigure::Fleet(FleetFigure::ConvergenceLastUs), "Last"),
    (ComparedFigure::Fleet(FleetFigure::FirstConfigurationLastUs), "First configuration, last"),
    (ComparedFigure::Fleet(FleetFigure::IstiodCpuS), "CPU time of istiod"),
    (ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes), "Resident memory of istiod"),
    (ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes), "Anonymous memory of istiod"),
    (ComparedFigure::Fleet(FleetFigure::BytesPerProxy), "Bytes per proxy"),
];

/// `None` if no factor has non-numeric values.
pub fn differences(context: &Context) -> Option<DifferenceSection> {
    let all = &context.run.summary.factor_differences;
    let of = |is: fn(ComparedFigure) -> bool| {
        all.iter().filter(move |one| is(one.figure)).map(|one| one.estimate.estimate)
    };
    let time_unit = TimeUnit::for_times(of(ComparedFigure::is_time));
    let memory_unit = SizeUnit::for_sizes(of(|figure| figure == ComparedFigure::ProxiesMemoryAnonymousBytes));
    let is_fleet = all.iter().any(|difference| difference.load.is_fleet());
    let columns: &[(ComparedFigure, &'static str)] = if is_fleet { &OF_FLEETS } else { &OF_REQUESTS };
    let is_compared = |figure: ComparedFigure| {
        !OF_SOME_FACTORS.contains(&figure) || all.iter().any(|difference| difference.figure == figure)
    };
    let columns: Vec<(ComparedFigure, &str)> =
        columns.iter().copied().filter(|(figure, _)| is_compared(*figure)).collect();
    let mut groups: Vec<(String, Vec<&FactorDifference>)> = Vec::new();
    for difference in all {
        let name = group_name(context, difference);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of_group)) => of_group.push(difference),
            None => groups.push((name, vec![difference])),
        }
    }
    let charts = CHARTS.into_iter().filter_map(|(figure, caption, id)| {
        let chart = chart(&groups, figure, time_unit)?;
        Some(Figure { svg: chart.draw(&format!("differences-{id}"), caption), caption: caption.to_owned() })
    });
    let charts = charts.collect();
    let groups = groups.into_iter().map(|(name, of_group)| {
        let rows = values(&of_group).into_iter().map(|to| ValueRow {
            value: to.to.to_string(),
            cells: columns
                .iter()
                .map(|(figure, _)| {
                    let of_value = of_group.iter().find(|one| one.figure == *figure && one.to == to.to);
                    of_value.map_or_else(String::new, |one| text(one, time_unit, memory_unit))
                })
                .collect(),
        });
        Group { name, rows: rows.collect() }
    });
    (!all.is_empty()).then(|| DifferenceSection {
        charts,
        time_unit: time_unit.symbol(),
        memory_unit: memory_unit.symbol(),
        of_fleets: is_fleet,
        columns: columns.iter().map(|(_, name)| *name).collect(),
        groups: groups.collect(),
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
    figure: ComparedFigure,
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
        (ComparedFigure::ProxiesMemoryAnonymousBytes, _) => {
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
