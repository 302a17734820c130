//! Gateway filters, by the names that scenarios use. [`http`] is their Envoy configuration, [`wasm`] the
//! WebAssembly module, and [`probe`] proves that they reject requests. Istio's objects for them are in
//! [`crate::istio::objects::filters`].

mod http;
pub mod probe;
pub mod wasm;

pub use http::{SERVICE_TIMEOUT, service_limits};

use experiment::environment::Scenario;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// Domain of the rate limit service's limits.
pub const LIMIT_DOMAIN: &str = "meshmeter";
/// Descriptor key of the rate limit service for requests that probe a limit.
pub const PROBE_DESCRIPTOR: &str = "probe";
/// Header with the credential that the authorization service accepts.
pub const CREDENTIAL_HEADER: &str = "x-api-key";
/// Limit for all requests: far above any load.
pub const LIMIT_PER_SECOND: u32 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Filter {
    Jwt,
    ExtAuthzGrpc,
    ExtAuthzHttp,
    Wasm,
    Waf,
    LocalRateLimit,
    GlobalRateLimit,
}

/// The service that a filter queries on each request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FilterService {
    /// Name of its pod and component.
    pub name: &'static str,
    pub port: u16,
    pub speaks_grpc: bool,
}

impl Filter {
    /// In the order in which requests pass them.
    const ALL: [Self; 7] = [
        Self::Jwt,
        Self::ExtAuthzGrpc,
        Self::ExtAuthzHttp,
        Self::Wasm,
        Self::Waf,
        Self::LocalRateLimit,
        Self::GlobalRateLimit,
    ];

    /// Filters of a scenario, in the order in which requests pass them.
    pub fn for_scenario(scenario: Scenario) -> Vec<Self> {
        let is_in = |filter: &Self| match scenario {
            // Both authorization filters would query one service.
            Scenario::AllFilters => *filter != Self::ExtAuthzHttp,
            _ => filter.scenario() == scenario,
        };
        Self::ALL.into_iter().filter(is_in).collect()
    }

    /// The scenario that has only this filter.
    fn scenario(self) -> Scenario {
        match self {
            Self::Jwt => Scenario::Jwt,
            Self::ExtAuthzGrpc => Scenario::ExtAuthzGrpc,
            Self::ExtAuthzHttp => Scenario::ExtAuthzHttp,
            Self::Wasm => Scenario::Wasm,
            Self::Waf => Scenario::Waf,
            Self::LocalRateLimit => Scenario::LocalRateLimit,
            Self::GlobalRateLimit => Scenario::GlobalRateLimit,
        }
    }

    pub fn name(self) -> &'static str {
        self.scenario().name()
    }

    pub fn service(self) -> Option<FilterService> {
        let service = |name, port, speaks_grpc| Some(FilterService { name, port, speaks_grpc });
        match self {
            Self::ExtAuthzGrpc => service("ext-authz", 9000, true),
            Self::ExtAuthzHttp => service("ext-authz", 9000, false),
            Self::Waf => service("waf", 9001, true),
            Self::GlobalRateLimit => service("rate-limit", 8081, true),
            Self::Jwt | Self::Wasm | Self::LocalRateLimit => None,
        }
    }

    /// The gateway's counter of requests that passed this filter; absent if the filter's service counts them.
    pub fn counter(self, connection_manager: &str) -> Option<String> {
        match self {
            Self::Jwt => Some(format!("http.{connection_manager}.jwt_authn.allowed")),
            Self::Wasm => Some(format!("wasmcustom.{}", wasm::COUNTER)),
            Self::LocalRateLimit => Some(format!("{}.http_local_rate_limit.ok", http::LOCAL_LIMIT_PREFIX)),
            Self::ExtAuthzGrpc | Self::ExtAuthzHttp | Self::Waf | Self::GlobalRateLimit => None,
        }
    }
}

impl FilterService {
    /// Host name of the service at the gateway.
    pub fn host(self) -> String {
        format!("{}.filters.example", self.name)
    }

    /// The gateway's cluster for the service, named as in Istio.
    pub fn cluster(self) -> String {
        format!("outbound|{}||{}", self.port, self.host())
    }
}

/// The filters of a gateway with everything that their configuration needs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GatewayFilters {
    /// In the order in which requests pass them.
    pub filters: Vec<Filter>,
    /// Addresses of the services behind them.
    pub services: Vec<(FilterService, Ipv4Addr)>,
    /// JWKS that verifies tokens; needed by [`Filter::Jwt`].
    pub token_keys: String,
    /// Needed by [`Filter::Wasm`].
    pub wasm_module: PathBuf,
}

impl GatewayFilters {
    /// The services' clusters with their endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = (FilterService, SocketAddrV4)> + '_ {
        self.services.iter().map(|(service, address)| (*service, SocketAddrV4::new(*address, service.port)))
    }

    /// Gateway counters that prove its filters.
    pub fn counters(&self, connection_manager: &str) -> impl Iterator<Item = String> {
        self.filters.iter().filter_map(move |filter| filter.counter(connection_manager))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn scenario_with_one_filter_is_named_after_it() {
        for scenario in Scenario::ALL {
            let filters = Filter::for_scenario(scenario);
            if let [filter] = filters[..] {
                assert_eq!(filter.name(), scenario.name());
            }
            let ports: BTreeSet<u16> =
                filters.iter().filter_map(|filter| Some(filter.service()?.port)).collect();
            let services = filters.iter().filter(|filter| filter.service().is_some());
            assert_eq!(services.count(), ports.len(), "{}", scenario.name());
        }
        assert_eq!(Filter::for_scenario(Scenario::AllFilters).len(), 6);
    }

    #[test]
    fn every_filter_is_counted_once() {
        for filter in Filter::for_scenario(Scenario::AllFilters) {
            assert_ne!(filter.counter("gateway").is_some(), filter.service().is_some(), "{filter:?}");
        }
    }
}
