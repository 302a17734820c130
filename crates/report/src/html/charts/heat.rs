//! Response times over time: the share of each second's responses by their time, on a logarithmic axis.
//!
//! Long trials have fewer, longer columns; each has all responses of its seconds.

use super::WIDTH;
use crate::format::{self, TimeUnit};
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing};
use results::LatencyHistogram;

const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = HEIGHT - 24.0;
const MAX_COLUMNS: usize = 60;
const ROWS: usize = 24;
/// Lowest shares of a column's responses of the second and further shades.
const SHADES: [f64; 4] = [0.01, 0.05, 0.15, 0.4];

/// The chart as SVG. `class` sets the colour.
pub fn chart(id: &str, title: &str, class: &str, seconds: &[LatencyHistogram], duration_s: f64) -> String {
    let per_column = seconds.len().div_ceil(MAX_COLUMNS).max(1);
    let columns: Vec<LatencyHistogram> = seconds.chunks(per_column).filter_map(together).collect();
    let recorded = || columns.iter().flat_map(LatencyHistogram::recorded).map(|value| value.value_us as f64);
    let unit = TimeUnit::for_times(recorded());
    let times = Scale::logarithmic(recorded().map(|us| us / unit.us()), (BOTTOM, TOP));
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    for tick in times.ticks(5) {
        let y = times.place(tick);
        drawing.line((LEFT, y), (RIGHT, y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    drawing.text((LEFT - 6.0, 11.0), Anchor::End, "tick unit", unit.symbol());
    let (width, height) = ((RIGHT - LEFT) / columns.len().max(1) as f64, (BOTTOM - TOP) / ROWS as f64);
    for (number, column) in columns.iter().enumerate() {
        let x = LEFT + number as f64 * width;
        for (row, count) in rows(column, &times, unit).into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            let share = count as f64 / column.count() as f64;
            let shade = 1 + SHADES.iter().filter(|lowest| share >= **lowest).count();
            let corner = (x, BOTTOM - (row + 1) as f64 * height);
            drawing.rectangle(corner, width, height, &format!("heat heat-{shade} {class}"));
        }
        let tip = format!(
            "{}: {}, p50 {}, p99 {}",
            format::duration((number * per_column) as f64),
            format::counted(column.count(), "response", "responses"),
            format::time(column.percentile_us(50.0)),
            format::time(column.percentile_us(99.0))
        );
        drawing.rectangle_with_tip((x, TOP), width, BOTTOM - TOP, "hover", &tip);
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    let ends = [(LEFT, Anchor::Start, "0 s".to_owned()), (RIGHT, Anchor::End, format::duration(duration_s))];
    for (x, anchor, text) in ends {
        drawing.text((x, HEIGHT - 8.0), anchor, "tick", &text);
    }
    let slowest = columns.iter().map(LatencyHistogram::max_us).fold(0.0, f64::max);
    drawing.finish(id, title, &format!("Slowest response {}.", format::time(slowest)))
}

fn together(seconds: &[LatencyHistogram]) -> Option<LatencyHistogram> {
    let (first, others) = seconds.split_first()?;
    let mut all = first.clone();
    others.iter().for_each(|other| all.merge(other));
    Some(all)
}

/// Responses of a column in each row, from the bottom.
fn rows(column: &LatencyHistogram, times: &Scale, unit: TimeUnit) -> [u64; ROWS] {
    let mut rows = [0_u64; ROWS];
    for value in column.recorded() {
        let part = (BOTTOM - times.place(value.value_us as f64 / unit.us())) / (BOTTOM - TOP);
        rows[((part * ROWS as f64) as usize).min(ROWS - 1)] += value.count;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn second(times_ms: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        times_ms.iter().for_each(|ms| histogram.record(Duration::from_millis(*ms)));
        histogram
    }

    #[test]
    fn shades_are_shares_of_each_column() {
        let seconds = [second(&[1; 99]), second(&[1, 100]), second(&[])];
        let svg = chart("heat", "t", "blue", &seconds, 3.0);
        let count = |shade: usize| svg.matches(&format!("heat heat-{shade} ")).count();
        assert_eq!([1, 2, 3, 4, 5].map(count), [0, 0, 0, 0, 3], "{svg}");
        assert!(svg.contains("Slowest response 100") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn size_does_not_grow_with_the_length_of_a_trial() {
        let seconds = vec![second(&[1, 2, 3, 500]); 10_000];
        let svg = chart("heat", "t", "blue", &seconds, 10_000.0);
        assert_eq!(svg.matches("\"hover\"").count(), 60, "columns");
        assert!(!chart("heat", "t", "blue", &[], 0.0).contains("NaN"));
    }
}
