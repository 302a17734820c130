//! Settings of a run on a cluster, and the names that follow from them.

use crate::Result;
use crate::prometheus::PrometheusAddress;
use experiment::environment::EnvironmentError;
use serde_json::{Value, json};

/// Label of everything that a run writes; its value is the run's identifier.
pub const RUN_LABEL: &str = "meshmeter.dev/run";
/// Label of the namespaces that a run creates.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "meshmeter");
/// Label of the Job that a detached run is, of its pod and its file.
pub const RUNNER: (&str, &str) = ("app.kubernetes.io/component", "runner");
pub const DEFAULT_PREFIX: &str = "meshmeter";

/// Port of requests to a service.
pub const SERVICE_PORT: u16 = 8080;
/// Port of a service's counters and health.
pub const COUNTERS_PORT: u16 = 8079;
/// Port of a worker, on the loopback of its pod.
pub const WORKER_PORT: u16 = 8078;
/// Port of a runner, on the loopback of its pod.
pub const RUNNER_PORT: u16 = 8077;
/// Port at which a kubelet asks whether a detached run has ended.
pub const ENDED_PORT: u16 = 8076;
/// Longest name of an object that is a part of host names.
const MAX_NAME_LENGTH: usize = 63;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterSettings {
    /// Image of Meshmeter.
    pub image: String,
    /// A topology with a single namespace has this name, one with several has it before each, with a hyphen.
    pub namespace_prefix: String,
    /// The namespaces exist already, and stay.
    pub existing_namespaces: bool,
    /// Value of [`RUN_LABEL`].
    pub run: String,
    /// Label of the nodes that generators run on.
    pub generator_nodes: Option<(String, String)>,
    /// The mesh that modes stand for.
    pub mesh: MeshName,
    /// Secret in each namespace of the run with which kubelets pull the image.
    pub image_pull_secret: Option<String>,
    /// Revision of istiod (`istio.io/rev`), or a tag; absent: the default one.
    pub revision: Option<String>,
    /// Webhook that injects Istio's sidecars; absent until it was looked up.
    pub injector: Option<Injector>,
    /// Whether nodes and their kubelets are read, which takes a right to all nodes.
    pub reads_nodes: bool,
    /// Read for usage in place of kubelets.
    pub prometheus: Option<PrometheusAddress>,
}

/// The webhook of an istiod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Injector {
    pub webhook: String,
    /// Revision of the istiod behind it, which differs from a tag's name.
    pub revision: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MeshName {
    Istio,
    Linkerd,
    /// The cluster's network.
    Cilium,
}

impl ClusterSettings {
    pub fn new(image: &str, run: &str) -> Self {
        Self {
            image: image.to_owned(),
            namespace_prefix: DEFAULT_PREFIX.to_owned(),
            existing_namespaces: false,
            run: run.to_owned(),
            generator_nodes: None,
            mesh: MeshName::Istio,
            image_pull_secret: None,
            revision: None,
            injector: None,
            reads_nodes: true,
            prometheus: None,
        }
    }

    /// The cluster's name of a namespace of a topology.
    pub fn namespace(&self, in_topology: &str) -> String {
        if in_topology.is_empty() {
            self.namespace_prefix.clone()
        } else {
            format!("{}-{in_topology}", self.namespace_prefix)
        }
    }

    /// Whether usage of services and proxies comes from kubelets.
    pub fn reads_kubelets(&self) -> bool {
        self.reads_nodes && self.prometheus.is_none()
    }

    /// Has kubelets pull the image with the Secret that the user named.
    pub(crate) fn add_pull_secret(&self, pod_spec: &mut Value) {
        if let Some(name) = &self.image_pull_secret {
            pod_spec["imagePullSecrets"] = json!([{"name": name}]);
        }
    }

    /// Selector of everything that this run writes for its trials: not of the Job that a detached run is.
    pub fn selector(&self) -> String {
        let (component, runner) = RUNNER;
        format!("{RUN_LABEL}={},{component}!={runner}", self.run)
    }
}

/// Selector of the Jobs and pods that detached runs are: of one run, or of all.
pub(crate) fn runner_selector(run: Option<&str>) -> String {
    let (component, runner) = RUNNER;
    let of_run = run.map_or_else(|| RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
    format!("{of_run},{component}={runner}")
}

/// Fails if Kubernetes takes no object of this name.
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
    fn check_name_takes_what_kubernetes_takes() {
        for name in ["a", "meshmeter-shop", "0a"] {
            assert!(check_name("namespace", name).is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a.b", "a_b", &"a".repeat(64)] {
            assert!(check_name("namespace", name).is_err(), "{name}");
        }
    }
}
