//! Usage of each component, over the valid trials of a cell.

use super::estimates::estimate;
use super::holdings;
use experiment::schema::{ComponentSummary, ComponentUsage, ProxyHoldings, Role, TrialRecord};
use std::collections::HashMap;

/// What a component used in each trial, with the responses per second in it.
type Usages<'a> = Vec<(&'a ComponentUsage, f64)>;

/// Every component, in the order in which the trials list them.
pub(super) fn components(valid: &[&TrialRecord]) -> Vec<ComponentSummary> {
    let mut positions: HashMap<(&str, Role), usize> = HashMap::new();
    let mut all: Vec<((&str, Role), Usages<'_>)> = Vec::new();
    for (trial, result) in valid.iter().filter_map(|trial| Some((trial, trial.result.as_ref()?))) {
        for usage in &trial.components {
            let key = (usage.name.as_str(), usage.role);
            let position = *positions.entry(key).or_insert_with(|| {
                all.push((key, Vec::new()));
                all.len() - 1
            });
            all[position].1.push((usage, result.rate.completed));
        }
    }
    all.into_iter().filter_map(|((name, role), usages)| component(name, role, &usages, valid)).collect()
}

fn component(
    name: &str,
    role: Role,
    usages: &[(&ComponentUsage, f64)],
    valid: &[&TrialRecord],
) -> Option<ComponentSummary> {
    let each = |read: &dyn Fn(&ComponentUsage, f64) -> Option<f64>| {
        estimate(usages.iter().filter_map(|(usage, rate)| read(usage, *rate)))
    };
    let memory = |read: &dyn Fn(&ComponentUsage) -> Option<u64>| {
        each(&|usage, _| read(usage).map(|bytes| bytes as f64))
    };
    let held: Vec<&ProxyHoldings> = usages.iter().filter_map(|(usage, _)| usage.holdings.as_ref()).collect();
    let a_second =
        |usage: &ComponentUsage, bytes: u64| (usage.window_s > 0.0).then(|| bytes as f64 / usage.window_s);
    Some(ComponentSummary {
        name: name.to_owned(),
        role,
        cpu_cores: each(&|usage, _| Some(usage.cpu_cores()))?,
        cpu_cores_per_1000_rps: each(&|usage, rate| (rate > 0.0).then(|| usage.cpu_cores() / rate * 1000.0))
            .unwrap_or_default(),
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
        heap_before_load: holdings::heap(&held, |holdings| holdings.heap_before_load),
        heap_after_load: holdings::heap(&held, |holdings| holdings.heap_after_load),
        configuration: holdings::configuration(&held),
        configured_in_s: estimate(
            valid.iter().filter_map(|trial| trial.push.as_ref()?.in_force_s.get(name).copied()),
        ),
        unread: holdings::unread(&held),
        network_bytes_received_s: each(&|usage, _| a_second(usage, usage.network?.received_bytes)),
        network_bytes_sent_s: each(&|usage, _| a_second(usage, usage.network?.sent_bytes)),
    })
}
