//! Costs of the control plane: a finding per law of the main model.

use super::run::Run;
use results::finding::{Law, LawCost};
use results::{CostLaw, Finding, FindingVerdict};

/// A law does not hold if a cell deviates from it by more than this fraction.
const LACK_OF_FIT: f64 = 0.25;

pub(super) fn costs(run: &Run<'_>) -> Vec<Finding> {
    let Some(model) = &run.summary.control_plane_model else { return Vec::new() };
    let costs = &model.main;
    let laws = [
        (Law::Changing, &costs.changing),
        (Law::Memory, &costs.memory),
        (Law::Configuration, &costs.configuration),
        (Law::Connecting, &costs.connecting),
    ];
    laws.into_iter().filter_map(|(law, costs)| cost(law, costs)).map(Finding::ControlPlaneCost).collect()
}

fn cost(law: Law, costs: &CostLaw) -> Option<LawCost> {
    let slope = costs.terms.get(1)?;
    let fits = costs.greatest_residual().is_some_and(|residual| residual <= LACK_OF_FIT);
    let verdict = slope.verdict.unwrap_or_else(|| FindingVerdict::from_interval(&slope.coefficient));
    Some(LawCost {
        law,
        figure: format!("{} per {}", costs.unit, slope.variable),
        value: slope.coefficient.estimate,
        estimate: slope.coefficient,
        verdict: if fits { verdict } else { FindingVerdict::NotShown },
        n: slope.coefficient.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{CostResidual, CostTerm, Estimate};

    #[test]
    fn a_slope_is_shown_by_its_verdict_among_all_that_the_run_tests() {
        let law = |verdict| {
            let coefficient = Estimate { estimate: 2.0, low: Some(1.0), high: Some(3.0), n: 5, alone: None };
            let slope = CostTerm { variable: "bytes/s".into(), coefficient, verdict };
            CostLaw { terms: vec![CostTerm::default(), slope], ..CostLaw::default() }
        };
        let verdict = |law: CostLaw| cost(Law::Changing, &law).map(|cost| cost.verdict);
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
