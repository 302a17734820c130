//! Scaling laws: throughput against a CPU limit, workers or replicas, as measured and by the law.

use super::context::{Chart, Context, ModeRow};
use crate::format::{self, Interval};
use crate::html::charts::curve::{Beyond, CurveChart, MeasuredPoint};
use crate::html::style::ModeStyle;
use crate::sentences::scaling::{parameter, peak};
use experiment::file::label::label;
use results::{Cell, Conditions, Estimate, ScalingLaw, ScalingResidual};
use serde::Serialize;

/// Further charts are collapsed.
const MAX_OPEN_CHARTS: usize = 4;
/// The curve extends to this multiple of the largest measured value.
const EXTRAPOLATED: f64 = 2.0;
const CURVE_POINTS: usize = 64;

/// Charts and parameters.
#[derive(Debug, Serialize)]
pub struct ScalingSection {
    charts: Vec<Chart>,
    folded: Vec<Chart>,
    rows: Vec<ModeRow>,
}

/// `None` if no law was fitted.
pub fn scaling(context: &Context) -> Option<ScalingSection> {
    let laws: Vec<&ScalingLaw> = context.run.summary.scaling.as_ref()?.laws().collect();
    let mut charts: Vec<Chart> =
        laws.iter().enumerate().map(|(index, law)| figure(context, index, law)).collect();
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    Some(ScalingSection { charts, folded, rows: laws.iter().map(|law| row(context, law)).collect() })
}

fn place(context: &Context, law: &ScalingLaw) -> String {
    let at = Conditions { factors: &law.factors, load: &law.load };
    format!("{} at {}", law.mode, context.conditions.label(at))
}

fn row(context: &Context, law: &ScalingLaw) -> ModeRow {
    let parameters = &law.parameters;
    let range = format!("{} to {}", format::tick(law.measured.from), format::tick(law.measured.to));
    let outside = if law.measured.contains(1.0) { "" } else { ", extrapolated" };
    let fit = match law.lack_of_fit {
        Some(lack) if lack.shown => "does not fit",
        Some(_) => "fits",
        None => "unknown",
    };
    // λ, σ, κ, peak, measured range, deviation, fit.
    let values = [
        format!("{}{outside}", Interval::new(&parameters.lambda).text()),
        parameter(&parameters.sigma),
        parameter(&parameters.kappa),
        peak(law),
        range,
        law.deviation.map_or_else(|| format::ABSENT.to_owned(), format::percent),
        fit.to_owned(),
    ];
    ModeRow::new(law.mode, format!("{}, {}", label(&law.factor), place(context, law)), values)
}

fn figure(context: &Context, index: usize, law: &ScalingLaw) -> Chart {
    let caption = format!("Throughput against {}: {}", label(&law.factor), place(context, law));
    let style = ModeStyle::for_mode(law.mode);
    let point = |residual: &ScalingResidual| {
        let interval = interval(context, law, residual.at);
        let shown = interval.unwrap_or_else(|| Estimate::single(residual.measured));
        let full = if residual.machine_full { "; all CPUs of the machine were busy" } else { "" };
        let text = format!(
            "{} {}: measured {} requests/s, by the law {}{full}",
            label(&law.factor),
            format::tick(residual.at),
            Interval::new(&shown).text(),
            format::digits(residual.fitted)
        );
        MeasuredPoint {
            at: residual.at,
            value: residual.measured,
            interval: interval.and_then(|estimate| estimate.low.zip(estimate.high)),
            text,
        }
    };
    let (from, to) = (law.measured.from, law.measured.to);
    let curve = |from: f64, to: f64| -> Vec<(f64, f64)> {
        let at = |step: usize| from + (to - from) * step as f64 / CURVE_POINTS as f64;
        (0..=CURVE_POINTS).map(|step| (at(step), law.throughput(at(step)))).collect()
    };
    let chart = CurveChart {
        points: law.residuals.iter().map(point).collect(),
        curve: curve(from, to),
        beyond: Beyond { before: curve(0.0, from), after: curve(to, to * EXTRAPOLATED) },
        against: label(&law.factor),
        unit: "/s",
        style,
    };
    let svg = chart.draw(&format!("scaling-{index}"), &caption);
    Chart::new(caption, svg)
}

/// The interval of the matching cell, if the law is for a closed loop.
fn interval(context: &Context, law: &ScalingLaw, at: f64) -> Option<Estimate> {
    let is_it = |cell: &&Cell| {
        let mut factors = cell.factors.clone();
        let value = factors.remove(&law.factor);
        value.and_then(|value| value.quantity(&law.factor)) == Some(at)
            && (cell.mode, &factors, &cell.load) == (law.mode, &law.factors, &law.load)
    };
    context.run.summary.cells.iter().find(is_it)?.rate_completed
}
