//! Traces of requests. Spans are those that the mesh's collector received.

use crate::cases::LogFolder;
use crate::kept::kept_configuration;
use crate::trial::{REQUESTS, Trial, bring_up, run, settings, spec, trial};
use experiment::MeshSettings;
use experiment::environment::DeploymentSpec;
use lab::environment::LocalLab;
use results::Mode;
use std::process::Command;
use std::sync::Arc;

fn traced(mode: Mode, fraction: f64) -> DeploymentSpec {
    let istio = MeshSettings { tracing_fraction: Some(fraction), ..settings() };
    DeploymentSpec { istio: Arc::new(istio), ..spec(mode) }
}

/// Per proxy: its name, the requests that it traced, and the resulting spans.
fn spans(trial: &Trial) -> Vec<(&str, u64, u64)> {
    let tracing = trial.observation.evidence.path.tracing.as_ref().expect("tracing was asked for");
    let of = tracing.proxies.iter();
    of.map(|proxy| (proxy.name.as_str(), proxy.requests_traced, proxy.spans_received)).collect()
}

pub fn every_request_has_its_spans(lab: &LocalLab) {
    let sidecars = trial(lab, &traced(Mode::Sidecar, 1.0), |_| ());
    sidecars.check_proven("sidecar", &["client-proxy", "server-proxy"]);
    let expected = [("client-proxy", REQUESTS, REQUESTS), ("server-proxy", REQUESTS, REQUESTS)];
    assert_eq!(spans(&sidecars), expected);
    let mut components = sidecars.observation.usage.components.iter();
    assert!(components.any(|component| component.name == "trace-collector"));

    // Istio's gateways send one span for the request that arrives and one for the request that they forward.
    let ingress = trial(lab, &traced(Mode::Ingress, 1.0), |_| ());
    ingress.check_proven("ingress", &["ingress-gateway", "server-proxy"]);
    let expected = [("ingress-gateway", REQUESTS, 2 * REQUESTS), ("server-proxy", REQUESTS, REQUESTS)];
    assert_eq!(spans(&ingress), expected);
}

pub fn a_share_of_requests_is_traced(lab: &LocalLab) {
    let quarter = trial(lab, &traced(Mode::Sidecar, 0.25), |_| ());
    quarter.check_proven("25 %", &["client-proxy", "server-proxy"]);
    let traced_by = spans(&quarter);
    let (_, drawn, received) = traced_by[0];
    // Six standard deviations of a binomial distribution on either side.
    assert!((48..=152).contains(&drawn), "{drawn} of {REQUESTS}");
    // Proxies further along the path trace the same requests.
    assert_eq!((received, traced_by[1]), (drawn, ("server-proxy", drawn, drawn)));

    let none = trial(lab, &traced(Mode::Sidecar, 0.0), |_| ());
    none.check_proven("0 %", &["client-proxy", "server-proxy"]);
    assert_eq!(spans(&none), [("client-proxy", 0, 0), ("server-proxy", 0, 0)]);

    // Without the setting proxies still sample requests, by Istio's default (1 %), but have no collector to
    // send spans to.
    let logs = LogFolder::create();
    let off = run(bring_up(lab, &spec(Mode::Sidecar), logs.path()), logs.path(), &[]);
    off.check_proven("off", &["client-proxy", "server-proxy"]);
    assert_eq!(off.observation.evidence.path.tracing, None);
    for name in ["client-proxy", "server-proxy"] {
        assert!(!kept_configuration(logs.path(), name).to_string().contains("/v1/traces"), "{name}");
    }
}

pub fn lost_spans_are_detected(lab: &LocalLab) {
    let trial = trial(lab, &traced(Mode::Sidecar, 1.0), |deployment| {
        let rule = ["-A", "OUTPUT", "-p", "tcp", "--dport", "4318", "-j", "REJECT"];
        let added = deployment.client_pod().run(move || Command::new("iptables").args(rule).status());
        assert!(added.expect("the pod is there").expect("iptables is installed").success());
    });
    assert_eq!(trial.answered(), REQUESTS);
    assert_eq!(spans(&trial), [("client-proxy", REQUESTS, 0), ("server-proxy", REQUESTS, REQUESTS)]);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    assert_eq!(path.reasons[0], "0 spans of client-proxy arrived, though it traced 400 requests");
}

/// Between two ztunnels, only the waypoint reads requests.
pub fn a_waypoint_sends_spans(lab: &LocalLab) {
    let trial = trial(lab, &traced(Mode::AmbientWaypoint, 1.0), |_| ());
    trial.check_path("waypoint");
    assert_eq!(spans(&trial), [("waypoint", REQUESTS, REQUESTS)]);
}
