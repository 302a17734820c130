//! Usage of each component, over the valid trials of a cell.

use super::estimates::estimate;
use super::holdings;
use experiment::schema::{ComponentSummary, ComponentUsage, ProxyHoldings, Role, TrialRecord};

/// Every component, in the order in which the trials list them.
pub(super) fn components(valid: &[&TrialRecord]) -> Vec<ComponentSummary> {
    let mut keys: Vec<(&str, Role)> = Vec::new();
    for usage in valid.iter().flat_map(|trial| &trial.components) {
        if !keys.contains(&(usage.name.as_str(), usage.role)) {
            keys.push((&usage.name, usage.role));
        }
    }
    keys.into_iter().filter_map(|(name, role)| component(name, role, valid)).collect()
}

fn component(name: &str, role: Role, valid: &[&TrialRecord]) -> Option<ComponentSummary> {
    let usages: Vec<(&ComponentUsage, f64)> = valid
        .iter()
        .filter_map(|trial| {
            let usage = trial.components.iter().find(|usage| usage.name == name && usage.role == role)?;
            Some((usage, trial.result.as_ref()?.rate.completed))
        })
        .collect();
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
