//! Lateness of the generator, one chart per load.

use super::context::{Context, Figure};
use crate::format::TimeUnit;
use crate::html::charts::rows::{Dot, Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::svg::Marker;
use experiment::schema::{CellKey, TrialRecord};
use statistics::copies::Spread;

/// The 99th percentile of each trial, by mode.
pub fn lateness(context: &Context) -> Vec<Figure> {
    let all = || context.run.trials.iter().filter_map(p99_us);
    let unit = TimeUnit::for_times(all());
    let shared: Vec<f64> = all().map(|us| us / unit.us()).collect();
    let charts = context.conditions.all().enumerate().filter_map(|(index, at)| {
        let rows = context.modes.iter().filter_map(|mode| row(context, at.cell(*mode), unit));
        let lines: Vec<Line> = rows.map(Line::Row).collect();
        let caption = context.conditions.label(at);
        let axis = format!("lateness at the 99th percentile, {}", unit.symbol());
        let chart = RowChart { axis, lines, shared: shared.clone(), may_be_logarithmic: true };
        let svg =
            chart.draw(&format!("lateness-{index}"), &format!("Lateness of the generator at {caption}"));
        (!chart.lines.is_empty()).then_some(Figure { caption, svg })
    });
    charts.collect()
}

/// `None` for a closed loop, which has no schedule to be late for.
fn p99_us(trial: &TrialRecord) -> Option<f64> {
    let result = trial.result.as_ref()?;
    let lag = &result.generator_lag_us;
    lag.p99.filter(|_| lag.count > 0 && trial.load.rate.is_some())
}

fn row(context: &Context, cell: CellKey<'_>, unit: TimeUnit) -> Option<Row> {
    let trials = context.trials.of(cell);
    let style = ModeStyle::of(cell.mode);
    let late = || trials.iter().filter_map(|trial| Some((trial, p99_us(trial)?)));
    let spread = Spread::new(late().map(|(_, us)| us))?;
    let dots = late().map(|(trial, us)| Dot {
        value: us / unit.us(),
        track: 0,
        marker: if trial.verdict.valid { style.marker } else { Marker::Cross },
        class: format!("mark {}", style.class),
        tip: format!("{}, trial {}: {}", cell.mode, trial.index + 1, unit.time(us)),
    });
    Some(Row {
        label: cell.mode.name().to_owned(),
        symbol: Some((style.marker, style.class)),
        value: format!(
            "{} ({}–{})",
            unit.time(spread.sum / spread.copies as f64),
            unit.number(spread.least),
            unit.number(spread.greatest)
        ),
        mark: Mark::Dots(dots.collect()),
    })
}
