//! What all components of a role used together, over the trials of a cell.
//!
//! Sums are made within each trial, so their intervals account for work that moves from one component to
//! another.

use super::estimates::estimate;
use super::tables::{SUMMED_ROLES, Tables};
use results::{CellKey, ComponentUsage, Figure, Role, RoleTotal, TrialRecord};

/// Totals of the proxies, of the services behind their filters and of the control plane of a cell. Roles
/// without a component in any trial are left out.
pub(super) fn totals(cell: CellKey<'_>, tables: &Tables<'_>) -> Vec<RoleTotal> {
    SUMMED_ROLES.into_iter().filter_map(|role| total(role, cell, tables)).collect()
}

fn total(role: Role, cell: CellKey<'_>, tables: &Tables<'_>) -> Option<RoleTotal> {
    let trials = tables.trials(cell, Figure::Cpu);
    let components = trials.iter().filter_map(|trial| Some(Sum::for_role(role, trial)?.components)).max()?;
    let memory = |read: fn(&Sum) -> Option<f64>| {
        let trials = tables.trials(cell, Figure::Memory);
        estimate(trials.iter().filter_map(|trial| read(&Sum::for_role(role, trial)?)))
    };
    Some(RoleTotal {
        role,
        components,
        cpu_cores: tables.cpu(role, cell)?,
        cpu_cores_per_1000_rps: tables.cpu_per_request(role, cell).unwrap_or_default(),
        memory_bytes: memory(|sum| sum.memory_bytes),
        memory_working_set_bytes: memory(|sum| sum.memory_working_set_bytes),
        memory_anonymous_bytes: memory(|sum| sum.memory_anonymous_bytes),
    })
}

/// The components of a role in one trial.
pub(super) struct Sum {
    components: usize,
    pub(super) cpu_cores: f64,
    pub(super) memory_bytes: Option<f64>,
    memory_working_set_bytes: Option<f64>,
    pub(super) memory_anonymous_bytes: Option<f64>,
    rate_completed: f64,
}

impl Sum {
    /// `None` if the trial has no such component, or the generator has no result.
    pub(super) fn for_role(role: Role, trial: &TrialRecord) -> Option<Self> {
        let rate_completed = trial.result.as_ref()?.rate.completed;
        let components: Vec<&ComponentUsage> =
            trial.components.iter().filter(|usage| usage.role == role).collect();
        // A sum over only some of them would be wrong.
        let sum = |bytes: fn(&ComponentUsage) -> Option<u64>| {
            components.iter().map(|usage| bytes(usage).map(|bytes| bytes as f64)).sum::<Option<f64>>()
        };
        (!components.is_empty()).then(|| Self {
            components: components.len(),
            cpu_cores: components.iter().map(|usage| usage.cpu_cores()).sum(),
            memory_bytes: sum(ComponentUsage::memory_bytes),
            memory_working_set_bytes: sum(|usage| usage.memory_working_set_bytes),
            memory_anonymous_bytes: sum(|usage| usage.memory_anonymous_bytes),
            rate_completed,
        })
    }

    /// `None` if no request was completed.
    pub(super) fn cpu_cores_per_1000_rps(&self) -> Option<f64> {
        (self.rate_completed > 0.0).then(|| self.cpu_cores / self.rate_completed * 1000.0)
    }
}
