//! Objects for a cluster, whose controllers turn them into pods: Deployments, Services, accounts, ConfigMaps. Pure.
//! [`mesh::kubernetes::workloads`] has those for a lab, which has neither controllers nor a kubelet.

use experiment::topology::{Resources, Workload};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerPort, Namespace, PodTemplateSpec, ResourceRequirements, Service, ServiceAccount,
    ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use mesh::kubernetes::workloads;
use results::units::format_cores;
use std::collections::BTreeMap;

/// Maximum size of a ConfigMap at the API server.
pub const MAX_CONFIG_MAP_BYTES: usize = 1 << 20;

pub fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Labels by which a workload's Service and Deployment select its pods.
pub fn app_labels(name: &str) -> BTreeMap<String, String> {
    map([("app", name), ("version", "v1")])
}

/// Metadata with only a name and, unless it is empty, a namespace.
pub fn named(name: &str, namespace: &str) -> ObjectMeta {
    let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    ObjectMeta { name: Some(name.to_owned()), namespace, ..ObjectMeta::default() }
}

pub fn namespace(metadata: ObjectMeta) -> Namespace {
    Namespace { metadata, ..Namespace::default() }
}

pub fn config_map(metadata: ObjectMeta, file: &str, content: &str) -> ConfigMap {
    ConfigMap { metadata, data: Some(map([(file, content)])), ..ConfigMap::default() }
}

pub fn account(metadata: ObjectMeta) -> ServiceAccount {
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

pub fn service(metadata: ObjectMeta, workload: &Workload, port: u16) -> Service {
    let port = workloads::ServicePort::for_protocol(workload.protocol, port);
    let spec = ServiceSpec {
        selector: Some(map([("app", workload.name.as_str())])),
        ports: Some(vec![ServicePort {
            name: Some(port.name.to_owned()),
            port: port.port.into(),
            target_port: Some(IntOrString::Int(port.port.into())),
            ..ServicePort::default()
        }]),
        ..ServiceSpec::default()
    };
    Service { metadata, spec: Some(spec), ..Service::default() }
}

/// A Deployment of pods with [`app_labels`] for the name in its metadata.
pub fn deployment(metadata: ObjectMeta, replicas: usize, pod: PodTemplateSpec) -> Deployment {
    let name = metadata.name.clone().unwrap_or_default();
    let spec = DeploymentSpec {
        replicas: Some(i32::try_from(replicas).unwrap_or(i32::MAX)),
        selector: LabelSelector { match_labels: Some(app_labels(&name)), ..LabelSelector::default() },
        template: pod,
        ..DeploymentSpec::default()
    };
    Deployment { metadata, spec: Some(spec), ..Deployment::default() }
}

pub fn container_port(name: &str, port: u16) -> ContainerPort {
    ContainerPort { name: Some(name.to_owned()), container_port: port.into(), ..ContainerPort::default() }
}

pub fn resources(resources: Resources) -> Option<ResourceRequirements> {
    let amounts = |cores: Option<f64>, bytes: Option<u64>| {
        let cpu = cores.map(|cores| ("cpu".to_owned(), Quantity(format_cores(cores))));
        let memory = bytes.map(|bytes| ("memory".to_owned(), Quantity(bytes_quantity(bytes))));
        let amounts: BTreeMap<_, _> = cpu.into_iter().chain(memory).collect();
        (!amounts.is_empty()).then_some(amounts)
    };
    let requests = amounts(resources.cpu_request_cores, resources.memory_request_bytes);
    let limits = amounts(resources.cpu_limit_cores, resources.memory_limit_bytes);
    let any = requests.is_some() || limits.is_some();
    any.then(|| ResourceRequirements { requests, limits, ..ResourceRequirements::default() })
}

/// Bytes as a Kubernetes quantity: in MiB if divisible, otherwise in bytes.
fn bytes_quantity(bytes: u64) -> String {
    if bytes > 0 && bytes.is_multiple_of(1 << 20) { format!("{}Mi", bytes >> 20) } else { bytes.to_string() }
}
