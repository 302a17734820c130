//! Nodes that pods of a run may use: generators those with the label that the user names, measured pods the
//! others.

use crate::connection::Connected;
use crate::finding::{CheckOutcome, Finding};
use crate::lists::list_objects;
use crate::settings::ClusterSettings;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Puts a pod that sends load on the generator nodes. Their taint is usually the same as the label.
pub(crate) fn place_generator(settings: &ClusterSettings, pod_spec: &mut Value) {
    let Some((label, wanted)) = &settings.generator_nodes else { return };
    pod_spec["nodeSelector"] = json!({label.as_str(): wanted});
    pod_spec["tolerations"] = json!([{"key": label, "operator": "Equal", "value": wanted}]);
}

/// Keeps a measured pod off the generator nodes.
pub(crate) fn place_measured(settings: &ClusterSettings, pod_spec: &mut Value) {
    let Some((label, unwanted)) = &settings.generator_nodes else { return };
    let elsewhere = json!([{"key": label, "operator": "NotIn", "values": [unwanted]}]);
    pod_spec["affinity"]["nodeAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": elsewhere}]},
    });
}

/// Checks that nodes with the generators' label and nodes without it accept pods. Absent without a label, or
/// if the user may not list nodes: then the scheduler reports it.
pub(crate) fn check_nodes(cluster: &Connected, settings: &ClusterSettings) -> Option<Finding> {
    let label = settings.generator_nodes.as_ref()?;
    Some(finding(label, &list_objects(&cluster.api, ("v1", "Node"), None, "").ok()?))
}

fn finding((label, wanted): &(String, String), nodes: &[Value]) -> Finding {
    let (mut of_generators, mut others): (Vec<&Value>, Vec<&Value>) =
        nodes.iter().partition(|node| node["metadata"]["labels"][label] == **wanted);
    of_generators.retain(|node| takes_pods(node, Some((label, wanted))));
    others.retain(|node| takes_pods(node, None));
    let missing = |text: String| {
        let hint = format!("label some of the nodes: kubectl label node NAME {label}={wanted}");
        Finding { standing: CheckOutcome::Missing, text, hint: Some(hint) }
    };
    if of_generators.is_empty() {
        return missing(format!(
            "no node that takes pods has the label {label}={wanted}, where generators are to run"
        ));
    }
    if others.is_empty() {
        let text = format!(
            "every node that takes pods has the label {label}={wanted}: none is left for what is measured"
        );
        return missing(text);
    }
    let text = format!(
        "generators run on {} nodes with the label {label}={wanted}, what is measured on {} others",
        of_generators.len(),
        others.len()
    );
    Finding { standing: CheckOutcome::Right, text, hint: None }
}

/// True if a node accepts pods that tolerate this label as a taint, and no other taint.
fn takes_pods(node: &Value, tolerated: Option<(&str, &str)>) -> bool {
    let is_tolerated = |taint: &Value| {
        let is_soft = taint["effect"] == "PreferNoSchedule";
        is_soft || tolerated.is_some_and(|(key, value)| taint["key"] == key && taint["value"] == value)
    };
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    node["spec"]["unschedulable"] != true && taints.all(is_tolerated)
}

/// A note with the nodes that run both generators and measured pods; absent if there are none.
pub(crate) fn note_shared_nodes(generators: &BTreeSet<&str>, measured: &BTreeSet<&str>) -> Option<String> {
    let shared: Vec<&str> = generators.intersection(measured).copied().collect();
    (!shared.is_empty()).then(|| {
        let nodes = shared.join(", ");
        format!("generators ran on nodes of what is measured ({nodes}), and took CPU there: --generator-nodes keeps them apart")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: &str, is_closed: bool) -> Value {
        json!({"metadata": {"labels": {"load": label}}, "spec": {"unschedulable": is_closed}})
    }

    #[test]
    fn nodes_of_both_kinds_must_be_schedulable() {
        let label = ("load".to_owned(), "true".to_owned());
        let (of_generators, other) = (node("true", false), node("no", false));
        let standing =
            |nodes: &[&Value]| finding(&label, &nodes.iter().copied().cloned().collect::<Vec<_>>()).standing;
        assert_eq!(standing(&[&of_generators, &other]), CheckOutcome::Right);
        assert_eq!(standing(&[&of_generators]), CheckOutcome::Missing);
        assert_eq!(standing(&[&other]), CheckOutcome::Missing);
        assert_eq!(standing(&[&node("true", true), &other]), CheckOutcome::Missing, "it takes no pods");
    }

    #[test]
    fn nodes_with_other_taints_are_not_counted() {
        let tainted = |key: &str, value: &str, effect: &str| {
            let taint = json!({"key": key, "value": value, "effect": effect});
            let labels = json!({"load": if key == "load" { "true" } else { "no" }});
            json!({"metadata": {"labels": labels}, "spec": {"taints": [taint]}})
        };
        let label = ("load".to_owned(), "true".to_owned());
        let of_generators = tainted("load", "true", "NoSchedule");
        let beside = |other| finding(&label, &[of_generators.clone(), other]).standing;
        assert_eq!(beside(node("no", false)), CheckOutcome::Right);
        assert_eq!(
            beside(tainted("node-role.kubernetes.io/control-plane", "", "NoSchedule")),
            CheckOutcome::Missing
        );
        assert_eq!(beside(tainted("disk", "slow", "PreferNoSchedule")), CheckOutcome::Right);
    }

    #[test]
    fn shared_nodes_are_named() {
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(note_shared_nodes(&set(&["a", "b"]), &set(&["c"])), None);
        let note = note_shared_nodes(&set(&["a", "b"]), &set(&["b", "c"])).unwrap();
        assert!(note.contains("(b)"), "{note}");
    }
}
