//! Scaling laws: how throughput grows with a CPU limit, workers or replicas.

use super::run::Run;
use results::{Finding, FindingKind, FindingVerdict, Metric, ScalingLaw};

/// A finding for the first law of each factor and mode.
pub(super) fn scaling(run: &Run<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for law in run.summary.scaling.iter().flat_map(|scaling| scaling.laws()) {
        let is_same = |known: &Finding| {
            known.subject.as_deref() == Some(law.factor.as_str()) && known.mode == Some(law.mode)
        };
        if !findings.iter().any(is_same) {
            findings.push(finding(law));
        }
    }
    findings
}

fn finding(law: &ScalingLaw) -> Finding {
    let verdict = match law.lack_of_fit {
        Some(lack) if lack.shown => FindingVerdict::NotShown,
        _ => FindingVerdict::Shown,
    };
    Finding {
        mode: Some(law.mode),
        factors: law.factors.clone(),
        load: Some(law.load.clone()),
        verdict: Some(verdict),
        ..Finding::new(FindingKind::Scaling)
            .about(law.factor.as_str())
            .with_figure(Metric::RateCompleted, &law.parameters.lambda)
    }
}
