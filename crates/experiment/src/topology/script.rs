//! Scripts: what a service does per request.

use super::WorkloadId;
use super::distribution::Distribution;
use crate::keys::words::words;
use crate::settings::service::ServerSettings;
use std::time::Duration;

/// Path of the default endpoint, for a service whose file names none.
pub const DEFAULT_ENDPOINT: &str = "/";

/// Default timeout of a call.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Service with endpoints. Over TCP, which has no paths, only [`DEFAULT_ENDPOINT`] is reachable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedService {
    /// Endpoints with unique paths; at least one.
    pub endpoints: Vec<Endpoint>,
}

/// Path of a service and its script.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Path of HTTP requests, starting with `/`. For gRPC see [`grpc_method`].
    pub path: String,
    /// Steps, run sequentially before the response.
    pub steps: Vec<Step>,
    /// Size of the response body, bytes.
    pub response_bytes: Distribution,
    /// Fraction of requests answered with an error after their steps, 0 to 1.
    pub error_fraction: f64,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            path: DEFAULT_ENDPOINT.to_owned(),
            steps: Vec::new(),
            response_bytes: Distribution::Fixed(0.0),
            error_fraction: 0.0,
        }
    }
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Request to another service.
    Call(CallStep),
    /// Operation on a database.
    Query(QueryStep),
    /// Runs all steps in parallel; ends with the last one.
    Parallel(Vec<Step>),
    /// Runs steps sequentially: a branch of [`Step::Parallel`].
    Sequence(Vec<Step>),
    /// Waits, seconds.
    Sleep(Distribution),
    /// Computes, seconds of CPU time.
    Compute(Distribution),
    /// Allocates memory until the response, bytes.
    Hold(Distribution),
}

impl ServerSettings {
    /// Steps of a response, as a script.
    pub(super) fn steps(&self) -> Vec<Step> {
        let (delay, cpu_time) = (self.delay.as_secs_f64(), self.cpu_time.as_secs_f64());
        let delay = (delay > 0.0).then_some(Step::Sleep(Distribution::Fixed(delay)));
        let cpu_time = (cpu_time > 0.0).then_some(Step::Compute(Distribution::Fixed(cpu_time)));
        delay.into_iter().chain(cpu_time).collect()
    }
}

/// Request to another service. If it fails or is answered with an error, the caller's own response is an
/// error.
#[derive(Clone, Debug, PartialEq)]
pub struct CallStep {
    /// The callee.
    pub to: WorkloadId,
    /// Path of one of its endpoints.
    pub endpoint: String,
    /// Size of the request body, bytes. Ignored over TCP, where requests have a fixed size.
    pub request_bytes: Distribution,
    /// Fraction of executions in which the call is made, 0 to 1.
    pub probability: f64,
    /// Further attempts after a failed one.
    pub retries: u32,
    /// Timeout of each attempt.
    pub timeout: Duration,
}

/// Operation on a database.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryStep {
    /// The database.
    pub to: WorkloadId,
    /// What is done.
    pub operation: QueryOperation,
    /// Name of the collection. Collections that are read are populated before the service is ready.
    pub collection: String,
    /// Documents per operation.
    pub documents: u32,
    /// Size of each document, bytes.
    pub document_bytes: u32,
    /// Fraction of executions in which the query is made, 0 to 1.
    pub probability: f64,
    /// Timeout of the operation.
    pub timeout: Duration,
}

/// Database operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueryOperation {
    /// Finds documents by key.
    Find,
    /// Inserts documents.
    Insert,
    /// Changes a field of documents by key.
    Update,
}

words!(QueryOperation { Find = "find", Insert = "insert", Update = "update" });

/// Method of gRPC requests to an endpoint: `/meshmeter.v1.Echo/Unary` for `/`, `/meshmeter.v1.Echo/list` for
/// `/list`. All methods use the messages of `Unary`.
#[must_use]
pub fn grpc_method(endpoint: &str) -> String {
    match endpoint.trim_start_matches('/') {
        "" => "/meshmeter.v1.Echo/Unary".to_owned(),
        method => format!("/meshmeter.v1.Echo/{method}"),
    }
}

impl CallStep {
    /// A single unconditional call of [`DEFAULT_ENDPOINT`] without a body.
    #[must_use]
    pub fn new(to: WorkloadId) -> Self {
        Self {
            to,
            endpoint: DEFAULT_ENDPOINT.to_owned(),
            request_bytes: Distribution::Fixed(0.0),
            probability: 1.0,
            retries: 0,
            timeout: DEFAULT_CALL_TIMEOUT,
        }
    }
}

impl ScriptedService {
    /// Endpoint with this path.
    #[must_use]
    pub fn endpoint(&self, path: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.path == path)
    }

    /// Every workload that its scripts call or query, in order of first use.
    #[must_use]
    pub fn callees(&self) -> Vec<WorkloadId> {
        let mut callees = Vec::new();
        for endpoint in &self.endpoints {
            for step in &endpoint.steps {
                step.each_callee(&mut |callee| {
                    if !callees.contains(&callee) {
                        callees.push(callee);
                    }
                });
            }
        }
        callees
    }
}

impl Step {
    /// Visits the callee of each call and query.
    pub fn each_callee(&self, visit: &mut dyn FnMut(WorkloadId)) {
        self.each_leaf(&mut |step| match step {
            Self::Call(call) => visit(call.to),
            Self::Query(query) => visit(query.to),
            _ => {}
        });
    }

    /// Visits every leaf step.
    pub fn each_leaf(&self, visit: &mut dyn FnMut(&Self)) {
        match self {
            Self::Parallel(steps) | Self::Sequence(steps) => {
                steps.iter().for_each(|step| step.each_leaf(visit));
            }
            step => visit(step),
        }
    }

    /// Replaces the callee of each call and query.
    pub fn map_callees(&mut self, map: &dyn Fn(WorkloadId) -> WorkloadId) {
        match self {
            Self::Call(call) => call.to = map(call.to),
            Self::Query(query) => query.to = map(query.to),
            Self::Parallel(steps) | Self::Sequence(steps) => {
                steps.iter_mut().for_each(|step| step.map_callees(map));
            }
            Self::Sleep(_) | Self::Compute(_) | Self::Hold(_) => {}
        }
    }
}
