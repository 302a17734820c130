//! What all components of a role used together, over the valid trials of a cell.
//!
//! Sums are made within each trial, so that their intervals know that what one component did not do another may have done.

use super::estimates::estimate;
use experiment::schema::{ComponentUsage, Role, RoleTotal, TrialRecord};

/// Of the proxies and of the control plane; a role that no trial has a component of is left out.
pub(super) fn totals(valid: &[&TrialRecord]) -> Vec<RoleTotal> {
    [Role::Proxy, Role::ControlPlane].into_iter().filter_map(|role| total(role, valid)).collect()
}

fn total(role: Role, valid: &[&TrialRecord]) -> Option<RoleTotal> {
    let sums = || valid.iter().filter_map(|trial| Sum::of(role, trial));
    Some(RoleTotal {
        role,
        components: sums().map(|sum| sum.components).max()?,
        cpu_cores: estimate(sums().map(|sum| sum.cpu_cores))?,
        cpu_cores_per_1000_rps: estimate(sums().filter_map(|sum| sum.cpu_cores_per_1000_rps()))
            .unwrap_or_default(),
        memory_bytes: estimate(sums().filter_map(|sum| sum.memory_bytes)),
        memory_anonymous_bytes: estimate(sums().filter_map(|sum| sum.memory_anonymous_bytes)),
    })
}

/// The components of a role in one trial.
pub(super) struct Sum {
    components: usize,
    cpu_cores: f64,
    memory_bytes: Option<f64>,
    memory_anonymous_bytes: Option<f64>,
    rate_completed: f64,
}

impl Sum {
    /// Absent where the trial has none, or the generator no result.
    pub(super) fn of(role: Role, trial: &TrialRecord) -> Option<Self> {
        let rate_completed = trial.result.as_ref()?.rate.completed;
        let components: Vec<&ComponentUsage> =
            trial.components.iter().filter(|usage| usage.role == role).collect();
        // Of some of them it would be no sum.
        let sum = |bytes: fn(&ComponentUsage) -> Option<u64>| {
            components.iter().map(|usage| bytes(usage).map(|bytes| bytes as f64)).sum::<Option<f64>>()
        };
        (!components.is_empty()).then(|| Self {
            components: components.len(),
            cpu_cores: components.iter().map(|usage| usage.cpu_cores()).sum(),
            memory_bytes: sum(ComponentUsage::memory_bytes),
            memory_anonymous_bytes: sum(|usage| usage.memory_anonymous_bytes),
            rate_completed,
        })
    }

    /// Absent where nothing was completed.
    pub(super) fn cpu_cores_per_1000_rps(&self) -> Option<f64> {
        (self.rate_completed > 0.0).then(|| self.cpu_cores / self.rate_completed * 1000.0)
    }
}
