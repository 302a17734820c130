//! Kubernetes objects (`kubectl get … -o json`): replicas, resources and HTTP versions of learned services.
//!
//! Reads Deployments, StatefulSets, DaemonSets and Services, alone or in Lists; other kinds are counted and ignored. Resources are
//! those of a pod's application containers: a sidecar is added by the mode of an experiment.

use crate::labels::Anonymiser;
use crate::one_line;
use experiment::topology::Resources;
use results::parse_kubernetes_quantity;
use results::units::shortened;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Read;

/// Maximum number of workloads and Services.
const MAX_OBJECTS: usize = 100_000;
/// Maximum number of kinds that are counted by name.
const MAX_KINDS: usize = 100;
/// Name of Istio's container in a pod.
const SIDECAR: &str = "istio-proxy";

/// Objects that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// Not the JSON of objects.
    #[error("not objects as `kubectl get -o json` prints them: {0}")]
    Json(String),
    /// There is not one object.
    #[error("the input is empty")]
    Empty,
    /// More than a cluster has.
    #[error("more than {MAX_OBJECTS} objects")]
    TooMany,
}

/// Objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// By namespace and name.
    workloads: BTreeMap<(String, String), Pods>,
    services: Vec<ServiceObject>,
    /// Number of objects that were read, by kind.
    pub(crate) read: BTreeMap<String, u64>,
    /// Number of objects that were ignored, by kind.
    pub(crate) ignored: BTreeMap<String, u64>,
    anonymiser: Option<Anonymiser>,
}

/// Pods of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pods {
    pub(crate) kind: String,
    pub(crate) replicas: usize,
    pub(crate) resources: Resources,
    /// Requests of a sidecar, where they are not the mesh's defaults.
    pub(crate) sidecar: Resources,
    /// True if a Service with a port of HTTP/2 selects the pods.
    pub(crate) is_http2: bool,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct ServiceObject {
    namespace: String,
    selector: BTreeMap<String, String>,
    is_http2: bool,
}

/// A document: an object, or a List of objects. Objects are read by their kind: others may have any form.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    kind: String,
    items: Option<Vec<Box<RawValue>>>,
}

/// An object, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<u32>,
    template: Template,
    /// Labels of a Service's pods; an object of another form in workloads.
    selector: serde_json::Value,
    ports: Vec<Port>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    desired_number_scheduled: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: Metadata,
    spec: PodSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    resources: ContainerResources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerResources {
    requests: Amounts,
    limits: Amounts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Amounts {
    cpu: Option<Quantity>,
    memory: Option<Quantity>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    name: String,
    app_protocol: String,
}

/// Quantity of Kubernetes; a number in some tools' output.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Written")]
struct Quantity(f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(f64),
}

impl TryFrom<Written> for Quantity {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let (amount, shown) = match written {
            Written::Text(text) => (parse_kubernetes_quantity(&text), shortened(&text)),
            Written::Number(number) => (Some(number).filter(|number| *number >= 0.0), number.to_string()),
        };
        amount
            .map(Self)
            .ok_or_else(|| format!("`{shown}` is not a quantity of Kubernetes, such as 250m or 1Gi"))
    }
}

impl Pods {
    /// Pods of a workload without an object.
    pub(crate) fn one() -> Self {
        Self { replicas: 1, ..Self::default() }
    }
}

impl Objects {
    /// No objects. With an anonymiser, names are hashed as they are read.
    #[must_use]
    pub fn new(anonymiser: Option<Anonymiser>) -> Self {
        Self { anonymiser, ..Self::default() }
    }

    /// Reads objects and Lists, one after the other.
    ///
    /// # Errors
    /// Returns an error if the input is damaged, empty or too large.
    pub fn read(&mut self, input: impl Read) -> Result<(), ObjectsError> {
        let mut is_empty = true;
        for text in serde_json::Deserializer::from_reader(input).into_iter::<Box<RawValue>>() {
            is_empty = false;
            let text = text.map_err(|error| ObjectsError::Json(one_line(&error)))?;
            let document: Document = parse(&text)?;
            match document.items {
                Some(items) => {
                    let kind = document.kind.strip_suffix("List").unwrap_or_default();
                    items.iter().try_for_each(|item| self.item(kind, item))?;
                }
                None => self.item("", &text)?,
            }
        }
        if is_empty { Err(ObjectsError::Empty) } else { Ok(()) }
    }

    /// Adds an object. Those of a typed List have no kind of their own.
    fn item(&mut self, kind_of_list: &str, text: &RawValue) -> Result<(), ObjectsError> {
        let own = parse::<Document>(text)?.kind;
        let kind = if own.is_empty() { kind_of_list } else { &own };
        if !matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "Service") {
            let known = self.ignored.contains_key(kind) || self.ignored.len() < MAX_KINDS;
            *self.ignored.entry(if known { shortened(kind) } else { "other".to_owned() }).or_default() += 1;
            return Ok(());
        }
        if self.workloads.len() + self.services.len() >= MAX_OBJECTS {
            return Err(ObjectsError::TooMany);
        }
        let object: Object = parse(text)?;
        *self.read.entry(kind.to_owned()).or_default() += 1;
        let namespace = self.hashed(if object.metadata.namespace.is_empty() {
            "default"
        } else {
            &object.metadata.namespace
        });
        let name = self.hashed(&object.metadata.name);
        if kind == "Service" {
            let is_http2 = object.spec.ports.iter().any(Port::is_http2);
            let selector = labels(&object.spec.selector);
            self.services.push(ServiceObject { namespace, selector, is_http2 });
        } else {
            let replicas = if kind == "DaemonSet" {
                object.status.desired_number_scheduled
            } else {
                object.spec.replicas
            };
            let pods = Pods {
                kind: kind.to_owned(),
                replicas: replicas.unwrap_or(1) as usize,
                resources: resources(&object.spec.template.spec.containers),
                sidecar: sidecar(&object.spec.template),
                is_http2: false,
                labels: object.spec.template.metadata.labels,
            };
            self.workloads.insert((namespace, name), pods);
        }
        Ok(())
    }

    fn hashed(&self, name: &str) -> String {
        self.anonymiser.as_ref().map_or_else(|| name.to_owned(), |anonymiser| anonymiser.hashed(name))
    }

    /// True if there is no workload.
    pub(crate) fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    /// Pods of a workload.
    pub(crate) fn pods(&self, namespace: &str, name: &str) -> Option<Pods> {
        let pods = self.workloads.get(&(namespace.to_owned(), name.to_owned()))?;
        let selects = |service: &&ServiceObject| {
            let mut labels = service.selector.iter();
            service.namespace == namespace
                && !service.selector.is_empty()
                && labels.all(|(key, value)| pods.labels.get(key) == Some(value))
        };
        let is_http2 = self.services.iter().filter(selects).any(|service| service.is_http2);
        Some(Pods { is_http2, ..pods.clone() })
    }

    /// Namespace and name of each workload.
    pub fn workloads(&self) -> impl Iterator<Item = &(String, String)> {
        self.workloads.keys()
    }
}

impl Port {
    /// True for HTTP/2 in plaintext, by the names that Istio reads (istio.io, "Protocol Selection").
    fn is_http2(&self) -> bool {
        let is_named = self.name == "http2" || self.name.starts_with("http2-");
        is_named || ["http2", "kubernetes.io/h2c"].contains(&self.app_protocol.as_str())
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, ObjectsError> {
    serde_json::from_str(text.get()).map_err(|error| ObjectsError::Json(one_line(&error)))
}

/// Labels of a Service's selector.
fn labels(selector: &serde_json::Value) -> BTreeMap<String, String> {
    let entries = selector.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Requests of a sidecar: those of its annotations (istio.io, "Resource Annotations"), or of a container that is in the template.
fn sidecar(template: &Template) -> Resources {
    let container = template.spec.containers.iter().find(|one| one.name == SIDECAR);
    let requests =
        |of: fn(&Amounts) -> &Option<Quantity>| of(&container?.resources.requests).map(|quantity| quantity.0);
    let annotated = |name: &str| parse_kubernetes_quantity(template.metadata.annotations.get(name)?);
    let cpu = annotated("sidecar.istio.io/proxyCPU").or_else(|| requests(|amounts| &amounts.cpu));
    let memory = annotated("sidecar.istio.io/proxyMemory").or_else(|| requests(|amounts| &amounts.memory));
    Resources {
        cpu_request_cores: cpu,
        memory_request_bytes: memory.map(|bytes| bytes as u64),
        ..Resources::default()
    }
}

/// Requests and limits of the application containers together. A pod has a limit if all of them have one.
fn resources(containers: &[Container]) -> Resources {
    let own: Vec<&ContainerResources> =
        containers.iter().filter(|one| one.name != SIDECAR).map(|one| &one.resources).collect();
    let sum = |of: fn(&ContainerResources) -> &Option<Quantity>| {
        let given: Vec<f64> = own.iter().filter_map(|one| of(one).map(|quantity| quantity.0)).collect();
        (!given.is_empty()).then(|| (given.iter().sum::<f64>(), given.len() == own.len()))
    };
    let (cpu, memory) = (sum(|one| &one.requests.cpu), sum(|one| &one.requests.memory));
    let cpu_limit = sum(|one| &one.limits.cpu).filter(|(_, all)| *all).map(|(sum, _)| sum);
    let memory_limit = sum(|one| &one.limits.memory).filter(|(_, all)| *all).map(|(sum, _)| sum);
    let up_to = |requested: Option<(f64, bool)>, limit: Option<f64>| {
        requested.map(|(sum, _)| sum.min(limit.unwrap_or(f64::INFINITY)))
    };
    // Millicores, and whole bytes.
    let cores = |amount: f64| (amount * 1e3).round() / 1e3;
    Resources {
        cpu_request_cores: up_to(cpu, cpu_limit).map(cores).filter(|cores| *cores > 0.0),
        cpu_limit_cores: cpu_limit.map(cores).filter(|cores| *cores > 0.0),
        memory_request_bytes: up_to(memory, memory_limit)
            .map(|bytes| bytes as u64)
            .filter(|bytes| *bytes > 0),
        memory_limit_bytes: memory_limit.map(|bytes| bytes as u64).filter(|bytes| *bytes > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(text: &str) -> Result<Objects, ObjectsError> {
        let mut objects = Objects::new(None);
        objects.read(text.as_bytes())?;
        Ok(objects)
    }

    const LIST: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
      {"kind": "Deployment", "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": {"app": "cart"}}, "template": {
        "metadata": {"labels": {"app": "cart", "version": "v1"}, "annotations": {"sidecar.istio.io/proxyMemory": "256Mi"}},
        "spec": {"containers": [
          {"name": "cart", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}},
          {"name": "log", "resources": {"requests": {"cpu": "0.05"}, "limits": {"cpu": 1, "memory": "64M"}}},
          {"name": "istio-proxy", "resources": {"requests": {"cpu": "2"}}}]}}}},
      {"kind": "DaemonSet", "metadata": {"name": "agent"}, "status": {"desiredNumberScheduled": 7}},
      {"kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"selector": {"app": "cart"}, "ports": [{"name": "http2-web", "port": 80}]}},
      {"kind": "VirtualService", "spec": "of any form"}, {"kind": "ConfigMap"}, {"kind": "ConfigMap"}]}"#;

    #[test]
    fn list_gives_replicas_resources_and_protocols() {
        let objects = objects(LIST).unwrap();
        let cart = objects.pods("shop", "cart").unwrap();
        assert_eq!((cart.replicas, cart.is_http2, cart.kind.as_str()), (3, true, "Deployment"));
        let expected = Resources {
            cpu_request_cores: Some(0.3),
            cpu_limit_cores: None,
            memory_request_bytes: Some(64 << 20),
            memory_limit_bytes: Some((1 << 30) + 64_000_000),
        };
        assert_eq!(cart.resources, expected);
        let sidecar = (cart.sidecar.cpu_request_cores, cart.sidecar.memory_request_bytes);
        assert_eq!(sidecar, (Some(2.0), Some(256 << 20)), "of the container and of an annotation");
        assert_eq!(objects.pods("default", "agent").unwrap().replicas, 7);
        assert_eq!(objects.pods("other", "cart"), None);
        assert_eq!(
            objects.ignored,
            BTreeMap::from([("ConfigMap".to_owned(), 2), ("VirtualService".to_owned(), 1)])
        );
    }

    #[test]
    fn single_objects_and_typed_lists_are_read() {
        let text = r#"{"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 2}}
            {"kind": "DeploymentList", "items": [{"metadata": {"name": "web"}}]}"#;
        let objects = objects(text).unwrap();
        assert_eq!(objects.pods("default", "db").unwrap().replicas, 2);
        assert_eq!(objects.pods("default", "web").unwrap().replicas, 1);
    }

    #[test]
    fn damaged_objects_are_an_error_of_a_line() {
        for text in
            ["", "[", "[]", r#"{"kind": "Deployment", "metadata": 7}"#, r#"{"kind": "List", "items": [1]}"#]
        {
            let error = objects(text).unwrap_err().to_string();
            assert!(error.lines().count() == 1 && error.len() < 300, "{text}: {error}");
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_an_error_that_names_it() {
        let of = |limit: &str| {
            let resources = format!(r#"{{"limits": {{"cpu": {limit}}}}}"#);
            let containers = format!(r#"[{{"name": "a", "resources": {resources}}}]"#);
            objects(&format!(
                r#"{{"kind": "Deployment", "metadata": {{"name": "a"}},
                    "spec": {{"template": {{"spec": {{"containers": {containers}}}}}}}}}"#
            ))
        };
        assert_eq!(
            of(r#""1500m""#).unwrap().pods("default", "a").unwrap().resources.cpu_limit_cores,
            Some(1.5)
        );
        for limit in [r#""banana""#, r#""-1""#, "-1"] {
            let error = of(limit).unwrap_err().to_string();
            assert!(error.contains("is not a quantity of Kubernetes"), "{limit}: {error}");
        }
    }
}
