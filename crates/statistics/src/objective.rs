//! Whether a run met its objective: the exit status of `meshmeter run`.

use crate::findings::words;
use experiment::Experiment;
use experiment::schema::{Cell, Estimate, Summary};
use experiment::units::format_fraction;

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObjectiveOutcome {
    /// Something was measured, and every cell met what was asked; or nothing was asked.
    Good,
    /// No trial is valid, whatever was asked.
    NothingValid,
    /// A cell did not meet what was asked: each miss in words.
    Failed(Vec<String>),
}

impl ObjectiveOutcome {
    /// Whether the exit status is 0.
    #[must_use]
    pub fn is_good(&self) -> bool {
        *self == Self::Good
    }
}

/// Compares each cell's estimates with the objective. A cell without a valid trial does not meet it.
#[must_use]
pub fn objective_met(experiment: &Experiment, summary: &Summary) -> ObjectiveOutcome {
    if summary.cells.iter().all(|cell| cell.valid == 0) {
        return ObjectiveOutcome::NothingValid;
    }
    let misses: Vec<String> = summary.cells.iter().flat_map(|cell| misses(experiment, cell)).collect();
    if misses.is_empty() { ObjectiveOutcome::Good } else { ObjectiveOutcome::Failed(misses) }
}

/// What one cell does not meet, in words. Empty where it meets everything, or nothing is asked.
pub(crate) fn misses(experiment: &Experiment, cell: &Cell) -> Vec<String> {
    let objective = &experiment.objective;
    if objective.is_empty() {
        return Vec::new();
    }
    let place = words::cell(cell);
    let Some(response) = &cell.response_time_us else {
        return vec![format!("{place}: no valid trial ({})", cell.verdict)];
    };
    let mut misses = Vec::new();
    for (name, _, bound) in objective.percentiles() {
        let measured = percentile(response, name);
        if measured.estimate > bound.as_secs_f64() * 1e6 {
            misses.push(format!(
                "{place}: {name} is {}, above {}",
                words::latency(&measured),
                words::bound(bound)
            ));
        }
    }
    if let Some(bound) = objective.errors.filter(|bound| cell.errors > *bound) {
        misses.push(format!(
            "{place}: {} of the requests failed, above {}",
            words::percent(cell.errors),
            format_fraction(bound)
        ));
    }
    misses
}

fn percentile(response: &experiment::schema::Percentiles, name: &str) -> Estimate {
    match name {
        "p50" => response.p50,
        "p90" => response.p90,
        "p99" => response.p99,
        _ => response.p99_9,
    }
}
