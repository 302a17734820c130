//! Filters of the gateways that drivers reach, and the services behind them once they have started.

use crate::running::Supporting;
use experiment::dataplane::Entry;
use experiment::environment::DeploymentSpec;
use mesh::admin::Admin;
use mesh::filters::{Filter, GatewayFilters};
use std::collections::BTreeMap;

/// The filters of a deployment's gateways.
#[derive(Debug)]
pub(crate) struct Filters {
    pub configuration: GatewayFilters,
    /// Headers that let requests pass, apart from tokens, such as `x-api-key: …`.
    pub headers: Vec<String>,
    /// Counters of the services, by filter.
    pub counters: BTreeMap<Filter, Admin>,
    pub supporting: Vec<Supporting>,
}

impl Filters {
    /// Filters of a deployment's scenario; empty without a gateway.
    pub fn for_spec(spec: &DeploymentSpec) -> Vec<Filter> {
        match spec.parts().entry {
            Entry::Direct => Vec::new(),
            Entry::Gateway | Entry::Ingress => Filter::for_scenario(spec.ingress.scenario),
        }
    }
}
