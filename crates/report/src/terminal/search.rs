//! Output of `meshmeter load --search` at its end: the answer, then the curve of latency against rate.

use super::style::plain;
use crate::format::{self, TimeUnit};
use results::{RatePoint, SearchResult};
use std::fmt::Write as _;

/// Length of the longest bar in columns.
const BAR_COLUMNS: f64 = 30.0;
/// Bars are cut at this multiple of the median p99: a saturated rate would flatten all others.
const MAX_BAR_RATIO: f64 = 20.0;

/// A search as text, ending with a line break.
#[must_use]
pub fn search_text(result: &SearchResult) -> String {
    let mut text = format!("{}\n", plain(&result.verdict.text));
    for note in &result.verdict.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    if result.curve.is_empty() {
        return text;
    }
    text.push('\n');
    for url in &result.urls {
        let _ = writeln!(text, "{:<10} {}", "target", plain(url));
    }
    let _ = writeln!(
        text,
        "{:<10} {} in {}\n",
        "search",
        format::counted(result.probes.len() as u64, "probe", "probes"),
        format::duration(result.duration_s)
    );
    curve(&mut text, result);
    text
}

fn curve(text: &mut String, result: &SearchResult) {
    let points = &result.curve;
    let unit =
        TimeUnit::for_times(points.iter().filter(|point| point.held > 0).filter_map(|point| point.p99_us));
    let _ = writeln!(
        text,
        "  {:>11} {:>9} {:>9} {:>9}  {:>6}  p99 in {}, each bar to scale",
        "requests/s",
        "p50",
        "p99",
        "p99.9",
        "held",
        unit.symbol()
    );
    let longest_us = longest(points);
    let found = result.found.map(|found| found.rate);
    for point in points {
        let mark = if Some(point.rate) == found { '>' } else { ' ' };
        let _ = writeln!(
            text,
            "{mark} {:>11} {:>9} {:>9} {:>9}  {:>6}  {}",
            point.rate.to_string(),
            unit.number_or_above(point.p50_us, None),
            unit.number_or_above(point.p99_us, None),
            unit.number_or_above(point.p99_9_us, None),
            format!("{}/{}", point.held, point.probes),
            bar(point, longest_us)
        );
    }
}

/// The p99 of the longest bar: the maximum, limited to [`MAX_BAR_RATIO`] times the median.
fn longest(points: &[RatePoint]) -> f64 {
    let mut times: Vec<f64> = points.iter().filter_map(|point| point.p99_us).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    times.last().copied().unwrap_or(0.0).min(median * MAX_BAR_RATIO).max(f64::MIN_POSITIVE)
}

fn bar(point: &RatePoint, longest_us: f64) -> String {
    let columns = (point.p99_us.unwrap_or(f64::INFINITY) / longest_us * BAR_COLUMNS).round();
    let (columns, cut) = if columns > BAR_COLUMNS { (BAR_COLUMNS, "…") } else { (columns.max(1.0), "") };
    let saturated = if point.saturated { " saturated" } else { "" };
    format!("{}{cut}{saturated}", "█".repeat(columns as usize))
}
