//! Checks what a deployment needs of its namespaces' quotas before it is written. Pure. Sidecars that a mesh
//! injects are not known yet: admission reports if they exceed a quota.

use results::parse_kubernetes_quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Amounts by namespace and by the resource's name in quotas, such as `pods` or `requests.cpu`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand(BTreeMap<String, BTreeMap<String, f64>>);

impl Demand {
    /// Total demand of these objects.
    pub fn from_objects(objects: &[Value]) -> Self {
        let mut demand = Self::default();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            let Some(namespace) = object["metadata"]["namespace"].as_str() else { continue };
            let amounts = demand.0.entry(namespace.to_owned()).or_default();
            let mut add = |resource: String, amount: f64| *amounts.entry(resource).or_default() += amount;
            match object["apiVersion"].as_str().and_then(|version| version.split_once('/')) {
                Some((group, _)) => add(format!("count/{kind}s.{group}"), 1.0),
                None => {
                    add(format!("count/{kind}s"), 1.0);
                    add(format!("{kind}s"), 1.0);
                }
            }
            let spec = &object["spec"];
            let containers = spec["template"]["spec"]["containers"].as_array();
            let pods = spec["replicas"].as_f64().or(spec["parallelism"].as_f64()).unwrap_or(1.0);
            let Some(containers) = containers else { continue };
            add("pods".to_owned(), pods);
            add("count/pods".to_owned(), pods);
            for container in containers {
                for (resource, bound) in
                    ["cpu", "memory"].into_iter().flat_map(|one| [(one, "requests"), (one, "limits")])
                {
                    let resources = &container["resources"];
                    let amount = quantity(&resources[bound][resource]);
                    // Kubernetes uses the limit as the request if there is no request.
                    let amount = amount.or_else(|| quantity(&resources["limits"][resource]));
                    let amount = pods * amount.unwrap_or(0.0);
                    add(format!("{bound}.{resource}"), amount);
                    if bound == "requests" {
                        add(resource.to_owned(), amount);
                    }
                }
            }
        }
        demand
    }

    /// Raises each amount to the greater one of both.
    pub fn raise_to(&mut self, other: &Self) {
        for (namespace, amounts) in &other.0 {
            let own = self.0.entry(namespace.clone()).or_default();
            for (resource, amount) in amounts {
                let own = own.entry(resource.clone()).or_default();
                *own = amount.max(*own);
            }
        }
    }

    /// Resources that a namespace's quota does not leave, one per line. Quotas with a scope are left to
    /// admission.
    pub(crate) fn lacks_in(&self, namespace: &str, quota: &Value) -> Vec<String> {
        let is_scoped = !quota["spec"]["scopes"].is_null() || !quota["spec"]["scopeSelector"].is_null();
        let Some(amounts) = self.0.get(namespace).filter(|_| !is_scoped) else { return Vec::new() };
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        let (hard, used) = (&quota["status"]["hard"], &quota["status"]["used"]);
        let lack = |(resource, wanted): (&String, &f64)| {
            let limit = quantity(&hard[resource])?;
            let taken = quantity(&used[resource]).unwrap_or(0.0);
            // Tolerance for sums of decimal fractions.
            let is_too_much = taken + wanted > limit * (1.0 + 1e-9);
            (*wanted > 0.0 && is_too_much).then(|| {
                let text = |value: &Value| value.as_str().unwrap_or("0").to_owned();
                format!(
                    "quota {name} of namespace {namespace} leaves too little {resource}: {} of {} are used, and the run needs {wanted}",
                    text(&used[resource]),
                    text(&hard[resource])
                )
            })
        };
        amounts.iter().filter_map(lack).collect()
    }
}

/// A Kubernetes quantity as a number: `250m`, `1Gi`, `3`.
pub(crate) fn quantity(value: &Value) -> Option<f64> {
    parse_kubernetes_quantity(value.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(replicas: usize) -> Value {
        let resources = json!({"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "perf"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"resources": resources}]}}},
        })
    }

    fn lacks(demand: &Demand, hard: &Value, used: &Value) -> Vec<String> {
        demand.lacks_in("perf", &json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}}))
    }

    #[test]
    fn insufficient_quotas_are_named() {
        let mut demand = Demand::from_objects(&[deployment(2)]);
        demand.raise_to(&Demand::from_objects(&[deployment(4)]));
        let none = json!({});
        assert_eq!(
            lacks(&demand, &json!({"pods": "4"}), &json!({"pods": "1"})),
            ["quota q of namespace perf leaves too little pods: 1 of 4 are used, and the run needs 4"]
        );
        assert!(lacks(&demand, &json!({"pods": "5", "requests.cpu": "1"}), &json!({"pods": "1"})).is_empty());
        assert_eq!(lacks(&demand, &json!({"requests.cpu": "900m"}), &none).len(), 1);
        assert_eq!(lacks(&demand, &json!({"limits.memory": "250Mi"}), &none).len(), 1);
        assert_eq!(lacks(&demand, &json!({"requests.memory": "250Mi"}), &none).len(), 1);
        assert_eq!(lacks(&demand, &json!({"count/deployments.apps": "0"}), &none).len(), 1);
        assert!(demand.lacks_in("other", &json!({"status": {"hard": {"pods": "0"}}})).is_empty());
    }
}
