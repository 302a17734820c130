//! Scaling laws.

use super::{Context, at_first};
use crate::format::{self, Interval};
use experiment::file::label::label;
use results::finding::Effect;
use results::{Conditions, Estimate, ScalingLaw};
use statistics::words;

/// How throughput grows with a factor, and the limits of the measured range.
pub(super) fn scaling(run: &Context<'_>, effect: &Effect) -> String {
    let laws = run.summary.scaling.iter().flat_map(|scaling| scaling.laws());
    let is_it = |law: &&ScalingLaw| {
        (&law.factor, law.mode, &law.factors, Some(&law.load))
            == (&effect.subject, effect.mode, &effect.factors, effect.load.as_ref())
    };
    let Some(law) = laws.into_iter().find(is_it) else { return String::new() };
    let (Some(least), Some(greatest)) = (law.residuals.first(), law.residuals.last()) else {
        return String::new();
    };
    let (from, to) = (format::tick(law.measured.from), format::tick(law.measured.to));
    let parameters = &law.parameters;
    format!(
        "{} mode {} responds to {} with {from} and {} with {to} of {factor}; by the Universal Scalability Law σ {}, κ {}, {}{}. \
         Beyond {from} to {to} nothing was measured.{}",
        at_first(Conditions { factors: &law.factors, load: &law.load }),
        law.mode,
        words::rate(least.measured),
        words::rate(greatest.measured),
        parameter(&parameters.sigma),
        parameter(&parameters.kappa),
        peak(law),
        lack_of_fit(law),
        machine_full(law),
        factor = label(&law.factor),
    )
}

/// Example: `0.05 (0.03–0.07)`, or `0 (at most 0.004)` at its bound.
pub(crate) fn parameter(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) if low <= 0.0 => {
            let value = format::tick(rounded(estimate.estimate));
            format!("{value} (at most {})", format::tick(rounded(high)))
        }
        _ => Interval::new(estimate).text(),
    }
}

/// Rounds values below a millionth to zero.
fn rounded(value: f64) -> f64 {
    if value < 1e-6 { 0.0 } else { value }
}

/// The value beyond which throughput falls.
pub(crate) fn peak(law: &ScalingLaw) -> String {
    match &law.peak {
        None => "no peak is shown".to_owned(),
        Some(peak) => {
            let beyond = if law.measured.contains(peak.estimate) { "" } else { ", extrapolated" };
            format!("throughput peaks at {} {}{beyond}", label(&law.factor), Interval::new(peak).text())
        }
    }
}

/// Values at which the machine had no CPU left.
fn machine_full(law: &ScalingLaw) -> String {
    let full = law.residuals.iter().filter(|residual| residual.machine_full);
    let full: Vec<String> = full.map(|residual| format::tick(residual.at)).collect();
    match &full[..] {
        [] => String::new(),
        values => format!(
            " With {} of {} all CPUs of the machine were busy: generator, service and proxies share that limit.",
            values.join(", "),
            label(&law.factor)
        ),
    }
}

fn lack_of_fit(law: &ScalingLaw) -> &'static str {
    match law.lack_of_fit {
        Some(lack) if lack.shown => "; the law does not describe what was measured (lack of fit)",
        Some(_) => "",
        None => "; too few values to tell whether the law holds",
    }
}
