//! Figures that noise of the machine keeps out of the estimates.

use super::Context;
use crate::disturbed::noise;
use results::finding::{OfCell, Value};
use results::{Conditions, Factors, Metric, Unit};
use statistics::words;

/// Maximum number of modes named.
const MAX_MODES: usize = 6;

/// The noise, and the main figure of each mode that it disturbed.
pub(super) fn disturbed(run: &Context<'_>, group: &[&OfCell<Value>]) -> String {
    let load = &group[0].place.load;
    let is_of_load = |one: &&&OfCell<Value>| one.place.load == *load;
    let several = run.summary.cells.iter().any(|cell| cell.load != *load);
    let at = if several {
        format!(" {}", words::at(Conditions { factors: &Factors::new(), load }))
    } else {
        String::new()
    };
    let figures: Vec<String> = group.iter().filter(is_of_load).map(|one| figure(one)).collect();
    let more = match figures.len().saturating_sub(MAX_MODES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = figures.into_iter().take(MAX_MODES).collect::<Vec<_>>().join(", ");
    format!("{}; disturbed{at}: {named}{more}.", noise(run.summary))
}

/// `sidecar 2.95 ms`
fn figure(one: &OfCell<Value>) -> String {
    let Value { figure, value } = one.content;
    let text = match figure.unit() {
        Unit::PerSecond => words::rate(value),
        _ => words::latency_value(value),
    };
    let name = match figure {
        Metric::ConvergenceP99Us => "p99 ",
        Metric::FirstConfigurationLastUs => "first configuration ",
        _ => "",
    };
    format!("{} {name}{text}", one.place.mode)
}
