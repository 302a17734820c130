//! Evidence that the filters of a trial's gateways act: probes before the load, and counters before and after
//! it.

use super::services::COUNTERS_PATH;
use crate::rollout::domains::Domains;
use crate::rollout::filters::Filters;
use experiment::environment::error_chain;
use mesh::admin::AdminError;
use mesh::concurrent::side_by_side;
use mesh::filters::Filter;
use mesh::filters::probe::Probe;
use mesh::proof::edge::Replica;
use mesh::proof::filters::{CountedFilter, Received};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Statuses of the responses to a probe, or why there are none.
type Statuses = Result<Vec<u16>, String>;

/// Readings of the filters from before the load.
#[derive(Debug, Default)]
pub(crate) struct BeforeLoad {
    probes: BTreeMap<Filter, Vec<(Probe, Statuses)>>,
    checks: BTreeMap<Filter, Result<u64, String>>,
}

#[derive(Deserialize)]
struct Counted {
    checks: u64,
}

impl Filters {
    /// Probes every filter at every gateway, then reads the services' counters.
    pub fn before_load(&self, gateways: &[Domains]) -> BeforeLoad {
        let probes = self.configuration.filters.iter().map(|filter| {
            let probes = filter.probes().into_iter();
            let probes = probes.flat_map(|probe| {
                gateways.iter().map(move |gateway| (probe.clone(), responses(gateway, &probe)))
            });
            (*filter, probes.collect())
        });
        BeforeLoad { probes: probes.collect(), checks: self.checks() }
    }

    /// Counts of each filter since `before`.
    pub fn counted(
        &self,
        before: &BeforeLoad,
        gateways: &[Domains],
        replicas: &[Replica],
    ) -> Vec<CountedFilter> {
        let BeforeLoad { probes, checks } = before;
        let after = self.checks();
        // Requests that a filter without a service passed.
        let passed = |gateway: &Domains, filter: Filter| {
            delta(gateway, &filter.counter(&gateway.connection_manager).unwrap_or_default(), replicas)
        };
        let filters = self.configuration.filters.iter().map(|&filter| CountedFilter {
            name: filter.name(),
            checks: match (checks.get(&filter), after.get(&filter)) {
                (Some(Ok(before)), Some(Ok(after))) => Ok(after.saturating_sub(*before)),
                (Some(Err(reason)), _) | (_, Some(Err(reason))) => Err(reason.clone()),
                _ => gateways.iter().map(|gateway| passed(gateway, filter)).sum(),
            },
            probes: probes.get(&filter).cloned().unwrap_or_default(),
        });
        filters.collect()
    }

    /// Number of requests that each service has checked so far.
    fn checks(&self) -> BTreeMap<Filter, Result<u64, String>> {
        let read = side_by_side(&self.counters, |(filter, admin)| {
            let counted: Result<Counted, AdminError> = admin.get_json(COUNTERS_PATH);
            let checks = counted.map(|counted| counted.checks);
            (*filter, checks.map_err(|error| error_chain(&error)))
        });
        read.into_iter().collect()
    }
}

/// Responses of a gateway to a probe, which requests its first domain.
fn responses(gateway: &Domains, probe: &Probe) -> Statuses {
    let mut client = gateway.probe.clone();
    client.headers = probe.headers(&client.headers);
    let (host, path) = (gateway.host(1), probe.path(&gateway.last_path()));
    let responses = (0..probe.requests).map(|_| client.status(&host, &host, &path));
    responses.map(|response| response.map_err(|error| error.to_string())).collect()
}

/// Delta of a gateway's counter over the trial.
fn delta(gateway: &Domains, counter: &str, replicas: &[Replica]) -> Result<u64, String> {
    let replica = replicas.iter().find(|replica| replica.name == gateway.gateway);
    replica.expect("the gateway's counters were read").rise(counter)
}

/// Requests and connections that reached the gateways in the trial. A gateway that could not be queried adds
/// none; its path is not proven anyway.
pub(crate) fn received(gateways: &[Domains], replicas: &[Replica]) -> Received {
    let sum = |counter: &str| {
        let delta = |gateway: &Domains| {
            delta(gateway, &format!("http.{}.{counter}", gateway.connection_manager), replicas)
        };
        gateways.iter().filter_map(|gateway| delta(gateway).ok()).sum()
    };
    Received { requests: sum("downstream_rq_total"), connections: sum("downstream_cx_total") }
}
