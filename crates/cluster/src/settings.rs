//! Settings of a run on a cluster, and the names that follow from them.

use crate::Result;
use crate::prometheus::PrometheusAddress;
use experiment::environment::EnvironmentError;
use serde_json::{Value, json};
use std::time::Duration;

/// Label of all objects that a run writes; its value is the run's identifier.
pub const RUN_LABEL: &str = "meshmeter.dev/run";
/// Label of the namespaces that a run creates.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "meshmeter");
/// Label of a detached run's Job, pod and ConfigMap.
pub const RUNNER: (&str, &str) = ("app.kubernetes.io/component", "runner");
pub const DEFAULT_PREFIX: &str = "meshmeter";

pub use mesh::dataplane::SERVICE_PORT;
/// Port of a service's counters and health.
pub const COUNTERS_PORT: u16 = 8079;
/// Port of a worker, on the loopback of its pod.
pub const WORKER_PORT: u16 = 8078;
/// Port of a runner, on the loopback of its pod.
pub const RUNNER_PORT: u16 = 8077;
/// Port on which the kubelet checks whether a detached run has ended.
pub const ENDED_PORT: u16 = 8076;
/// A window of this length has two samples of each container: kubelets take one every 10 to 20 seconds, of an idle container
/// every 30 at the latest.
pub const SURE_WINDOW: Duration = Duration::from_secs(60);
/// Maximum length of an object name that is part of host names.
const MAX_NAME_LENGTH: usize = 63;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterSettings {
    /// Image of Meshmeter.
    pub image: String,
    /// Name of the namespace of a topology with one namespace. With several, it is a prefix, followed by a
    /// hyphen.
    pub namespace_prefix: String,
    /// True if the namespaces exist already and are kept.
    pub existing_namespaces: bool,
    /// Value of [`RUN_LABEL`].
    pub run: String,
    /// Label of the nodes on which generators run.
    pub generator_nodes: Option<(String, String)>,
    /// Name of a Secret in each namespace of the run with which kubelets pull the image.
    pub image_pull_secret: Option<String>,
    /// Revision of istiod (`istio.io/rev`) or a tag; if absent, the default one.
    pub revision: Option<String>,
    /// Webhook that injects Istio's sidecars; absent until it has been looked up.
    pub injector: Option<Injector>,
    /// True if nodes and their kubelets are read, which requires permissions on all nodes.
    pub reads_nodes: bool,
    /// Source of usage instead of kubelets.
    pub prometheus: Option<PrometheusAddress>,
    /// Owner of the run's objects in its own namespace; absent if the run is not in a pod of a Job, and until it has been looked up.
    pub owner: Option<Owner>,
}

/// Job of the pod in which a run executes. Its objects are deleted with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Owner {
    pub namespace: String,
    pub job: String,
    pub uid: String,
}

impl Owner {
    /// Sets the owner of an object in the same namespace.
    pub(crate) fn own(&self, object: &mut Value) {
        if object["metadata"]["namespace"] == *self.namespace {
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "batch/v1", "kind": "Job", "name": self.job, "uid": self.uid}]);
        }
    }
}

/// The webhook of an istiod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Injector {
    pub webhook: String,
    /// Revision of the istiod behind it, which differs from the name of a tag.
    pub revision: String,
}

impl ClusterSettings {
    pub fn new(image: &str, run: &str) -> Self {
        Self {
            image: image.to_owned(),
            namespace_prefix: DEFAULT_PREFIX.to_owned(),
            existing_namespaces: false,
            run: run.to_owned(),
            generator_nodes: None,
            image_pull_secret: None,
            revision: None,
            injector: None,
            reads_nodes: true,
            prometheus: None,
            owner: None,
        }
    }

    /// Name in the cluster of a namespace of a topology.
    pub fn namespace(&self, in_topology: &str) -> String {
        if in_topology.is_empty() {
            self.namespace_prefix.clone()
        } else {
            format!("{}-{in_topology}", self.namespace_prefix)
        }
    }

    /// True if usage of services and proxies comes from kubelets.
    pub fn reads_kubelets(&self) -> bool {
        self.reads_nodes && self.prometheus.is_none()
    }

    /// Makes kubelets pull the image with the Secret that the user named.
    pub(crate) fn add_pull_secret(&self, pod_spec: &mut Value) {
        if let Some(name) = &self.image_pull_secret {
            pod_spec["imagePullSecrets"] = json!([{"name": name}]);
        }
    }

    /// Selector of all objects that this run writes for its trials, which excludes the Job of a detached run.
    pub fn selector(&self) -> String {
        let (component, runner) = RUNNER;
        format!("{RUN_LABEL}={},{component}!={runner}", self.run)
    }
}

/// Selector of the Jobs and pods of detached runs: of one run, or of all.
pub(crate) fn runner_selector(run: Option<&str>) -> String {
    let (component, runner) = RUNNER;
    let of_run = run.map_or_else(|| RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
    format!("{of_run},{component}={runner}")
}

/// Returns an error if Kubernetes does not accept this name for an object.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_right = !name.is_empty()
        && name.len() <= MAX_NAME_LENGTH
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_right {
        return Ok(());
    }
    let reason =
        format!("Kubernetes takes names of at most {MAX_NAME_LENGTH} lower-case letters, digits and hyphens");
    Err(EnvironmentError::new(format!("name the {what} {name}"), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_name_accepts_kubernetes_names() {
        for name in ["a", "meshmeter-shop", "0a"] {
            assert!(check_name("namespace", name).is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a.b", "a_b", &"a".repeat(64)] {
            assert!(check_name("namespace", name).is_err(), "{name}");
        }
    }
}
