//! Config markers: text that the settings leave in the configuration of proxies which have taken them up.

use super::policy::{IDENTITY_RULES, PATH_RULES, policy_names};
use super::subject::Subject;
use super::telemetry;
use crate::istio::token::ISSUER;
use experiment::environment::{AccessLog, DeploymentSpec};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Markers {
    /// In the listeners of every proxy that reads the requests.
    pub every_listener: Vec<String>,
    /// In the listeners of the proxy before the service.
    pub before_service: Vec<String>,
    /// In the routes of the proxy that chooses where requests go.
    pub routes_to_service: Vec<String>,
}

pub fn for_namespace(spec: &DeploymentSpec, namespace: &str) -> Vec<String> {
    let settings = &*spec.istio;
    let markers = [
        (spec.proxy.access_log != AccessLog::Off, "/dev/stdout".to_owned()),
        (settings.tracing_fraction.is_some(), telemetry::TRACE_COLLECTOR.to_owned()),
        (settings.lua.is_some(), format!("trafficextension/{namespace}.lua")),
        (settings.wasm.is_some(), format!("trafficextension/{namespace}.wasm")),
    ];
    markers.into_iter().filter_map(|(is_set, marker)| is_set.then_some(marker)).collect()
}

pub fn for_service(spec: &DeploymentSpec, subject: &Subject<'_>) -> Markers {
    let (settings, Subject { namespace, service, .. }) = (&*spec.istio, subject);
    let authorization = settings.authorization;
    let mut before_service = Vec::new();
    for (sort, rules) in [(PATH_RULES, authorization.paths), (IDENTITY_RULES, authorization.identities)] {
        let names = policy_names(sort, service, rules);
        before_service.extend(names.iter().map(|name| format!("ns[{namespace}]-policy[{name}]")));
    }
    if authorization.jwt {
        before_service.push(ISSUER.to_owned());
    }
    let is_routed = settings.retries.is_some() || settings.timeout.is_some();
    let route = is_routed.then(|| format!("namespaces/{namespace}/virtual-service/{service}"));
    Markers {
        every_listener: for_namespace(spec, namespace),
        before_service,
        routes_to_service: route.into_iter().collect(),
    }
}
