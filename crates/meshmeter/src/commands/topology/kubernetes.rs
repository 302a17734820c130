//! A topology as Kubernetes objects: each service becomes a Deployment of `meshmeter serve --topology`, with
//! a Service and a ServiceAccount. Drivers have no objects: load comes from `meshmeter load`.

use crate::failure::Failure;
use cluster::manifests::{
    self, MAX_CONFIG_MAP_BYTES, account, config_map, container_port, map, named, resources, service,
};
use experiment::Protocol;
use experiment::topology::{Runs, Topology, Workload};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, HTTPGetAction, PodSpec, PodTemplateSpec, Probe, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const CONFIG_MAP: &str = "meshmeter-topology";
const FILE_NAME: &str = "topology.yaml";
const FOLDER: &str = "/etc/meshmeter";
/// Port for requests to a service.
const PORT: u16 = 8080;
/// Port for counters, metrics and health checks.
const ADMIN_PORT: u16 = 8079;

/// What the manifests need beyond the topology.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'a> {
    /// Image with `meshmeter` in its `PATH`.
    pub image: &'a str,
    /// `HOST:PORT` of the MongoDB that is used for the topology's databases.
    pub database: Option<&'a str>,
}

/// The manifests as YAML documents.
pub(super) fn manifests(topology: &Topology, parameters: Parameters<'_>) -> Result<String, Failure> {
    check(topology, parameters)?;
    let file = topology.to_yaml();
    if file.len() > MAX_CONFIG_MAP_BYTES {
        return Err(Failure::usage(format!(
            "the topology is a file of {} bytes, and a ConfigMap holds at most {MAX_CONFIG_MAP_BYTES}",
            file.len()
        )));
    }
    let mut text = head(topology);
    for namespace in topology.namespaces() {
        let own = || topology.workloads.iter().filter(move |one| one.namespace == namespace && is_pod(one));
        if own().next().is_none() {
            continue;
        }
        if !namespace.is_empty() {
            append(&mut text, &manifests::namespace(named(namespace, "")));
        }
        append(&mut text, &config_map(named(CONFIG_MAP, namespace), FILE_NAME, &file));
        for workload in own() {
            append(&mut text, &account(metadata(workload)));
            append(&mut text, &service(metadata(workload), workload, PORT));
            append(&mut text, &deployment(topology, workload, parameters));
        }
    }
    Ok(text)
}

fn is_pod(workload: &Workload) -> bool {
    matches!(workload.runs, Runs::Service(_) | Runs::Scripted(_))
}

fn check(topology: &Topology, parameters: Parameters<'_>) -> Result<(), Failure> {
    for workload in &topology.workloads {
        let name = workload.qualified_name();
        match workload.runs {
            Runs::Database if parameters.database.is_none() => {
                return Err(Failure::usage(format!(
                    "the topology has a database, {name}, and no address for it"
                ))
                .with_hint("name a MongoDB: --database HOST:PORT"));
            }
            Runs::ExternalService(_) => {
                return Err(Failure::usage(format!(
                    "{name} is outside the mesh and speaks TLS: it has no Kubernetes manifest"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Comment at the top of the manifests: what they are, and how to load them.
fn head(topology: &Topology) -> String {
    let mut text = format!("# Topology {}: written by `meshmeter topology convert`.\n", topology.name);
    if topology.namespaces() == [""] {
        text.push_str("# The objects name no namespace: kubectl apply --namespace NAME\n");
    }
    text.push_str("# The drivers are not in it. Load from a pod of the same namespace:\n");
    for driver in &topology.drivers {
        let target = &topology.workloads[driver.target];
        let host = if target.namespace.is_empty() {
            target.name.clone()
        } else {
            format!("{}.{}", target.name, target.namespace)
        };
        let path = if target.protocol == Protocol::Tcp { "" } else { driver.endpoint.as_str() };
        let scheme = target.protocol.scheme(false);
        let _ = writeln!(text, "#   meshmeter load --rate 100 {scheme}://{host}:{PORT}{path}");
    }
    text
}

fn append(text: &mut String, object: &impl Serialize) {
    let yaml = serde_saphyr::to_string(object).expect("Kubernetes objects are plain data");
    let _ = write!(text, "---\n{yaml}");
}

fn deployment(topology: &Topology, workload: &Workload, parameters: Parameters<'_>) -> Deployment {
    let mut pod_labels = labels(workload);
    if !workload.in_mesh {
        pod_labels.extend(map([("sidecar.istio.io/inject", "false"), ("istio.io/dataplane-mode", "none")]));
    }
    let admin_port = ADMIN_PORT.to_string();
    let annotations = map([
        ("prometheus.io/scrape", "true"),
        ("prometheus.io/port", &admin_port),
        ("prometheus.io/path", "/metrics"),
    ]);
    let pod = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(pod_labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            service_account_name: Some(workload.name.clone()),
            containers: vec![container(topology, workload, parameters)],
            volumes: Some(vec![Volume {
                name: "topology".to_owned(),
                config_map: Some(ConfigMapVolumeSource {
                    name: CONFIG_MAP.to_owned(),
                    ..ConfigMapVolumeSource::default()
                }),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        }),
    };
    manifests::deployment(metadata(workload), workload.replicas, pod)
}

fn metadata(workload: &Workload) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(workload)), ..named(&workload.name, &workload.namespace) }
}

fn labels(workload: &Workload) -> BTreeMap<String, String> {
    manifests::app_labels(&workload.name)
}

fn container(topology: &Topology, workload: &Workload, parameters: Parameters<'_>) -> Container {
    let probe = |path: &str| Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("admin".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(5),
        ..Probe::default()
    };
    Container {
        name: workload.name.clone(),
        image: Some(parameters.image.to_owned()),
        command: Some(vec!["meshmeter".to_owned()]),
        args: Some(arguments(topology, workload, parameters)),
        ports: Some(vec![container_port("app", PORT), container_port("admin", ADMIN_PORT)]),
        resources: resources(workload.resources),
        readiness_probe: Some(probe("/health/ready")),
        liveness_probe: Some(probe("/health/live")),
        volume_mounts: Some(vec![VolumeMount {
            name: "topology".to_owned(),
            mount_path: FOLDER.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

fn arguments(topology: &Topology, workload: &Workload, parameters: Parameters<'_>) -> Vec<String> {
    let mut arguments = vec![
        "serve".to_owned(),
        format!("--topology={FOLDER}/{FILE_NAME}"),
        format!("--service={}", workload.qualified_name()),
        format!("--listen=0.0.0.0:{PORT}"),
        format!("--admin-listen=0.0.0.0:{ADMIN_PORT}"),
    ];
    for callee in workload.script().map(|script| script.callees()).unwrap_or_default() {
        let callee = &topology.workloads[callee];
        if let (Runs::Database, Some(address)) = (&callee.runs, parameters.database) {
            arguments.push(format!("--connect={}={address}", callee.qualified_name()));
        }
    }
    arguments
}
