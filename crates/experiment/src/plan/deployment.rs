//! Deployments shared by trials of a repeat.

use super::trial::PlannedTrial;
use crate::dataplane::Entry;
use crate::definition::Fresh;
use crate::environment::spec::DeploymentSpec;

/// Maximum number of pods with a deployment per trial: above it, bring-up takes longer than a trial's window.
const MAX_PODS_FRESH_TRIAL: usize = 10;

/// Maximum number of gateway routes with a deployment per trial, for the same reason.
const MAX_ROUTES_FRESH_TRIAL: usize = 2_000;

impl Fresh {
    /// Default, from the cost of bringing up this deployment.
    #[must_use]
    pub fn default_for(spec: &DeploymentSpec) -> Self {
        let has_gateway = spec.parts().entry != Entry::Direct;
        let is_large = spec.topology.pods() > MAX_PODS_FRESH_TRIAL
            || has_gateway && spec.ingress.routes() > MAX_ROUTES_FRESH_TRIAL;
        if is_large { Self::Mode } else { Self::Trial }
    }
}

/// Numbers the deployments of a repeat from `first`, and makes trials that share one adjacent. Deployments
/// are ordered by their first trials, and trials within one keep their order, so both orders are as random as
/// the given one.
pub(super) fn group(
    trials: Vec<PlannedTrial>,
    first: usize,
    fresh: impl Fn(&PlannedTrial) -> Fresh,
) -> Vec<PlannedTrial> {
    let mut groups: Vec<Vec<PlannedTrial>> = Vec::new();
    for trial in trials {
        let shares = |group: &&mut Vec<PlannedTrial>| group[0].spec == trial.spec;
        let shared = if fresh(&trial) == Fresh::Mode { groups.iter_mut().find(shares) } else { None };
        match shared {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    let numbered = groups.into_iter().zip(first..);
    numbered
        .flat_map(|(group, deployment)| {
            group.into_iter().map(move |trial| PlannedTrial { deployment, ..trial })
        })
        .collect()
}
