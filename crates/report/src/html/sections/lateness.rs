//! Lateness of the generator, a chart per load, and the gaps that its spinning threads saw.

use super::context::{Chart, Context};
use crate::format::{self, TimeUnit};
use crate::html::charts::rows::{Dot, Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use crate::svg::Marker;
use results::{Cell, CellKey, SpinPauses, TrialRecord};
use serde::Serialize;
use statistics::copies::Spread;
use statistics::is_excluded;

/// The 99th percentile of each trial, by mode.
pub fn lateness(context: &Context) -> Vec<Chart> {
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
        (!chart.lines.is_empty()).then_some(Chart::new(caption, svg))
    });
    charts.collect()
}

/// Gaps that the generator's threads saw themselves while they spun, in the trials of a cell.
#[derive(Debug, Serialize)]
pub struct Gaps {
    cell: String,
    text: String,
}

/// Those of each cell whose generator spun.
pub fn gaps(context: &Context) -> Vec<Gaps> {
    let of_cell = |cell: &Cell| {
        let results = context.trials.of(cell.key()).iter().filter_map(|trial| trial.result.as_ref());
        let seen: Vec<SpinPauses> = results.filter_map(|result| result.generator.pauses).collect();
        let spun_s: f64 = seen.iter().map(|gaps| gaps.spun_s).sum();
        let count: u64 = seen.iter().map(|gaps| gaps.count).sum();
        let longest_us = seen.iter().map(|gaps| gaps.longest_us).fold(0.0, f64::max);
        (count > 0 && spun_s > 0.0).then(|| Gaps {
            cell: format!("{} at {}", cell.mode, context.conditions.label(cell.conditions())),
            text: format!(
                "{} per second of spinning, the longest {}",
                format::digits(count as f64 / spun_s),
                format::time(longest_us)
            ),
        })
    };
    context.run.summary.cells.iter().filter_map(of_cell).collect()
}

/// `None` for a closed loop, which has no schedule to be late for.
fn p99_us(trial: &TrialRecord) -> Option<f64> {
    let result = trial.result.as_ref()?;
    let lag = &result.generator_lag_us;
    lag.p99.filter(|_| lag.count > 0 && trial.load.rate.is_some())
}

fn row(context: &Context, cell: CellKey<'_>, unit: TimeUnit) -> Option<Row> {
    let trials = context.trials.of(cell);
    let style = ModeStyle::for_mode(cell.mode);
    let late = || trials.iter().filter_map(|trial| Some((trial, p99_us(trial)?)));
    let spread = Spread::new(late().map(|(_, us)| us))?;
    let dots = late().map(|(trial, us)| Dot {
        value: us / unit.us(),
        track: 0,
        marker: if is_excluded(trial) { Marker::Cross } else { style.marker },
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
