//! Checks of calls and queries, after all services are known.

use crate::diagnostic::{ExperimentError, Place};
use crate::protocol::Protocol;
use crate::topology::script::DEFAULT_ENDPOINT;
use crate::topology::{Runs, Topology, Workload, WorkloadId};
use crate::yaml::section::alternatives;
use crate::yaml::suggestion::nearest;
use results::units::shortened;
use std::collections::HashMap;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Call in a script, with its place.
pub(super) struct CallSite<'a> {
    pub(super) from: WorkloadId,
    /// Index of the caller's endpoint.
    pub(super) from_endpoint: usize,
    pub(super) to: WorkloadId,
    pub(super) endpoint: String,
    /// True if the call is made in every execution of the script.
    pub(super) is_certain: bool,
    pub(super) place: &'a Place,
    pub(super) endpoint_place: &'a Place,
    /// Place of the size, if given.
    pub(super) size_place: Option<&'a Place>,
}

/// Every call and query, in the order of the file.
#[derive(Default)]
pub(super) struct Links<'a> {
    pub(super) calls: Vec<CallSite<'a>>,
    pub(super) queries: Vec<(WorkloadId, &'a Place)>,
    /// Number of steps in all scripts.
    pub(super) steps: usize,
}

impl Links<'_> {
    /// Runs every check that does not need drivers.
    pub(super) fn check(&self, workloads: &[Workload]) -> Result<()> {
        for (to, place) in &self.queries {
            if !matches!(workloads[*to].runs, Runs::Database) {
                return Err(place.error(
                    format!("`{}` is not a database", workloads[*to].qualified_name()),
                    "expected one of `databases`: services are reached by `call`",
                ));
            }
        }
        for call in &self.calls {
            check_endpoint(&workloads[call.to], &call.endpoint, call.place, call.endpoint_place)?;
            if let Some(place) = call.size_place.filter(|_| workloads[call.to].protocol == Protocol::Tcp) {
                return Err(place.error(
                    "`size` has no effect over TCP",
                    "expected none: a request over TCP has 100 bytes",
                ));
            }
        }
        self.check_certain_cycles(workloads)
    }

    /// Rejects cycles of calls that are made in every execution.
    fn check_certain_cycles(&self, workloads: &[Workload]) -> Result<()> {
        let position = |workload: WorkloadId, path: &str| {
            let endpoints = &workloads[workload].script().map_or(&[][..], |service| &service.endpoints);
            (workload, endpoints.iter().position(|endpoint| endpoint.path == path).unwrap_or(0))
        };
        let mut calls: HashMap<(WorkloadId, usize), Vec<&CallSite<'_>>> = HashMap::new();
        for call in self.calls.iter().filter(|call| call.is_certain) {
            calls.entry((call.from, call.from_endpoint)).or_default().push(call);
        }
        let mut starts: Vec<_> = calls.keys().copied().collect();
        starts.sort_unstable();
        let mut is_done: HashMap<(WorkloadId, usize), bool> = HashMap::new();
        for start in starts {
            if is_done.contains_key(&start) {
                continue;
            }
            // Iterative depth-first search: a chain may have thousands of services.
            let mut path = vec![(start, 0)];
            is_done.insert(start, false);
            while let Some((node, next)) = path.last_mut() {
                let Some(call) = calls.get(node).and_then(|calls| calls.get(*next)) else {
                    is_done.insert(*node, true);
                    path.pop();
                    continue;
                };
                *next += 1;
                let callee = position(call.to, &call.endpoint);
                match is_done.get(&callee) {
                    Some(true) => {}
                    Some(false) => {
                        let nodes = path.iter().map(|(node, _)| *node);
                        let cycle: Vec<_> = nodes.skip_while(|node| *node != callee).collect();
                        return Err(endless(&cycle, workloads, call.place));
                    }
                    None => {
                        is_done.insert(callee, false);
                        path.push((callee, 0));
                    }
                }
            }
        }
        Ok(())
    }

    /// Place of a call that is part of a recursion through this endpoint.
    fn place_of(&self, workload: WorkloadId, endpoint: &str, topology: &Topology) -> Option<&Place> {
        let service = topology.workloads[workload].script()?;
        let position = service.endpoints.iter().position(|one| one.path == endpoint)?;
        let mut own =
            self.calls.iter().filter(|call| (call.from, call.from_endpoint) == (workload, position));
        own.next().map(|call| call.place)
    }

    /// Checks that requests die out and that their number is limited. `topology` is in file order.
    pub(super) fn check_expected(&self, topology: &Topology, file: &Place) -> Result<()> {
        let Err(endless) = topology.expected_of_all() else { return Ok(()) };
        let place = self.place_of(endless.workload, &endless.endpoint, topology).unwrap_or(file);
        Err(place
            .error(
                "one request causes requests without end, or more than 100000",
                format!("they pass through `{}` of {}", endless.endpoint, endless.service),
            )
            .with_hint("a cycle of calls needs a `probability` so low that less than one call follows each"))
    }
}

fn endless(cycle: &[(WorkloadId, usize)], workloads: &[Workload], place: &Place) -> Box<ExperimentError> {
    const MAX_SHOWN: usize = 5;
    let mut names: Vec<String> =
        cycle.iter().take(MAX_SHOWN).map(|(workload, _)| workloads[*workload].qualified_name()).collect();
    if cycle.len() > MAX_SHOWN {
        names.push("…".to_owned());
    }
    names.push(workloads[cycle[0].0].qualified_name());
    place
        .error("calls follow each other in a circle without end", names.join(" → "))
        .with_hint("one of these calls needs a `probability` below 100%")
}

/// Checks that a call or driver requests an existing endpoint.
pub(super) fn check_endpoint(
    to: &Workload,
    endpoint: &str,
    place: &Place,
    endpoint_place: &Place,
) -> Result<()> {
    let name = to.qualified_name();
    let service = match &to.runs {
        Runs::Scripted(service) => service,
        Runs::Database => {
            return Err(place.error(
                format!("`{name}` is a database"),
                "expected a service: a database is reached by a step `query`",
            ));
        }
        Runs::Drivers | Runs::Service(_) | Runs::ExternalService(_) => {
            return Err(
                place.error(format!("`{name}` is a client"), "expected a service: a client serves nothing")
            );
        }
    };
    if to.protocol == Protocol::Tcp && endpoint != DEFAULT_ENDPOINT {
        return Err(endpoint_place.error(
            format!("`{name}` is reached over TCP, which has no endpoints"),
            "expected none, or `/`",
        ));
    }
    if service.endpoint(endpoint).is_some() {
        return Ok(());
    }
    let paths: Vec<&str> = service.endpoints.iter().map(|endpoint| endpoint.path.as_str()).take(10).collect();
    let error = endpoint_place.error(
        format!("`{name}` has no endpoint `{}`", shortened(endpoint)),
        format!("expected {}", alternatives(&paths)),
    );
    Err(error.did_you_mean(nearest(endpoint, paths)))
}
