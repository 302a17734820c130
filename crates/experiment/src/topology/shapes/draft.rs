//! Builder of topologies, service by service.

use super::shape::ShapeSettings;
use crate::protocol::Protocol;
use crate::topology::distribution::Distribution;
use crate::topology::script::{
    CallStep, DEFAULT_CALL_TIMEOUT, DEFAULT_ENDPOINT, Endpoint, QueryOperation, QueryStep, ScriptedService,
    Step,
};
use crate::topology::{
    DriverPlacement, PAIR_CLIENT, PAIR_DRIVER, Resources, Runs, Topology, Workload, WorkloadId,
};

/// Maximum number of services in a topology.
pub(super) const MAX_SERVICES: usize = 5_000;

/// Topology builder.
pub(super) struct Draft<'a> {
    topology: Topology,
    settings: &'a ShapeSettings<'a>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(name: &str, settings: &'a ShapeSettings<'a>) -> Self {
        Self { topology: Topology { name: name.to_owned(), ..Topology::default() }, settings }
    }

    /// Adds a plain service: an endpoint `/` with the experiment's delay and CPU time, then these steps, and
    /// the experiment's payload and error rate.
    pub(super) fn plain(&mut self, name: impl Into<String>, steps: Vec<Step>) -> WorkloadId {
        let ShapeSettings { server, protocol, .. } = *self.settings;
        // Over TCP, the end of a response is only marked by its size.
        let least = if protocol == Protocol::Tcp { 1 } else { 0 };
        let endpoint = Endpoint {
            steps: server.steps().into_iter().chain(steps).collect(),
            response_bytes: Distribution::Fixed(server.payload_bytes.max(least) as f64),
            error_fraction: server.error_fraction,
            ..Endpoint::default()
        };
        self.service(name, protocol, vec![endpoint])
    }

    pub(super) fn service(
        &mut self,
        name: impl Into<String>,
        protocol: Protocol,
        endpoints: Vec<Endpoint>,
    ) -> WorkloadId {
        let replicas = self.settings.replicas;
        let runs = Runs::Scripted(ScriptedService { endpoints });
        self.add(name.into(), replicas, protocol, runs, true)
    }

    pub(super) fn database(&mut self, name: &str) -> WorkloadId {
        self.add(name.to_owned(), 1, Protocol::Tcp, Runs::Database, false)
    }

    /// Adds a driver `generator` in a workload `client`.
    pub(super) fn driver(&mut self, target: WorkloadId, endpoint: &str) -> WorkloadId {
        let protocol = self.topology.workloads[target].protocol;
        let at = self.add(PAIR_CLIENT.to_owned(), 1, protocol, Runs::Drivers, true);
        let (name, endpoint) = (PAIR_DRIVER.to_owned(), endpoint.to_owned());
        self.topology.drivers.push(DriverPlacement { name, at, target, endpoint });
        at
    }

    /// Sets the resource requests of a workload's pods.
    pub(super) fn reserve(&mut self, workload: WorkloadId, cpu_cores: f64, memory_bytes: u64) {
        self.topology.workloads[workload].resources = Resources {
            cpu_request_cores: Some(cpu_cores),
            memory_request_bytes: Some(memory_bytes),
            ..Resources::default()
        };
    }

    /// All workloads except drivers and databases.
    pub(super) fn services(&self) -> Vec<WorkloadId> {
        (0..self.topology.workloads.len())
            .filter(|id| self.topology.workloads[*id].script().is_some())
            .collect()
    }

    /// Adds a step to the first endpoint of a service.
    pub(super) fn push_step(&mut self, service: WorkloadId, step: Step) {
        if let Runs::Scripted(service) = &mut self.topology.workloads[service].runs {
            service.endpoints[0].steps.push(step);
        }
    }

    pub(super) fn done(self) -> Topology {
        self.topology.arranged()
    }

    fn add(
        &mut self,
        name: String,
        replicas: usize,
        protocol: Protocol,
        runs: Runs,
        in_mesh: bool,
    ) -> WorkloadId {
        self.topology.workloads.push(Workload {
            name,
            namespace: String::new(),
            replicas,
            protocol,
            resources: Resources::default(),
            runs,
            in_mesh,
        });
        self.topology.workloads.len() - 1
    }
}

/// Call of `/` without a body.
pub(super) fn call(to: WorkloadId) -> Step {
    call_endpoint(to, DEFAULT_ENDPOINT, 0)
}

/// Call of an endpoint with a body.
pub(super) fn call_endpoint(to: WorkloadId, endpoint: &str, request_bytes: u32) -> Step {
    call_sometimes(to, endpoint, request_bytes, 1.0)
}

/// Call made in a fraction of executions.
pub(super) fn call_sometimes(to: WorkloadId, endpoint: &str, request_bytes: u32, probability: f64) -> Step {
    Step::Call(CallStep {
        endpoint: endpoint.to_owned(),
        request_bytes: Distribution::Fixed(request_bytes.into()),
        probability,
        ..CallStep::new(to)
    })
}

/// Operation on a number of documents of a given size.
pub(super) fn query(
    to: WorkloadId,
    operation: QueryOperation,
    collection: &str,
    documents: u32,
    document_bytes: u32,
) -> Step {
    Step::Query(QueryStep {
        to,
        operation,
        collection: collection.to_owned(),
        documents,
        document_bytes,
        probability: 1.0,
        timeout: DEFAULT_CALL_TIMEOUT,
    })
}

/// Runs steps in parallel; a single step is not wrapped.
pub(super) fn at_once(steps: Vec<Step>) -> Vec<Step> {
    if steps.len() > 1 { vec![Step::Parallel(steps)] } else { steps }
}

/// Endpoint with a response of constant size.
pub(super) fn endpoint(path: &str, steps: Vec<Step>, response_bytes: u32) -> Endpoint {
    Endpoint {
        path: path.to_owned(),
        steps,
        response_bytes: Distribution::Fixed(response_bytes.into()),
        error_fraction: 0.0,
    }
}
