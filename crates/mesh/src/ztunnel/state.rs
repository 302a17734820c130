//! State that a ztunnel received from its control plane, from its own dump (`/config_dump`).

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
pub struct Dump {
    #[serde(default)]
    services: Vec<Service>,
    #[serde(default)]
    workloads: Vec<Workload>,
    #[serde(default)]
    policies: Vec<Policy>,
}

#[derive(Debug, Deserialize)]
struct Service {
    hostname: String,
    #[serde(default)]
    endpoints: BTreeMap<String, serde::de::IgnoredAny>,
    waypoint: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Workload {
    name: String,
    namespace: String,
    protocol: String,
}

#[derive(Debug, Deserialize)]
struct Policy {
    name: String,
    namespace: String,
}

impl Dump {
    pub fn has_policy(&self, namespace: &str, name: &str) -> bool {
        self.policies.iter().any(|policy| policy.name == name && policy.namespace == namespace)
    }

    pub fn has_service(&self, host: &str, behind_waypoint: bool) -> bool {
        self.services.iter().any(|service| {
            service.hostname == host
                && !service.endpoints.is_empty()
                && service.waypoint.is_some() == behind_waypoint
        })
    }

    pub fn has_workload(&self, namespace: &str, name: &str, by_hbone: bool) -> bool {
        self.workloads.iter().any(|workload| {
            let is_by_hbone = workload.protocol == "HBONE";
            workload.name == name && workload.namespace == namespace && is_by_hbone == by_hbone
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dump of a real ztunnel, with most fields removed.
    const DUMP: &str = r#"{"certificates": [], "services": [
        {"hostname": "server.mesh-1.svc.cluster.local", "endpoints": {"Kubernetes//Pod/mesh-1/server": {"port": {"8080": 8080}}}},
        {"hostname": "behind.mesh-1.svc.cluster.local", "endpoints": {"Kubernetes//Pod/mesh-1/server": {}}, "waypoint": {"destination": "x"}},
        {"hostname": "empty.mesh-1.svc.cluster.local", "endpoints": {}}],
        "workloads": [{"name": "server", "namespace": "mesh-1", "protocol": "HBONE", "uid": "u"},
        {"name": "waypoint", "namespace": "mesh-1", "protocol": "TCP"}],
        "policies": [{"name": "allow", "namespace": "mesh-1", "scope": "WorkloadSelector", "action": "Allow", "rules": []}]}"#;

    #[test]
    fn services_and_workloads_are_found() {
        let dump: Dump = serde_json::from_str(DUMP).unwrap();
        assert!(dump.has_service("server.mesh-1.svc.cluster.local", false));
        assert!(!dump.has_service("server.mesh-1.svc.cluster.local", true));
        assert!(dump.has_service("behind.mesh-1.svc.cluster.local", true));
        assert!(!dump.has_service("empty.mesh-1.svc.cluster.local", false));
        assert!(dump.has_workload("mesh-1", "server", true));
        assert!(
            !dump.has_workload("mesh-2", "server", true) && !dump.has_workload("mesh-1", "server", false)
        );
        assert!(
            dump.has_workload("mesh-1", "waypoint", false) && !dump.has_workload("mesh-1", "waypoint", true)
        );
        assert!(dump.has_policy("mesh-1", "allow") && !dump.has_policy("mesh-2", "allow"));
    }
}
