//! How many requests each edge and workload gets per request of a driver, from the scripts alone: probabilities and
//! fan-out, no retries and no failures.

use super::script::{CallStep, Step};
use super::{Call, Topology, WorkloadId};
use std::collections::{BTreeMap, HashMap};

/// Requests that one request of a driver may cause.
pub const MAX_REQUESTS_PER_REQUEST: f64 = 100_000.0;

/// Hops after which the requests that one request causes must have died out.
const MAX_HOPS: usize = 20_000;

/// Expected requests below this end a walk along calls.
const NEGLIGIBLE: f64 = 1e-12;

/// Expected requests per request of one driver, or of several at the same rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedRequests {
    /// By edge; those of drivers are in it.
    pub edges: BTreeMap<Call, f64>,
    /// By workload that serves them.
    pub workloads: BTreeMap<WorkloadId, f64>,
}

/// Scripts call each other without end, or one request causes more than [`MAX_REQUESTS_PER_REQUEST`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("one request to `{endpoint}` of {service} causes requests without end, or more than 100000")]
pub struct Endless {
    /// A service of the cycle.
    pub workload: WorkloadId,
    /// Its qualified name.
    pub service: String,
    /// Path of its endpoint.
    pub endpoint: String,
}

/// Calls of an endpoint: callee, its endpoint (none of a database), calls per request.
type CallsOfEndpoint<'a> = Vec<(WorkloadId, Option<&'a str>, f64)>;

/// Calls and queries of each endpoint, so that a walk need not go through the scripts again.
pub(crate) struct CallGraph<'a> {
    topology: &'a Topology,
    /// By workload and endpoint.
    calls: HashMap<(WorkloadId, &'a str), CallsOfEndpoint<'a>>,
}

impl<'a> CallGraph<'a> {
    pub(crate) fn new(topology: &'a Topology) -> Self {
        let mut calls = HashMap::new();
        for (id, workload) in topology.workloads.iter().enumerate() {
            for endpoint in workload.script().into_iter().flat_map(|service| &service.endpoints) {
                let mut of_endpoint = Vec::new();
                endpoint.steps.iter().for_each(|step| collect(step, &mut of_endpoint));
                calls.insert((id, endpoint.path.as_str()), of_endpoint);
            }
        }
        Self { topology, calls }
    }

    /// Adds what `requests` requests to an endpoint cause.
    fn add(
        &self,
        target: WorkloadId,
        endpoint: &'a str,
        requests: f64,
        expected: &mut ExpectedRequests,
    ) -> Result<(), Endless> {
        let mut arriving = BTreeMap::from([((target, Some(endpoint)), requests)]);
        let mut total = 0.0;
        for _ in 0..MAX_HOPS {
            let mut next: BTreeMap<(WorkloadId, Option<&str>), f64> = BTreeMap::new();
            for ((workload, endpoint), requests) in arriving {
                total += requests;
                *expected.workloads.entry(workload).or_default() += requests;
                let calls = endpoint.and_then(|endpoint| self.calls.get(&(workload, endpoint)));
                for (to, endpoint, per_request) in calls.into_iter().flatten() {
                    let sent = requests * per_request;
                    *expected.edges.entry(Call { from: workload, to: *to }).or_default() += sent;
                    if sent > NEGLIGIBLE {
                        *next.entry((*to, *endpoint)).or_default() += sent;
                    }
                }
            }
            if next.is_empty() {
                return Ok(());
            }
            arriving = next;
            if total > MAX_REQUESTS_PER_REQUEST * requests {
                break;
            }
        }
        let ((workload, endpoint), _) = arriving
            .into_iter()
            .filter(|((_, endpoint), _)| endpoint.is_some())
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .unwrap_or(((target, Some(endpoint)), requests));
        Err(Endless {
            workload,
            service: self.topology.workloads[workload].qualified_name(),
            endpoint: endpoint.unwrap_or_default().to_owned(),
        })
    }

    /// Expected requests per request of each of these drivers.
    pub(crate) fn expected(
        &self,
        drivers: impl IntoIterator<Item = &'a str>,
    ) -> Result<ExpectedRequests, Endless> {
        let mut expected = ExpectedRequests::default();
        for name in drivers {
            let Some(driver) = self.topology.driver(name) else { continue };
            *expected.edges.entry(Call { from: driver.at, to: driver.target }).or_default() += 1.0;
            self.add(driver.target, &driver.endpoint, 1.0, &mut expected)?;
        }
        Ok(expected)
    }
}

fn collect<'a>(step: &'a Step, calls: &mut CallsOfEndpoint<'a>) {
    match step {
        Step::Call(CallStep { to, endpoint, probability, .. }) => {
            calls.push((*to, Some(endpoint), *probability));
        }
        Step::Query(query) => calls.push((query.to, None, query.probability)),
        Step::Parallel(steps) | Step::Sequence(steps) => steps.iter().for_each(|step| collect(step, calls)),
        Step::Sleep(_) | Step::Compute(_) | Step::Hold(_) => {}
    }
}

impl Topology {
    /// Expected requests per request of one driver; empty for a driver that the topology does not have.
    ///
    /// # Errors
    /// The requests do not die out.
    pub fn expected(&self, driver: &str) -> Result<ExpectedRequests, Endless> {
        CallGraph::new(self).expected(self.driver(driver).map(|driver| driver.name.as_str()))
    }

    /// Expected requests when every driver sends one request.
    ///
    /// # Errors
    /// The requests do not die out.
    pub fn expected_of_all(&self) -> Result<ExpectedRequests, Endless> {
        CallGraph::new(self).expected(self.drivers.iter().map(|driver| driver.name.as_str()))
    }
}
