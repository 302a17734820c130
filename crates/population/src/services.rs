//! A service of the mesh with its pods, their account and their endpoints.

use super::{FLEET_LABEL, Placement};
use mesh::kubernetes::workloads::{Membership, Replica, ServicePort, Workload, service_account};
use mesh::names::service_host;
use serde_json::{Value, json};

/// Name of no scheduler, so that no simulated pod is assigned to a node.
const NO_SCHEDULER: &str = "meshmeter";
const VERSION_LABEL: (&str, &str) = ("version", "v1");

/// A service whose pods have no addresses yet.
pub(super) struct Shape {
    pub name: String,
    pub namespace: String,
    pub pods: usize,
    pub is_headless: bool,
    pub ports: &'static [ServicePort],
}

#[derive(Clone, Debug)]
pub struct HeldService {
    workload: Workload,
    ports: &'static [ServicePort],
    is_headless: bool,
    has_controllers: bool,
    has_pods: bool,
}

impl HeldService {
    pub(super) fn new(
        shape: &Shape,
        replicas: Vec<Replica>,
        membership: Membership,
        placement: &Placement,
    ) -> Self {
        let mut workload = Workload::new(&shape.name, &shape.namespace, replicas, membership);
        let labels = [VERSION_LABEL, (FLEET_LABEL, &placement.run_id)];
        workload.labels.extend(labels.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            workload,
            ports: shape.ports,
            is_headless: shape.is_headless,
            has_controllers: placement.has_controllers,
            has_pods: !placement.has_controllers || placement.simulate_pods,
        }
    }

    pub fn name(&self) -> &str {
        &self.workload.name
    }

    pub fn namespace(&self) -> &str {
        &self.workload.namespace
    }

    pub fn host(&self) -> String {
        service_host(self.name(), self.namespace())
    }

    pub fn is_headless(&self) -> bool {
        self.is_headless
    }

    pub fn replicas(&self) -> &[Replica] {
        &self.workload.replicas
    }

    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    pub(crate) fn has_pods(&self) -> bool {
        self.has_pods
    }

    pub(crate) fn is_ambient(&self) -> bool {
        self.workload.membership() == Membership::Ambient
    }

    pub(crate) fn replicas_mut(&mut self) -> &mut Vec<Replica> {
        &mut self.workload.replicas
    }

    /// The same service with only these pods.
    pub(crate) fn with_replicas(&self, replicas: Vec<Replica>) -> Self {
        let mut service = self.clone();
        service.workload.replicas = replicas;
        service
    }

    /// Account, Service and pods.
    pub(super) fn objects(&self) -> Vec<Value> {
        let account = service_account(self.name(), self.namespace());
        [account, self.service()].into_iter().chain(self.pods()).collect()
    }

    pub(crate) fn service(&self) -> Value {
        let mut service = self.workload.service(self.ports);
        let spec = service["spec"].as_object_mut().expect("a Service has one");
        if self.is_headless {
            spec.insert("clusterIP".to_owned(), json!("None"));
        }
        if self.has_controllers {
            spec.remove("selector");
        }
        service
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        if !self.has_pods {
            return Vec::new();
        }
        let mut pods = self.workload.objects().split_off(1);
        if self.has_controllers {
            for pod in &mut pods {
                let spec = pod["spec"].as_object_mut().expect("a pod has one");
                spec.remove("nodeName");
                spec.insert("schedulerName".to_owned(), json!(NO_SCHEDULER));
            }
        }
        pods
    }

    pub(crate) fn pod_statuses(&self) -> Vec<Value> {
        if self.has_pods { self.workload.pod_statuses() } else { Vec::new() }
    }

    pub(crate) fn endpoint_slices(&self) -> Vec<Value> {
        let mut slices = self.workload.endpoint_slices(self.ports);
        if !self.has_pods {
            for endpoint in slices.iter_mut().flat_map(|slice| slice["endpoints"].as_array_mut()).flatten() {
                let endpoint = endpoint.as_object_mut().expect("an endpoint is an object");
                endpoint.retain(|key, _| key == "addresses" || key == "conditions");
            }
        }
        slices
    }
}
