//! Usage of each component, over the trials of a cell in which it is usable.

use super::estimates::estimate;
use super::footprint;
use super::tables::Tables;
use crate::trials::usable;
use results::{
    CellKey, ComponentSummary, ComponentUsage, Estimate, Figure, ProxyFootprint, Role, RoleTotal, TrialRecord,
};
use std::collections::{HashMap, HashSet};

/// A component's usage in each trial.
type Usages<'a> = Vec<(&'a TrialRecord, &'a ComponentUsage)>;

/// Every component, in the order in which the trials of the cell list them. The only component of a role has the CPU of
/// the role's total: one figure has one interval.
pub(super) fn components(
    cell: CellKey<'_>,
    trials: &[&TrialRecord],
    tables: &Tables<'_>,
    totals: &[RoleTotal],
) -> Vec<ComponentSummary> {
    let mut components = each_alone(cell, trials, tables);
    for total in totals {
        let mut of_role = components.iter_mut().filter(|component| component.role == total.role);
        if let (Some(only), None) = (of_role.next(), of_role.next()) {
            only.cpu_cores = total.cpu_cores;
            only.cpu_cores_per_1000_rps = total.cpu_cores_per_1000_rps;
        }
    }
    components
}

fn each_alone(cell: CellKey<'_>, trials: &[&TrialRecord], tables: &Tables<'_>) -> Vec<ComponentSummary> {
    let mut positions: HashMap<(&str, Role), usize> = HashMap::new();
    let mut all: Vec<((&str, Role), Usages<'_>)> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.result.is_some()) {
        for usage in &trial.components {
            let key = (usage.name.as_str(), usage.role);
            let position = *positions.entry(key).or_insert_with(|| {
                all.push((key, Vec::new()));
                all.len() - 1
            });
            all[position].1.push((trial, usage));
        }
    }
    let indices =
        |figure| -> HashSet<usize> { usable(trials, figure).iter().map(|trial| trial.index).collect() };
    let usable = Usable { memory: indices(Figure::Memory), network: indices(Figure::Network) };
    let of = |((name, role), usages): ((&str, Role), Usages<'_>)| {
        component(name, role, &usages, &usable, tables.component_cpu(name, role, cell))
    };
    all.into_iter().filter_map(of).collect()
}

/// Indices of the trials in which each figure is usable.
struct Usable {
    memory: HashSet<usize>,
    network: HashSet<usize>,
}

fn component(
    name: &str,
    role: Role,
    all: &Usages<'_>,
    usable: &Usable,
    [cpu_cores, cpu_cores_per_1000_rps]: [Option<Estimate>; 2],
) -> Option<ComponentSummary> {
    let each = |usable: &HashSet<usize>, read: &dyn Fn(&ComponentUsage) -> Option<f64>| {
        let usages = all.iter().filter(|(trial, _)| usable.contains(&trial.index));
        estimate(usages.filter_map(|(_, usage)| read(usage)))
    };
    let memory = |read: &dyn Fn(&ComponentUsage) -> Option<u64>| {
        each(&usable.memory, &|usage| read(usage).map(|bytes| bytes as f64))
    };
    let read = || all.iter().filter(|(trial, _)| usable.memory.contains(&trial.index));
    let held: Vec<&ProxyFootprint> = read().filter_map(|(_, usage)| usage.holdings.as_ref()).collect();
    let a_second =
        |usage: &ComponentUsage, bytes: u64| (usage.window_s > 0.0).then(|| bytes as f64 / usage.window_s);
    Some(ComponentSummary {
        name: name.to_owned(),
        role,
        cpu_cores: cpu_cores?,
        cpu_cores_per_1000_rps: cpu_cores_per_1000_rps.unwrap_or_default(),
        memory_bytes: memory(&ComponentUsage::memory_bytes),
        memory_resident_bytes: memory(&|usage| {
            Some(usage.memory_resident_bytes).filter(|bytes| *bytes > 0 && usage.role != Role::Kernel)
        }),
        memory_working_set_bytes: memory(&|usage| usage.memory_working_set_bytes),
        memory_anonymous_bytes: memory(&|usage| usage.memory_anonymous_bytes),
        memory_before_load_bytes: memory(&|usage| usage.memory_before_load_bytes),
        memory_after_load_bytes: memory(&|usage| usage.memory_after_load_bytes),
        memory_anonymous_before_load_bytes: memory(&|usage| usage.memory_anonymous_before_load_bytes),
        memory_anonymous_after_load_bytes: memory(&|usage| usage.memory_anonymous_after_load_bytes),
        heap_before_load: footprint::heap(&held, |holdings| holdings.heap_before_load),
        heap_after_load: footprint::heap(&held, |holdings| holdings.heap_after_load),
        configuration: footprint::configuration(&held),
        configured_in_s: estimate(
            read().filter_map(|(trial, _)| trial.push.as_ref()?.in_force_s.get(name).copied()),
        ),
        further_domain_in_s: estimate(read().filter_map(|(trial, _)| trial.further_domain_in_s(name))),
        unread: footprint::unread(&held),
        network_bytes_received_s: each(&usable.network, &|usage| {
            a_second(usage, usage.network?.received_bytes)
        }),
        network_bytes_sent_s: each(&usable.network, &|usage| a_second(usage, usage.network?.sent_bytes)),
    })
}
