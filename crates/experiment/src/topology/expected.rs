//! Expected number of requests per edge and workload for each request of a driver. Computed from the scripts:
//! includes probabilities and fan-out, but no retries or failures.

use super::script::{CallStep, Step};
use super::{Call, DriverPlacement, Topology, WorkloadId};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of requests that one request of a driver may cause.
pub const MAX_REQUESTS_PER_REQUEST: f64 = 100_000.0;

/// Maximum number of calls to follow until requests must have died out.
const MAX_VISITS: usize = 5_000_000;

/// Threshold of expected requests below which calls are not followed.
const NEGLIGIBLE: f64 = 1e-12;

/// Expected requests per request of one driver, or per request of each of several drivers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedRequests {
    /// By edge, including those of drivers.
    pub edges: BTreeMap<Call, f64>,
    /// By receiving workload.
    pub workloads: BTreeMap<WorkloadId, f64>,
}

/// Error: scripts call each other without end, or one request causes more than [`MAX_REQUESTS_PER_REQUEST`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("one request to `{endpoint}` of {service} causes requests without end, or more than 100000")]
pub struct Endless {
    /// A service of the cycle.
    pub workload: WorkloadId,
    /// Qualified name of the service.
    pub service: String,
    /// Path of its endpoint.
    pub endpoint: String,
}

/// Calls of an endpoint: callee, endpoint of the callee (none for a database), calls per request.
type CallsOfEndpoint<'a> = Vec<(WorkloadId, Option<&'a str>, f64)>;

/// Calls and queries of each endpoint, so that scripts are walked only once.
struct CallGraph<'a> {
    topology: &'a Topology,
    /// By workload and endpoint.
    calls: HashMap<(WorkloadId, &'a str), CallsOfEndpoint<'a>>,
}

impl<'a> CallGraph<'a> {
    fn new(topology: &'a Topology) -> Self {
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

    /// Expected requests if each of these drivers sends one request.
    fn expected(&self, drivers: &[&'a DriverPlacement]) -> Result<ExpectedRequests, Endless> {
        let mut expected = ExpectedRequests::default();
        let mut arriving: BTreeMap<(WorkloadId, Option<&str>), f64> = BTreeMap::new();
        for driver in drivers {
            *expected.edges.entry(Call { from: driver.at, to: driver.target }).or_default() += 1.0;
            *arriving.entry((driver.target, Some(&driver.endpoint))).or_default() += 1.0;
        }
        let (mut total, mut visits) = (0.0, 0);
        while !arriving.is_empty() {
            if total > MAX_REQUESTS_PER_REQUEST * drivers.len() as f64 || visits > MAX_VISITS {
                return Err(self.endless(&arriving));
            }
            let mut next: BTreeMap<(WorkloadId, Option<&str>), f64> = BTreeMap::new();
            for ((workload, endpoint), requests) in arriving {
                total += requests;
                *expected.workloads.entry(workload).or_default() += requests;
                let calls = endpoint.and_then(|endpoint| self.calls.get(&(workload, endpoint)));
                for (to, endpoint, per_request) in calls.into_iter().flatten() {
                    visits += 1;
                    let sent = requests * per_request;
                    *expected.edges.entry(Call { from: workload, to: *to }).or_default() += sent;
                    if sent > NEGLIGIBLE {
                        *next.entry((*to, *endpoint)).or_default() += sent;
                    }
                }
            }
            arriving = next;
        }
        Ok(expected)
    }

    /// Finds the endpoint with the most remaining requests.
    fn endless(&self, arriving: &BTreeMap<(WorkloadId, Option<&str>), f64>) -> Endless {
        let endpoints = arriving
            .iter()
            .filter_map(|((workload, endpoint), requests)| Some((*workload, (*endpoint)?, *requests)));
        let most = endpoints.max_by(|(.., one), (.., other)| one.total_cmp(other));
        let (workload, endpoint, _) = most.unwrap_or_default();
        Endless {
            workload,
            service: self.topology.workloads[workload].qualified_name(),
            endpoint: endpoint.to_owned(),
        }
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
    /// Expected requests per request of one driver; empty if the topology has no such driver.
    ///
    /// # Errors
    /// Returns an error if the requests do not die out.
    pub fn expected(&self, driver: &str) -> Result<ExpectedRequests, Endless> {
        let driver: Vec<&DriverPlacement> = self.driver(driver).into_iter().collect();
        CallGraph::new(self).expected(&driver)
    }

    /// Expected requests per request of each driver, in the order of the drivers.
    ///
    /// # Errors
    /// Returns an error if the requests do not die out.
    pub fn expected_of_each(&self) -> Result<Vec<ExpectedRequests>, Endless> {
        let graph = CallGraph::new(self);
        self.drivers.iter().map(|driver| graph.expected(&[driver])).collect()
    }

    /// Expected requests if every driver sends one request.
    ///
    /// # Errors
    /// Returns an error if the requests do not die out.
    pub fn expected_of_all(&self) -> Result<ExpectedRequests, Endless> {
        let drivers: Vec<&DriverPlacement> = self.drivers.iter().collect();
        CallGraph::new(self).expected(&drivers)
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::Topology;
    use crate::topology::file::read;
    use std::collections::BTreeMap;

    /// Expected requests by edge, as `from to`.
    fn edges(topology: &Topology, driver: &str) -> BTreeMap<String, f64> {
        let name = |id: usize| topology.workloads[id].qualified_name();
        let expected = topology.expected(driver).unwrap();
        expected
            .edges
            .iter()
            .map(|(call, requests)| (format!("{} {}", name(call.from), name(call.to)), *requests))
            .collect()
    }

    #[test]
    fn requests_follow_fan_out_probability_and_endpoint() {
        let text = "\
services:
- name: web
  endpoints:
    /: {script: [{parallel: [{call: a}, [{call: a}, {call: {service: b, probability: 50%}}]]}]}
    /other: {script: [{call: b}]}
- {name: a, script: [{call: {service: b, probability: 10%}}, {query: {database: db, find: x, documents: 5}}]}
- {name: b}
databases: [{name: db}]
drivers: [{name: one, target: web}, {name: two, target: web, endpoint: /other}]
";
        let topology = read(text, "shop").unwrap();
        let one = edges(&topology, "one");
        let expected = [("client web", 1.0), ("web a", 2.0), ("web b", 0.5), ("a b", 0.2), ("a db", 2.0)];
        for (edge, requests) in expected {
            assert!((one[edge] - requests).abs() < 1e-9, "{edge}: {one:?}");
        }
        assert_eq!(one.len(), expected.len());
        assert_eq!(edges(&topology, "two").len(), 2);
        assert!(edges(&topology, "three").is_empty());
        let each = topology.expected_of_each().unwrap();
        assert_eq!(each, ["one", "two"].map(|driver| topology.expected(driver).unwrap()));
        let all = topology.expected_of_all().unwrap();
        assert!((all.workloads[&topology.find("b").unwrap()] - 1.7).abs() < 1e-9);
    }

    #[test]
    fn cycles_are_followed_until_requests_die_out() {
        let text = "\
services:
- {name: a, script: [{call: {service: b, probability: 50%}}]}
- {name: b, script: [{call: {service: a, probability: 80%}}]}
drivers: [{target: a}]
";
        // a = 1 + 0.8 b, b = 0.5 a.
        let topology = read(text, "cycle").unwrap();
        let requests = edges(&topology, "generator");
        assert!((requests["a b"] - 0.5 / 0.6).abs() < 1e-6, "{requests:?}");
    }

    #[test]
    fn requests_that_do_not_die_out_are_an_error() {
        let certain = "{services: [{name: a, script: [{call: {service: a, probability: 50%}}]}], drivers: [{target: a}]}";
        assert!(read(certain, "a").is_ok());
        for script in [
            "[{call: {service: a, probability: 50%}}, {call: {service: a, probability: 50%}}]",
            "[{call: {service: a, probability: 99.9999999%}}]",
        ] {
            let text = format!("{{services: [{{name: a, script: {script}}}], drivers: [{{target: a}}]}}");
            assert!(read(&text, "a").unwrap_err().message.contains("without end"), "{script}");
        }
        let services: Vec<String> = (0..6)
            .map(|level| {
                let calls = vec![format!("call: s{}", level + 1); 10].join(", ");
                format!("- {{name: s{level}, script: [{calls}]}}\n")
            })
            .collect();
        let wide = format!("services:\n{}- name: s6\n", services.concat());
        let error = read(&wide, "wide").unwrap_err();
        assert!(error.message.contains("more than 100000"), "{error}");
    }
}
