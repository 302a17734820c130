//! Scaling laws: how throughput grows with a CPU limit, workers or replicas.

use super::run::Run;
use results::finding::{Effect, Measured};
use results::{Finding, FindingVerdict, Metric, ScalingLaw};

/// A finding for the first law of each factor and mode.
pub(super) fn scaling(run: &Run<'_>) -> Vec<Finding> {
    let mut first: Vec<&ScalingLaw> = Vec::new();
    for law in run.summary.scaling.iter().flat_map(|scaling| scaling.laws()) {
        if !first.iter().any(|known| (&known.factor, known.mode) == (&law.factor, law.mode)) {
            first.push(law);
        }
    }
    first.into_iter().map(finding).collect()
}

fn finding(law: &ScalingLaw) -> Finding {
    let throughput = &law.parameters.lambda;
    Finding::Scaling(Effect {
        mode: law.mode,
        factors: law.factors.clone(),
        load: Some(law.load.clone()),
        subject: law.factor.clone(),
        measured: Measured::new(Metric::RateCompleted, throughput),
        verdict: match law.lack_of_fit {
            Some(lack) if lack.shown => FindingVerdict::NotShown,
            _ => FindingVerdict::Shown,
        },
        n: throughput.n,
    })
}
