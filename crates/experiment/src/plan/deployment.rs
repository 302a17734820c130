//! Which trials of a repeat share a deployment.

use super::trial::PlannedTrial;
use crate::dataplane::Entry;
use crate::definition::Fresh;
use crate::environment::spec::DeploymentSpec;

/// Above this number of pods bringing a deployment up takes longer than a trial's window.
const MAX_PODS_FRESH_TRIAL: usize = 10;

/// The same of a gateway's routes.
const MAX_ROUTES_FRESH_TRIAL: usize = 2_000;

impl Fresh {
    /// Default for what this deployment costs to bring up.
    #[must_use]
    pub fn default_for(spec: &DeploymentSpec) -> Self {
        let has_gateway = spec.parts().entry != Entry::Direct;
        let is_large = spec.topology.pods() > MAX_PODS_FRESH_TRIAL
            || has_gateway && spec.ingress.routes() > MAX_ROUTES_FRESH_TRIAL;
        if is_large { Self::Mode } else { Self::Trial }
    }
}

/// Numbers the deployments of a repeat from `first`, and moves the trials that share one next to each other. The order of
/// deployments is that of their first trials, and the order within one stays: both are as random as the order given.
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
