//! Detects whether a ztunnel accepts plaintext for a pod, from its own dump (`/config_dump`). It has no setting
//! for it: istiod converts `PeerAuthentication` to policies that deny connections without an identity.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Workloads and the policies that ztunnel enforces for them.
#[derive(Debug, Deserialize)]
pub struct Enforced {
    #[serde(default)]
    workloads: Vec<Workload>,
    #[serde(default)]
    policies: Vec<Policy>,
}

#[derive(Debug, Deserialize)]
struct Workload {
    name: String,
    namespace: String,
    /// Policies with a selector that selects it: `namespace/name`.
    #[serde(default, rename = "authorizationPolicies")]
    selected_by: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    name: String,
    namespace: String,
    scope: Scope,
    action: Action,
    #[serde(default)]
    dry_run: bool,
    /// Holds if one of its rules does; a rule if all its clauses do; a clause if it is empty or one of its
    /// matches holds.
    rules: Vec<Vec<Vec<Match>>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
enum Scope {
    Global,
    Namespace,
    WorkloadSelector,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
enum Action {
    Allow,
    Deny,
}

/// Holds if all its conditions do, but not without any.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Match {
    destination_ports: Vec<u16>,
    not_destination_ports: Vec<u16>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Conditions that hold for every caller without an identity.
const WITHOUT_IDENTITY: [&str; 3] = ["notPrincipals", "notNamespaces", "notServiceAccounts"];

impl Enforced {
    /// True if plaintext is accepted at this port of a pod, from any address; absent if ztunnel does not know
    /// the pod.
    pub fn accepts_plaintext(&self, (namespace, name): (&str, &str), port: u16) -> Option<bool> {
        let is_own = |workload: &&Workload| workload.namespace == namespace && workload.name == name;
        let workload = self.workloads.iter().find(is_own)?;
        let mut policies = self.policies.iter().filter(|policy| policy.applies_to(workload));
        Some(!policies.any(|policy| policy.denies_plaintext(port)))
    }
}

impl Policy {
    fn applies_to(&self, workload: &Workload) -> bool {
        match self.scope {
            Scope::Global => true,
            Scope::Namespace => self.namespace == workload.namespace,
            Scope::WorkloadSelector => {
                let is_own =
                    |key: &String| key.split_once('/') == Some((self.namespace.as_str(), self.name.as_str()));
                workload.selected_by.iter().any(is_own)
            }
        }
    }

    fn denies_plaintext(&self, port: u16) -> bool {
        let clause = |clause: &Vec<Match>| clause.is_empty() || clause.iter().any(|one| one.holds(port));
        self.action == Action::Deny && !self.dry_run && self.rules.iter().any(|rule| rule.iter().all(clause))
    }
}

impl Match {
    /// True if it holds at this port for a caller without an identity, whatever its address.
    fn holds(&self, port: u16) -> bool {
        let Self { destination_ports, not_destination_ports, others } = self;
        let mut conditions =
            others.iter().filter(|(_, value)| **value != Value::Array(Vec::new())).peekable();
        let is_empty =
            destination_ports.is_empty() && not_destination_ports.is_empty() && conditions.peek().is_none();
        !is_empty
            && (destination_ports.is_empty() || destination_ports.contains(&port))
            && !not_destination_ports.contains(&port)
            && conditions.all(|(name, _)| WITHOUT_IDENTITY.contains(&name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Dump of a real ztunnel in a namespace with `STRICT`.
    const STRICT: &str = include_str!("../../tests/fixtures/ztunnel_config_dump.json");
    const SERVER: (&str, &str) = ("mesh-1", "server");

    fn strict() -> Value {
        serde_json::from_str(STRICT).unwrap()
    }

    fn accepts(dump: &Value, pod: (&str, &str)) -> Option<bool> {
        serde_json::from_value::<Enforced>(dump.clone()).unwrap().accepts_plaintext(pod, 8080)
    }

    #[test]
    fn recorded_strict_ztunnel_refuses_plaintext() {
        assert_eq!(accepts(&strict(), SERVER), Some(false));
        assert_eq!(accepts(&strict(), ("mesh-1", "client")), Some(false));
        assert_eq!(accepts(&strict(), ("istio-system", "ztunnel")), Some(true), "the policy is not its own");
        assert_eq!(accepts(&strict(), ("mesh-2", "server")), None);
    }

    #[test]
    fn pod_without_the_policy_accepts_plaintext() {
        let mut permissive = strict();
        for workload in permissive["workloads"].as_array_mut().unwrap() {
            workload.as_object_mut().unwrap().remove("authorizationPolicies");
        }
        assert_eq!(accepts(&permissive, SERVER), Some(true));
        let mut not_received = strict();
        not_received["policies"] = json!([]);
        assert_eq!(accepts(&not_received, SERVER), Some(true));
    }

    #[test]
    fn scope_action_and_dry_run_decide_whether_a_policy_counts() {
        let with = |changes: &[(&str, &str)]| {
            let mut dump = strict();
            for (key, value) in changes {
                dump["policies"][0][*key] = json!(value);
            }
            dump
        };
        let elsewhere = ("istio-system", "ztunnel");
        assert_eq!(accepts(&with(&[("scope", "Global")]), elsewhere), Some(false));
        assert_eq!(accepts(&with(&[("scope", "Namespace")]), elsewhere), Some(false));
        assert_eq!(accepts(&with(&[("scope", "Namespace")]), SERVER), Some(true));
        assert_eq!(accepts(&with(&[("action", "Allow")]), SERVER), Some(true));
        let mut tried = strict();
        tried["policies"][0]["dryRun"] = json!(true);
        assert_eq!(accepts(&tried, SERVER), Some(true));
    }

    /// `portLevelMtls` becomes conditions on the port.
    #[test]
    fn rules_are_read_for_the_port_and_for_callers_without_identity() {
        let anonymous = json!({"notPrincipals": [{"Presence": []}]});
        let cases = [
            (json!([[[anonymous], [{"notDestinationPorts": [8080]}]]]), true),
            (json!([[[anonymous], [{"notDestinationPorts": [9090]}]]]), false),
            (
                json!([[[anonymous], [{"destinationPorts": [9090]}]], [[anonymous], [{"destinationPorts": [8080]}]]]),
                false,
            ),
            (json!([[[{"notPrincipals": [{"Presence": []}], "destinationPorts": [9090]}]]]), true),
            (json!([[[anonymous], []]]), false),
            (json!([[[{"principals": [{"Prefix": "a"}]}]]]), true),
            (json!([[[{"notPrincipals": [{"Presence": []}], "sourceIps": ["10.0.0.0/8"]}]]]), true),
            (json!([[[{"notPrincipals": [{"Presence": []}], "sourceIps": []}]]]), false),
            (json!([[[{}]]]), true),
            (json!([]), true),
        ];
        for (rules, expected) in cases {
            let mut dump = strict();
            dump["policies"][0]["rules"] = rules.clone();
            assert_eq!(accepts(&dump, SERVER), Some(expected), "{rules}");
        }
    }
}
