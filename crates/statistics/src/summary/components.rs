//! Usage of each component, over the trials of a cell in which it is usable.

use super::estimates::estimate;
use super::footprint;
use super::tables::{Subject, Tables};
use crate::trials::usable;
use results::{
    CellKey, ComponentSummary, ComponentUsage, Estimate, Estimates, Figure, Metric, ProxyFootprint, Role,
    RoleTotal, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
    let figures: BTreeSet<Figure> =
        ComponentSummary::by_key().map(Metric::spoiled_by).chain([Figure::Memory]).collect();
    let indices = |figure| usable(trials, figure).iter().map(|trial| trial.index).collect();
    let usable = figures.into_iter().map(|figure| (figure, indices(figure))).collect();
    let of = |((name, role), usages): ((&str, Role), Usages<'_>)| {
        let cpu = |metric| tables.mean(Subject::Component(name, role), metric, cell);
        let cpu = (cpu(Metric::CpuCores)?, cpu(Metric::CpuCoresPer1000Rps).unwrap_or_default());
        Some(component(name, role, cpu, &usages, &usable))
    };
    all.into_iter().filter_map(of).collect()
}

/// `usable`: by figure, the indices of the trials in which it is usable.
fn component(
    name: &str,
    role: Role,
    (cpu_cores, cpu_cores_per_1000_rps): (Estimate, Estimate),
    all: &Usages<'_>,
    usable: &BTreeMap<Figure, HashSet<usize>>,
) -> ComponentSummary {
    let usable = |figure: Figure| all.iter().filter(move |(trial, _)| usable[&figure].contains(&trial.index));
    let read = |metric: Metric| {
        estimate(usable(metric.spoiled_by()).filter_map(|(trial, usage)| metric.read_of(trial, usage)))
    };
    let held: Vec<&ProxyFootprint> =
        usable(Figure::Memory).filter_map(|(_, usage)| usage.holdings.as_ref()).collect();
    ComponentSummary {
        name: name.to_owned(),
        role,
        cpu_cores,
        cpu_cores_per_1000_rps,
        estimates: Estimates::read(ComponentSummary::by_key(), read),
        heap_before_load: footprint::heap(&held, |holdings| holdings.heap_before_load),
        heap_after_load: footprint::heap(&held, |holdings| holdings.heap_after_load),
        configuration: footprint::configuration(&held),
        unread: footprint::unread(&held),
    }
}
