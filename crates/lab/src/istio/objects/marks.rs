//! What the settings of a trial leave in the configuration of its proxies: text that is there once they are in force.

use super::policy::{IDENTITY_RULES, PATH_RULES, policy_names};
use super::{Subject, telemetry};
use crate::istio::token::ISSUER;
use experiment::environment::{AccessLog, DeploymentSpec};

/// Text to be found in proxies' configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Marks {
    /// In the listeners of every proxy that reads the requests.
    pub every_listener: Vec<String>,
    /// In the listeners of the proxy before the service.
    pub before_service: Vec<String>,
    /// In the routes of the proxy that chooses where requests go.
    pub routes_to_service: Vec<String>,
}

/// The marks of a trial's settings.
#[must_use]
pub fn of_settings(spec: &DeploymentSpec, subject: &Subject<'_>) -> Marks {
    let (settings, namespace) = (&*spec.istio, subject.namespace);
    let mut marks = Marks::default();
    let mut in_every_listener = |is_asked: bool, text: String| {
        if is_asked {
            marks.every_listener.push(text);
        }
    };
    in_every_listener(spec.proxy.access_log != AccessLog::Off, "/dev/stdout".to_owned());
    in_every_listener(settings.tracing_fraction.is_some(), telemetry::TRACE_COLLECTOR.to_owned());
    in_every_listener(settings.lua.is_some(), format!("trafficextension/{namespace}.lua"));
    in_every_listener(subject.wasm_module.is_some(), format!("trafficextension/{namespace}.wasm"));
    let authorization = settings.authorization;
    for (sort, rules) in [(PATH_RULES, authorization.paths), (IDENTITY_RULES, authorization.identities)] {
        let names = policy_names(sort, rules);
        marks.before_service.extend(names.iter().map(|name| format!("ns[{namespace}]-policy[{name}]")));
    }
    if authorization.jwt {
        marks.before_service.push(ISSUER.to_owned());
    }
    if settings.retries.is_some() || settings.timeout.is_some() {
        let service = subject.service;
        marks.routes_to_service.push(format!("namespaces/{namespace}/virtual-service/{service}"));
    }
    marks
}
