//! Objects of a deployment on a cluster. Pure: it turns a specification into objects, in the order in which
//! they are written.
//!
//! Services are Deployments with a Service and a service account. Drivers are Indexed Jobs of workers
//! ([`crate::worker`]), with a pod per generator. All run the entry point of Meshmeter's image without
//! privileges, on a read-only root file system.

use crate::Result;
use crate::gateway;
use crate::manifests::{self, MAX_CONFIG_MAP_BYTES, app_labels, resources};
use crate::placement::{place_generator, place_measured};
use crate::plug::{Labels, MeshPlug, PlugContext, annotated_outside_of_meshes, outside_of_meshes};
use crate::settings::{
    COUNTERS_PORT, ClusterSettings, MANAGED_BY, RUN_LABEL, SERVICE_PORT, WORKER_PORT, check_name,
};
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::topology::{Runs, Topology, Workload, WorkloadId};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use mesh::dataplane::MeshView;
use mesh::service::{READY_PATH, synthetic_arguments};
use serde::Serialize;
use serde_json::{Value, json};

const CONFIG_MAP: &str = "meshmeter-topology";
const FILE_NAME: &str = "topology.yaml";
const FOLDER: &str = "/etc/meshmeter";
/// Directory for a worker's input files and results, since the root file system is read-only.
const SCRATCH: &str = "/scratch";
/// User of the image.
const USER: u32 = 65532;
/// A worker that receives no requests for this long ends itself.
pub const ABANDONED_AFTER: &str = "5m";
/// Termination grace period of a pod: by then it is no longer needed.
const TERMINATION_S: i64 = 2;
/// Name of an Istio object that applies to its whole namespace.
const NAME_FOR_NAMESPACE: &str = "default";
/// Name of one that applies only to the run's pods.
const NAME_FOR_RUN: &str = "meshmeter";

/// All objects of a deployment, namespaces first.
pub fn objects(spec: &DeploymentSpec, settings: &ClusterSettings, plug: &dyn MeshPlug) -> Result<Vec<Value>> {
    check(spec, settings)?;
    let context = PlugContext { spec, settings };
    plug.check_settings(&context)?;
    gateway::check(&context)?;
    let builder = Builder { context, plug, topology: in_cluster(&spec.topology, settings) };
    let mut objects = builder.objects()?;
    if let Some(owner) = &settings.owner {
        objects.iter_mut().for_each(|object| owner.own(object));
    }
    Ok(objects)
}

/// The topology with its namespaces' names in the cluster, which its services use to call each other.
pub fn in_cluster(topology: &Topology, settings: &ClusterSettings) -> Topology {
    let mut topology = topology.clone();
    for workload in &mut topology.workloads {
        if !workload.namespace.is_empty() {
            workload.namespace = settings.namespace(&workload.namespace);
        }
    }
    topology
}

fn check(spec: &DeploymentSpec, settings: &ClusterSettings) -> Result<()> {
    for namespace in spec.topology.namespaces() {
        check_name("namespace", &settings.namespace(namespace))?;
    }
    for workload in &spec.topology.workloads {
        check_name("workload", &workload.name)?;
        if workload.is_external() {
            let reason = "services outside the mesh and databases are not deployed on clusters yet";
            return Err(EnvironmentError::new(format!("deploy {}", workload.qualified_name()), reason)
                .with_hint("the lab runs them: leave out `--on cluster`"));
        }
    }
    Ok(())
}

struct Builder<'a> {
    context: PlugContext<'a>,
    plug: &'a dyn MeshPlug,
    topology: Topology,
}

impl Builder<'_> {
    fn objects(&self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let namespaces = self.context.spec.topology.namespaces();
        if !self.context.settings.existing_namespaces {
            all.extend(namespaces.iter().map(|namespace| self.namespace(namespace)));
        }
        let file = self.topology.to_yaml();
        let has_nodes = self.topology.workloads.iter().any(|workload| workload.script().is_some());
        if has_nodes && file.len() > MAX_CONFIG_MAP_BYTES {
            let reason = format!(
                "it is a file of {} bytes, and a ConfigMap holds at most {MAX_CONFIG_MAP_BYTES}",
                file.len()
            );
            return Err(EnvironmentError::new("hand the topology to the services", reason));
        }
        for namespace in &namespaces {
            let has_nodes = |one: &Workload| one.namespace == *namespace && one.script().is_some();
            if self.context.spec.topology.workloads.iter().any(has_nodes) {
                let metadata = self.metadata(CONFIG_MAP, &self.context.settings.namespace(namespace));
                all.push(value(&manifests::config_map(metadata, FILE_NAME, &file)));
            }
        }
        let of_gateways = gateway::objects(&self.context, &self.plug.pod_labels());
        for mut object in self.plug.objects(&self.context).into_iter().chain(of_gateways) {
            object["metadata"]["labels"][RUN_LABEL] = json!(self.context.settings.run);
            confine(&mut object, &self.context.settings.run);
            all.push(object);
        }
        for (id, workload) in self.topology.workloads.iter().enumerate() {
            let metadata = || self.metadata(&workload.name, &self.context.namespace_of(id));
            all.push(value(&manifests::account(metadata())));
            if workload.serves() {
                let mut metadata_of_service = metadata();
                let of_mesh = self.plug.service_labels(self.context.is_member(id));
                metadata_of_service.labels.get_or_insert_default().extend(of_mesh);
                let mut service = value(&manifests::service(metadata_of_service, workload, SERVICE_PORT));
                confine(&mut service, &self.context.settings.run);
                let pod = self.pod(id, &self.service_container(id));
                let mut deployment = value(&manifests::deployment(metadata(), workload.replicas, pod));
                confine(&mut deployment, &self.context.settings.run);
                all.extend([service, deployment]);
            } else {
                all.push(self.job(id));
            }
        }
        Ok(all)
    }

    fn namespace(&self, namespace: &str) -> Value {
        let mut labels = self.plug.namespace_labels();
        labels.extend(manifests::map([MANAGED_BY]));
        labels.extend(self.run_label());
        let name = self.context.settings.namespace(namespace);
        let metadata = ObjectMeta { labels: Some(labels), ..manifests::named(&name, "") };
        value(&manifests::namespace(metadata))
    }

    fn run_label(&self) -> Labels {
        manifests::map([(RUN_LABEL, &self.context.settings.run)])
    }

    fn metadata(&self, name: &str, namespace: &str) -> ObjectMeta {
        ObjectMeta { labels: Some(self.run_label()), ..manifests::named(name, namespace) }
    }

    /// A pod of a workload around its own container.
    fn pod(&self, id: WorkloadId, container: &Value) -> PodTemplateSpec {
        let workload = &self.topology.workloads[id];
        let mut labels = app_labels(&workload.name);
        labels.extend(self.run_label());
        let (extra_labels, annotations) = if self.context.is_member(id) {
            (self.plug.pod_labels(), self.plug.pod_annotations(&self.context, id))
        } else {
            (outside_of_meshes(), annotated_outside_of_meshes())
        };
        labels.extend(extra_labels);
        let mut volumes = vec![json!({"name": "scratch", "emptyDir": {}})];
        if workload.script().is_some() {
            volumes.push(json!({"name": "topology", "configMap": {"name": CONFIG_MAP}}));
        }
        let mut spec = json!({
            "serviceAccountName": workload.name,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": TERMINATION_S,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
        });
        self.context.settings.add_pull_secret(&mut spec);
        if workload.serves() {
            place_measured(self.context.settings, &mut spec);
        }
        let spec: PodSpec = serde_json::from_value(spec).expect("a pod's fields are right");
        PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(labels),
                annotations: (!annotations.is_empty()).then_some(annotations),
                ..ObjectMeta::default()
            }),
            spec: Some(spec),
        }
    }

    fn container(&self, id: WorkloadId, arguments: &[String]) -> Value {
        let workload = &self.topology.workloads[id];
        let mut mounts = vec![json!({"name": "scratch", "mountPath": SCRATCH})];
        if workload.script().is_some() {
            mounts.push(json!({"name": "topology", "mountPath": FOLDER, "readOnly": true}));
        }
        let mut container = json!({
            "name": workload.name,
            "image": self.context.settings.image,
            "args": arguments,
            "volumeMounts": mounts,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        });
        if let Some(resources) = resources(workload.resources) {
            container["resources"] = value(&resources);
        }
        container
    }

    /// The container of a service. It is probed only until it has started: a probe while load runs would
    /// count as a request.
    fn service_container(&self, id: WorkloadId) -> Value {
        let workload = &self.topology.workloads[id];
        let mut container = self.container(id, &service_arguments(workload));
        container["ports"] = json!([{"name": "app", "containerPort": SERVICE_PORT}]);
        let is_node = workload.script().is_some();
        let probe = if is_node {
            json!({"httpGet": {"path": READY_PATH, "port": COUNTERS_PORT}})
        } else {
            json!({"tcpSocket": {"port": SERVICE_PORT}})
        };
        container["startupProbe"] = probe;
        container["startupProbe"]["periodSeconds"] = json!(1);
        container["startupProbe"]["failureThreshold"] = json!(120);
        container
    }

    /// Workers for the generators of a driver. Their results are copied before anything is deleted, so none
    /// of them may be restarted or removed automatically.
    fn job(&self, id: WorkloadId) -> Value {
        let workload = &self.topology.workloads[id];
        let mut arguments = vec![
            "cluster-worker".to_owned(),
            format!("--port={WORKER_PORT}"),
            format!("--directory={SCRATCH}"),
            format!("--abandoned-after={ABANDONED_AFTER}"),
        ];
        if let Some(url) = self.plug.end_of_proxy().filter(|_| self.context.is_member(id)) {
            arguments.push(format!("--end-proxy={url}"));
        }
        let mut pod = value(&self.pod(id, &self.container(id, &arguments)));
        pod["spec"]["restartPolicy"] = json!("Never");
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": workload.name, RUN_LABEL: self.context.settings.run}},
        }]);
        place_generator(self.context.settings, &mut pod["spec"]);
        let mut job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": value(&self.metadata(&workload.name, &self.context.namespace_of(id))),
            "spec": {
                "completionMode": "Indexed",
                "completions": workload.replicas,
                "parallelism": workload.replicas,
                "backoffLimit": 0,
            },
        });
        job["spec"]["template"] = pod;
        job
    }
}

/// Restricts an object that selects pods to those of the run: a namespace may have others, with any name. An
/// object that would apply to a whole namespace gets its own name, so that it exists next to the namespace's.
fn confine(object: &mut Value, run: &str) {
    let has_targets = !object["spec"]["targetRefs"].is_null();
    let labels = match object["kind"].as_str() {
        Some("Service") => &mut object["spec"]["selector"],
        Some("Sidecar") => &mut object["spec"]["workloadSelector"]["labels"],
        Some("Deployment") => &mut object["spec"]["selector"]["matchLabels"],
        Some("PeerAuthentication" | "AuthorizationPolicy" | "TrafficExtension") if !has_targets => {
            &mut object["spec"]["selector"]["matchLabels"]
        }
        _ => return,
    };
    labels[RUN_LABEL] = json!(run);
    if object["metadata"]["name"] == NAME_FOR_NAMESPACE {
        object["metadata"]["name"] = json!(NAME_FOR_RUN);
    }
}

/// Arguments of the process in a service's pod.
fn service_arguments(workload: &Workload) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned()];
    match &workload.runs {
        Runs::Scripted(_) => arguments.extend([
            format!("--topology={FOLDER}/{FILE_NAME}"),
            format!("--service={}", workload.qualified_name()),
            format!("--listen=0.0.0.0:{SERVICE_PORT}"),
            format!("--admin-listen=0.0.0.0:{COUNTERS_PORT}"),
        ]),
        Runs::Service(settings) | Runs::ExternalService(settings) => {
            arguments.extend(synthetic_arguments(settings, workload));
            if workload.protocol.is_http() {
                arguments.push(format!("--listen=0.0.0.0:{SERVICE_PORT}"));
            } else {
                arguments.extend([
                    format!("--listen=127.0.0.1:{COUNTERS_PORT}"),
                    format!("--tcp-listen=0.0.0.0:{SERVICE_PORT}"),
                ]);
            }
        }
        Runs::Drivers | Runs::Database => {}
    }
    arguments
}

/// Loopback port in a service's pod that returns its counters.
pub fn counters_port(workload: &Workload) -> u16 {
    let is_synthetic = matches!(workload.runs, Runs::Service(_)) && workload.protocol.is_http();
    if is_synthetic { SERVICE_PORT } else { COUNTERS_PORT }
}

/// URL that a driver requests.
pub fn url(topology: &Topology, target: WorkloadId, endpoint: &str, settings: &ClusterSettings) -> String {
    let workload = &topology.workloads[target];
    let host = format!("{}.{}", workload.name, settings.namespace(&workload.namespace));
    let path = workload.protocol.path(endpoint);
    format!("{}://{host}:{SERVICE_PORT}{path}", workload.protocol.scheme(false))
}

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("Kubernetes objects are plain data")
}

#[cfg(test)]
mod tests;
