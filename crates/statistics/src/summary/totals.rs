//! What all components of a role used together, over the trials of a cell.

use super::estimates::estimate;
use super::tables::{SUMMED_ROLES, Subject, Tables};
use results::{CellKey, Figure, Metric, Role, RoleTotal};

/// Totals of the proxies, of the services behind their filters and of the control plane of a cell. Roles
/// without a component in any trial are left out.
pub(super) fn totals(cell: CellKey<'_>, tables: &Tables<'_>) -> Vec<RoleTotal> {
    SUMMED_ROLES.into_iter().filter_map(|role| total(role, cell, tables)).collect()
}

fn total(role: Role, cell: CellKey<'_>, tables: &Tables<'_>) -> Option<RoleTotal> {
    let cpu = |metric| tables.mean(Subject::Role(role), metric, cell);
    let cpu_cores = cpu(Metric::CpuCores)?;
    let with_result = tables.trials(cell, Figure::Cpu).into_iter().filter(|trial| trial.result.is_some());
    let components = with_result
        .map(|trial| trial.components.iter().filter(|component| component.role == role).count())
        .max()?;
    let memory = |metric| {
        let trials = tables.trials(cell, Figure::Memory);
        estimate(trials.iter().filter_map(|trial| trial.sum_under_load(role, metric)))
    };
    Some(RoleTotal {
        role,
        components,
        cpu_cores,
        cpu_cores_per_1000_rps: cpu(Metric::CpuCoresPer1000Rps).unwrap_or_default(),
        memory_bytes: memory(Metric::MemoryBytes),
        memory_working_set_bytes: memory(Metric::MemoryWorkingSetBytes),
        memory_anonymous_bytes: memory(Metric::MemoryAnonymousBytes),
    })
}
