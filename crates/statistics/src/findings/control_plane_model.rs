//! Costs of the control plane: a finding per law of the main model.

use super::run::Run;
use results::{CostLaw, Finding, FindingFigure, FindingKind, FindingVerdict};

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
    let verdict = slope.verdict.unwrap_or_else(|| FindingVerdict::from_interval(&slope.coefficient));
    let figure = FindingFigure::Slope(format!("{} per {}", law.unit, slope.variable));
    Some(Finding {
        verdict: Some(if fits { verdict } else { FindingVerdict::NotShown }),
        ..Finding::new(FindingKind::ControlPlaneCost).about(subject).with_figure(figure, &slope.coefficient)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{CostResidual, CostTerm, Estimate};

    #[test]
    fn a_slope_is_shown_by_its_verdict_among_all_that_the_run_tests() {
        let law = |verdict| {
            let coefficient = Estimate { estimate: 2.0, low: Some(1.0), high: Some(3.0), n: 5 };
            let slope = CostTerm { variable: "bytes/s".into(), coefficient, verdict };
            CostLaw { terms: vec![CostTerm::default(), slope], ..CostLaw::default() }
        };
        let verdict = |law: CostLaw| finding("changing", &law).and_then(|finding| finding.verdict);
        for expected in [FindingVerdict::Shown, FindingVerdict::NotShown] {
            let residual = CostResidual { measured: 1.0, fitted: 1.1, ..CostResidual::default() };
            assert_eq!(verdict(CostLaw { residuals: vec![residual], ..law(Some(expected)) }), Some(expected));
        }
        assert_eq!(
            verdict(law(Some(FindingVerdict::Shown))),
            Some(FindingVerdict::NotShown),
            "nothing says that it fits"
        );
    }
}
