//! Filters of a gateway, by scenario: each acts on every request of a trial, and rejects what it must.

use crate::trial::{self, REQUESTS, Trial, trial};
use experiment::environment::{DeploymentSpec, Estate, Scenario};
use experiment::{MeshKind, Protocol};
use lab::environment::LocalLab;
use results::{FilterProof, Mode, Role};
use std::collections::BTreeSet;
use std::sync::Arc;

const FILTERS: [Scenario; 8] = [
    Scenario::ExtAuthzGrpc,
    Scenario::ExtAuthzHttp,
    Scenario::Jwt,
    Scenario::Wasm,
    Scenario::Waf,
    Scenario::LocalRateLimit,
    Scenario::GlobalRateLimit,
    Scenario::AllFilters,
];

pub fn every_filter_acts_at_a_static_gateway(lab: &LocalLab) {
    for scenario in FILTERS {
        check(lab, MeshKind::Envoy, Mode::Gateway, scenario);
    }
}

pub fn every_filter_acts_at_the_ingress_gateway(lab: &LocalLab) {
    for scenario in FILTERS {
        check(lab, MeshKind::Istio, Mode::Ingress, scenario);
    }
}

pub fn filters_read_http2(lab: &LocalLab) {
    let spec = spec(MeshKind::Envoy, Mode::Gateway, Scenario::AllFilters).with_protocol(Protocol::Http2);
    let trial = trial(lab, &spec, |_| ());
    trial.check_path("HTTP/2");
}

fn spec(mesh: MeshKind, mode: Mode, scenario: Scenario) -> DeploymentSpec {
    let estate = Estate { declared: true, domains: 2, paths: Some(3), scenario, ..Estate::default() };
    DeploymentSpec { mesh, ingress: Arc::new(estate), ..trial::spec(mode) }
}

fn check(lab: &LocalLab, mesh: MeshKind, mode: Mode, scenario: Scenario) {
    let what = format!("{mode} {}", scenario.name());
    let trial = trial(lab, &spec(mesh, mode, scenario), |_| ());
    trial.check_path(&what);
    let filters = &trial.observation.evidence.path.filters;
    match scenario {
        Scenario::AllFilters => assert_eq!(filters.len(), 6, "{what}"),
        _ => assert_eq!((filters.len(), filters[0].name.as_str()), (1, scenario.name()), "{what}"),
    }
    for filter in filters {
        // A request may be retried.
        assert!(filter.requests >= REQUESTS && filter.checks >= Some(REQUESTS), "{what}: {filter:?}");
        check_refusals(&what, filter);
    }
    check_services(&what, scenario, &trial);
}

fn check_refusals(what: &str, filter: &FilterProof) {
    let statuses: Vec<&[u16]> = filter.probes.iter().map(|probe| probe.statuses.as_slice()).collect();
    match filter.name.as_str() {
        "jwt" => assert!(matches!(statuses[..], [[401 | 403]]), "{what}: {filter:?}"),
        "waf" => assert_eq!(statuses, [[403], [403], [200]], "{what}"),
        "local-rate-limit" | "global-rate-limit" => {
            assert_eq!(statuses, [[200, 429, 429]], "{what}: {}", filter.name);
        }
        _ => assert_eq!(statuses, [[403]], "{what}: {}", filter.name),
    }
}

/// Each service is a separate component. In such a short window its CPU time may be below the kernel clock's
/// resolution.
fn check_services(what: &str, scenario: Scenario, trial: &Trial) {
    let components = &trial.observation.usage.components;
    let services = components.iter().filter(|component| component.role == Role::FilterService);
    let names: BTreeSet<&str> = services.clone().map(|component| component.name.as_str()).collect();
    let expected: &[&str] = match scenario {
        Scenario::ExtAuthzGrpc | Scenario::ExtAuthzHttp => &["ext-authz"],
        Scenario::Waf => &["waf"],
        Scenario::GlobalRateLimit => &["rate-limit", "rate-limit-store"],
        Scenario::AllFilters => &["ext-authz", "rate-limit", "rate-limit-store", "waf"],
        _ => &[],
    };
    assert_eq!(names, expected.iter().copied().collect(), "{what}");
    for service in services {
        assert!(service.memory_bytes() > Some(0), "{what}: {service:?}");
    }
}
