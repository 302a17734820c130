//! The whole distribution, corrected for coordinated omission and uncorrected: a table of every cell, and a
//! chart of each cell whose clocks differ.

use super::context::{Chart, Context};
use crate::clocks::ClockTable;
use crate::html::charts::WIDTH;
use crate::html::charts::percentiles::{Axes, Subject, chart};
use crate::html::curves::Curve;
use results::{Cell, DistributionPoint, RequestDistribution};
use serde::Serialize;
use statistics::CurvePoint;

/// Further charts are collapsed.
const MAX_OPEN_CHARTS: usize = 6;

#[derive(Debug, Serialize)]
pub struct CorrectedSection {
    table: ClockTable,
    /// Number of cells whose clocks show the same.
    alike: usize,
    charts: Vec<Chart>,
    folded: Vec<Chart>,
}

/// `None` if no open-loop cell has figures.
pub fn corrected(context: &Context) -> Option<CorrectedSection> {
    let table = ClockTable::new(&context.run.summary)?;
    let with_clocks =
        context.run.summary.cells.iter().filter_map(|cell| Some((cell, cell.distribution.as_ref()?)));
    let differing: Vec<Curve> = with_clocks
        .filter(|(_, distribution)| distribution.saturated || distribution.clocks_differ())
        .map(|(cell, distribution)| curve(cell, distribution))
        .collect();
    let axes = Axes::new(&differing, WIDTH);
    let figure = |(index, curve): (usize, &Curve)| {
        let label = format!("{} at {}", curve.mode, context.conditions.label(curve.conditions()));
        let draw = |width, id: &str| chart(id, &label, &[curve], &axes.in_width(width), Subject::Requests);
        Chart::in_row(label.clone(), &format!("corrected-{index}"), differing.len() == 1, draw)
    };
    let mut charts: Vec<Chart> = differing.iter().enumerate().map(figure).collect();
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    Some(CorrectedSection { alike: table.alike(), table, charts, folded })
}

/// The points are the percentiles of the table, except the maximum, which has no position on an axis of
/// nines. For a saturated cell the corrected line covers the answered requests only; all others lie above it.
fn curve(cell: &Cell, distribution: &RequestDistribution) -> Curve {
    let points = |read: fn(&DistributionPoint) -> Option<f64>| -> Vec<CurvePoint> {
        let below = distribution.percentiles.iter().filter(|point| point.percentile < 100.0);
        below
            .filter_map(|point| Some(CurvePoint { percentile: point.percentile, value_us: read(point)? }))
            .collect()
    };
    let response = points(if distribution.saturated {
        |point| point.answered_response_time_us
    } else {
        |point| point.response_time_us
    });
    Curve {
        mode: cell.mode,
        factors: cell.factors.clone(),
        load: cell.load.clone(),
        marks: response.clone(),
        response,
        service: points(|point| point.service_time_us),
    }
}
