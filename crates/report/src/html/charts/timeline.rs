//! A trial second by second: completed and failed requests, median and 99th percentile.
//!
//! Long trials are drawn with fewer, longer spans: rates are means over a span, times are the maximum over
//! its seconds.

use super::WIDTH;
use crate::format::{self, TimeUnit};
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing};
use results::SeriesPoint;

const HEIGHT: f64 = 170.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 40.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = HEIGHT - 24.0;

/// Consecutive seconds of a trial that are drawn as one.
#[derive(Debug)]
pub struct Span {
    start_s: f64,
    completed_per_s: f64,
    failed_per_s: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

impl Span {
    /// `seconds` of a window, which may end within one of them or before.
    fn new(seconds: &[SeriesPoint], window_s: f64) -> Option<Self> {
        let first = seconds.first()?;
        let length_s: f64 = seconds.iter().map(|second| second.length_s(window_s)).sum();
        let rate = |count: fn(&SeriesPoint) -> u64| seconds.iter().map(count).sum::<u64>() as f64 / length_s;
        // A median of 0 means that no request ended in that second. If it falls among failed requests, it is
        // absent.
        let longest = |time: fn(&SeriesPoint) -> Option<f64>| {
            let times = seconds.iter().filter_map(time).filter(|us| *us > 0.0);
            times.reduce(f64::max)
        };
        Some(Self {
            start_s: first.t_s,
            completed_per_s: rate(|second| second.completed),
            failed_per_s: rate(|second| second.failed),
            p50_us: longest(|second| second.p50_us),
            p99_us: longest(|second| second.p99_us),
        })
    }

    fn tip(&self) -> String {
        let time = |time_us: Option<f64>| match (time_us, self.failed_per_s > 0.0) {
            (Some(time_us), _) => format::time(time_us),
            (None, true) => format::above(None),
            (None, false) => format::ABSENT.to_owned(),
        };
        let failed = match self.failed_per_s {
            0.0 => String::new(),
            failed => format!(", {} failed", format::rate(failed)),
        };
        format!(
            "{}: {}{failed}, p50 {}, p99 {}",
            format::duration(self.start_s),
            format::rate(self.completed_per_s),
            time(self.p50_us),
            time(self.p99_us)
        )
    }
}

/// At most `most` spans of a trial.
pub fn spans(series: &[SeriesPoint], duration_s: f64, most: usize) -> Vec<Span> {
    let seconds_per_span = series.len().div_ceil(most.max(1)).max(1);
    series.chunks(seconds_per_span).filter_map(|seconds| Span::new(seconds, duration_s)).collect()
}

/// Axes that the trials of a load share, so that they can be compared.
#[derive(Debug)]
pub struct Axes {
    times: Scale,
    rates: Scale,
    unit: TimeUnit,
}

impl Axes {
    /// Axes that cover all these spans.
    pub fn new(spans: &[&Span]) -> Self {
        let times = || spans.iter().flat_map(|span| [span.p50_us, span.p99_us]).flatten();
        let unit = TimeUnit::for_times(times());
        let scaled: Vec<f64> = times().map(|us| us / unit.us()).collect();
        let rates = spans.iter().map(|span| span.completed_per_s + span.failed_per_s);
        Self {
            times: Scale::fitting(&scaled, (BOTTOM, TOP)),
            rates: Scale::linear(rates, (BOTTOM, TOP)),
            unit,
        }
    }
}

/// The chart of one trial.
pub fn chart(id: &str, title: &str, class: &str, spans: &[Span], axes: &Axes, duration_s: f64) -> String {
    let Axes { times: time_scale, rates: rate_scale, unit } = axes;
    let width = (RIGHT - LEFT) / spans.len() as f64;
    let middle = |index: usize| LEFT + (index as f64 + 0.5) * width;
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    draw_axes(&mut drawing, axes);
    for (index, span) in spans.iter().enumerate() {
        let x = LEFT + index as f64 * width + width * 0.08;
        let top = |rate: f64| rate_scale.place(rate);
        let completed = top(span.completed_per_s + span.failed_per_s);
        drawing.rectangle((x, completed), width * 0.84, BOTTOM - completed, &format!("second {class}"));
        let failed = top(span.failed_per_s);
        drawing.rectangle((x, failed), width * 0.84, BOTTOM - failed, "failed");
    }
    let line = |time: fn(&Span) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = spans.iter().enumerate();
        points
            .filter_map(|(index, span)| Some((middle(index), time_scale.place(time(span)? / unit.us()))))
            .collect()
    };
    drawing.polyline(&line(|span| span.p50_us), &format!("curve {class}"));
    drawing.polyline(&line(|span| span.p99_us), &format!("curve dashed {class}"));
    for (index, span) in spans.iter().enumerate() {
        let corner = (LEFT + index as f64 * width, TOP);
        drawing.rectangle_with_tip(corner, width, BOTTOM - TOP, "hover", &span.tip());
    }
    for (x, anchor, text) in
        [(LEFT, Anchor::Start, "0 s".to_owned()), (RIGHT, Anchor::End, format::duration(duration_s))]
    {
        drawing.text((x, HEIGHT - 8.0), anchor, "tick", &text);
    }
    let slowest = spans.iter().filter_map(|span| span.p99_us).fold(0.0, f64::max);
    drawing.finish(id, title, &format!("Longest p99 of a second {}.", format::time(slowest)))
}

fn draw_axes(drawing: &mut Drawing, Axes { times, rates, unit }: &Axes) {
    for tick in times.ticks(4) {
        let y = times.place(tick);
        drawing.line((LEFT, y), (RIGHT, y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    let ticks = rates.ticks(3);
    // Five digits do not fit beside the chart.
    let (divisor, of_rates) = match ticks.iter().any(|tick| *tick >= 1e4) {
        true => (1e3, "1000 requests/s"),
        false => (1.0, "requests/s"),
    };
    for tick in ticks {
        let text = format::tick(tick / divisor);
        drawing.text((RIGHT + 4.0, rates.place(tick) + 3.5), Anchor::Start, "tick", &text);
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    drawing.text((LEFT - 6.0, 11.0), Anchor::End, "tick unit", unit.symbol());
    drawing.text((WIDTH, 11.0), Anchor::End, "tick unit", of_rates);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_a_span_counts_the_parts_of_its_seconds_in_the_window_and_seconds_after_it() {
        let second = |t_s: f64, completed: u64| SeriesPoint { t_s, completed, ..SeriesPoint::default() };
        // A window of 3.5 s at 100/s, and late responses in the second after it.
        let series = [second(0.0, 100), second(1.0, 100), second(2.0, 100), second(3.0, 50), second(4.0, 30)];
        let rates = |most| -> Vec<f64> {
            spans(&series, 3.5, most).iter().map(|span| span.completed_per_s).collect()
        };
        assert_eq!(rates(5), [100.0, 100.0, 100.0, 100.0, 30.0]);
        assert_eq!(rates(3), [100.0, 100.0, 30.0]);
        assert_eq!(rates(2), [100.0, 80.0 / 1.5]);
    }
}
