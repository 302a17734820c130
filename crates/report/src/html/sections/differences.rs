//! Factors with non-numeric values: each value against the first, as charts and a table.

use super::context::{Chart, Context};
use crate::differences::{DifferenceTable, grouped};
use crate::format::TimeUnit;
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::table::Difference;
use results::{Estimate, FactorDifference, Metric};
use serde::Serialize;

/// Comparison of each such factor.
#[derive(Debug, Serialize)]
pub struct DifferenceSection {
    charts: Vec<Chart>,
    #[serde(flatten)]
    of: DifferenceTable,
}

/// Charts: figure, caption, id.
const CHARTS: [(Metric, &str, &str); 9] = [
    (Metric::ResponseTimeP50Us, "Added to the median", "p50"),
    (Metric::ResponseTimeP99Us, "Added to the 99th percentile", "p99"),
    (Metric::RateCompleted, "Throughput", "throughput"),
    (Metric::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request", "cpu"),
    (Metric::ProxiesConfigurationBytes, "Configuration of all proxies", "configuration"),
    (Metric::ConvergenceP99Us, "Added to the 99th percentile of convergence", "convergence"),
    (Metric::IstiodCpuS, "CPU time of istiod", "istiod-cpu"),
    (Metric::IstiodMemoryBytes, "Resident memory of istiod", "istiod-memory"),
    (Metric::IstiodMemoryAnonymousBytes, "Anonymous memory of istiod", "istiod-memory-anonymous"),
];
const BYTES: (Metric, &str, &str) = (Metric::BytesPerProxy, "Bytes per proxy", "bytes");

/// `None` if no factor has non-numeric values.
pub fn differences(context: &Context) -> Option<DifferenceSection> {
    let summary = &context.run.summary;
    let groups = grouped(&summary.factor_differences, &context.conditions);
    let unit = DifferenceTable::unit(summary);
    let charts = CHARTS.into_iter().chain([BYTES]).filter_map(|(figure, caption, id)| {
        let chart = chart(&groups, figure, unit)?;
        Some(Chart::new(caption.to_owned(), chart.draw(&format!("differences-{id}"), caption)))
    });
    Some(DifferenceSection { charts: charts.collect(), of: DifferenceTable::new(summary)? })
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
        (difference.estimate.map(|us| us / unit.us()), text.text_with_unit(unit.symbol()))
    } else {
        let relative = difference.relative?;
        let text = Difference::percent((&relative, difference.verdict));
        (relative.map(|fraction| fraction * 100.0), text.text_with_unit("%"))
    };
    let Estimate { estimate, low, high, .. } = drawn;
    Some(Row {
        label: difference.to.to_string(),
        symbol: Some((style.marker, style.class)),
        value: text,
        mark: Mark::Whisker { estimate, interval: low.zip(high), marker: style.marker, class: style.class },
    })
}
