//! Costs of the control plane: a finding per law of the main model.

use super::run::Run;
use experiment::schema::{CostLaw, Finding, FindingKind, FindingVerdict};

/// A law does not hold if a cell deviates from it by more than this fraction.
const LACK_OF_FIT: f64 = 0.25;

pub(super) fn costs(run: &Run<'_>) -> Vec<Finding> {
    let Some(model) = &run.summary.control_plane_model else { return Vec::new() };
    let costs = &model.main;
    let laws = [
        ("changing", &costs.changing),
        ("memory", &costs.memory),
        ("configuration", &costs.configuration),
        ("connecting", &costs.connecting),
    ];
    laws.into_iter().filter_map(|(subject, law)| finding(subject, law)).collect()
}

fn finding(subject: &str, law: &CostLaw) -> Option<Finding> {
    let slope = law.terms.get(1)?;
    let fits = law.greatest_residual().is_some_and(|residual| residual <= LACK_OF_FIT);
    let is_shown = slope.coefficient.excludes_zero() && fits;
    let figure = format!("{} per {}", law.unit, slope.variable);
    Some(Finding {
        verdict: Some(if is_shown { FindingVerdict::Shown } else { FindingVerdict::NotShown }),
        ..Finding::new(FindingKind::ControlPlaneCost).about(subject).with_figure(&figure, &slope.coefficient)
    })
}
