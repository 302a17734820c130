//! Evidence that the filters of a trial's gateways act: probes before the load, and counters before and after
//! it.

use super::Filters;
use super::services::COUNTERS_PATH;
use crate::deployment::station::ProxyId;
use mesh::admin::AdminError;
use mesh::concurrent::side_by_side;
use mesh::filters::Filter;
use mesh::filters::probe::Probe;
use mesh::gateway_probe::GatewayProbe;
use mesh::proof::edge::Replica;
use mesh::proof::filters::{CountedFilter, Received};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A gateway whose filters are to be verified.
#[derive(Debug)]
pub(crate) struct FilteredGateway {
    pub proxy: ProxyId,
    pub connection_manager: String,
    /// Sends requests to one domain, as the load does.
    pub probe: GatewayProbe,
    pub host: String,
    pub path: String,
}

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
    pub fn before_load(&self, gateways: &[FilteredGateway]) -> BeforeLoad {
        let probes = self.configuration.filters.iter().map(|filter| {
            let probes = filter.probes().into_iter();
            (
                *filter,
                probes
                    .flat_map(|probe| {
                        gateways.iter().map(move |gateway| (probe.clone(), gateway.probe(&probe)))
                    })
                    .collect(),
            )
        });
        BeforeLoad { probes: probes.collect(), checks: self.checks() }
    }

    /// Counts of each filter since `before`.
    pub fn counted(
        &self,
        before: BeforeLoad,
        gateways: &[FilteredGateway],
        replicas: &[Replica],
    ) -> Vec<CountedFilter> {
        let BeforeLoad { mut probes, checks } = before;
        let after = self.checks();
        let filters = self.configuration.filters.iter().map(|&filter| CountedFilter {
            name: filter.name(),
            checks: match (checks.get(&filter), after.get(&filter)) {
                (Some(before), Some(after)) => rise(before, after),
                _ => gateways.iter().map(|gateway| gateway.checks(filter, replicas)).sum(),
            },
            probes: probes.remove(&filter).unwrap_or_default(),
        });
        filters.collect()
    }

    /// Number of requests that each service has checked so far.
    fn checks(&self) -> BTreeMap<Filter, Result<u64, String>> {
        let read = side_by_side(&self.counters, |(filter, admin)| {
            let counted: Result<Counted, AdminError> = admin.get_json(COUNTERS_PATH);
            let checks = counted.map(|counted| counted.checks);
            (*filter, checks.map_err(|error| experiment::environment::error_chain(&error)))
        });
        read.into_iter().collect()
    }
}

fn rise(before: &Result<u64, String>, after: &Result<u64, String>) -> Result<u64, String> {
    match (before, after) {
        (Ok(before), Ok(after)) => Ok(after.saturating_sub(*before)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

impl FilteredGateway {
    fn probe(&self, probe: &Probe) -> Statuses {
        let mut client = self.probe.clone();
        client.headers = probe.headers(&client.headers);
        let path = probe.path(&self.path);
        let answers = (0..probe.requests).map(|_| client.status(&self.host, &self.host, &path));
        answers.map(|answer| answer.map_err(|error| error.to_string())).collect()
    }

    fn checks(&self, filter: Filter, replicas: &[Replica]) -> Result<u64, String> {
        let counter = filter.counter(&self.connection_manager).unwrap_or_default();
        self.rise(&counter, replicas)
    }

    fn rise(&self, counter: &str, replicas: &[Replica]) -> Result<u64, String> {
        let replica = &replicas[self.proxy];
        let after = replica.after.as_ref().map_err(Clone::clone)?;
        let read = |counters: &BTreeMap<String, u64>| counters.get(counter).copied().unwrap_or(0);
        Ok(read(after).saturating_sub(read(&replica.before)))
    }
}

/// Requests and connections that reached the gateways in the trial. A gateway that could not be queried adds
/// none; its path is not proven anyway.
pub(crate) fn received(gateways: &[FilteredGateway], replicas: &[Replica]) -> Received {
    let sum = |counter: &str| {
        let rise = |gateway: &FilteredGateway| {
            gateway.rise(&format!("http.{}.{counter}", gateway.connection_manager), replicas)
        };
        gateways.iter().filter_map(|gateway| rise(gateway).ok()).sum()
    };
    Received { requests: sum("downstream_rq_total"), connections: sum("downstream_cx_total") }
}
