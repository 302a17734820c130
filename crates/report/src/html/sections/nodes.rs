//! Nodes of a cluster during the valid trials.

use crate::format::{self, cores};
use results::{NodeUsage, TrialRecord};
use statistics::is_excluded;
use std::collections::BTreeMap;

/// Maximum number of nodes shown: the busiest ones.
const MAX_SHOWN: usize = 8;

/// Usage of each node, as a name and a text, the busiest first. Empty for a lab.
pub fn nodes(trials: &[TrialRecord]) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<&str, Vec<&NodeUsage>> = BTreeMap::new();
    for node in trials.iter().filter(|trial| !is_excluded(trial)).flat_map(|trial| &trial.nodes) {
        by_name.entry(&node.name).or_default().push(node);
    }
    let busy = |node: &NodeUsage| Some(node.busy_cores);
    let mut nodes: Vec<(&str, f64, Vec<&NodeUsage>)> =
        by_name.into_iter().filter_map(|(name, seen)| Some((name, mean(&seen, busy)?, seen))).collect();
    nodes.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
    let further = nodes.split_off(nodes.len().min(MAX_SHOWN)).len();
    let shown =
        nodes.iter().map(|(name, busy, seen)| (format!("Node {name} during trials"), text(*busy, seen)));
    let further = (further > 0).then(|| ("Less busy nodes".to_owned(), format::count(further as u64)));
    shown.chain(further).collect()
}

fn text(busy: f64, seen: &[&NodeUsage]) -> String {
    let of = seen.iter().find_map(|node| node.cpus).map(|cpus| format!(" of {cpus}")).unwrap_or_default();
    let mut text = format!("{}{of} cores busy", format::cores_number(busy));
    if let Some(system) = mean(seen, |node| node.system_cores) {
        text += &format!(", {} in the kernel", cores(system));
    }
    if let Some(other) = mean(seen, |node| node.other_cores) {
        text += &format!("; {} in no container of the experiment", cores(other));
        if let Some(system) = mean(seen, |node| node.other_system_cores) {
            text += &format!(", {} of it in the kernel", cores(system));
        }
    }
    text
}

/// Mean over the trials that have the figure; `None` if none does.
fn mean(seen: &[&NodeUsage], figure: impl Fn(&NodeUsage) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = seen.iter().filter_map(|node| figure(node)).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}
