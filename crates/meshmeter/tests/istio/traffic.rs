//! Retries, timeouts and protocols on the path. Compared with the generator's statuses, the proxies' counters
//! and the service's own.

use crate::counted::{counted, requests};
use crate::trial::{REQUESTS, Trial, has_all, settings, spec};
use experiment::environment::{DeploymentSpec, ServerSettings};
use experiment::mesh_settings::{IngressApi, IngressSettings};
use experiment::topology::pair;
use experiment::{MeshSettings, Protocol};
use lab::environment::LocalLab;
use results::{HopProof, Mode};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The proxy that routes requests.
fn routing_proxy(mode: Mode) -> &'static str {
    match mode {
        Mode::Ingress => "ingress-gateway",
        Mode::AmbientWaypoint => "waypoint",
        _ => "client-proxy",
    }
}

/// Sum of the deltas of a proxy's counters with this prefix and suffix.
fn delta(trial: &Trial, proxy: &str, prefix: &str, suffix: &str) -> u64 {
    let counters = &trial.proxy(proxy).counters;
    let of = |name: &str| name.starts_with(prefix) && name.ends_with(suffix);
    assert!(
        counters.keys().any(|name| of(name)),
        "{proxy} counts no {prefix}*{suffix}: {:?}",
        counters.keys()
    );
    counters.iter().filter(|(name, _)| of(name)).map(|(_, rose)| rose).sum()
}

/// A fifth of all attempts fails.
fn failing(mode: Mode, retries: Option<usize>) -> DeploymentSpec {
    let server = ServerSettings { error_fraction: 0.2, ..ServerSettings::default() };
    let istio = MeshSettings { retries, ..settings() };
    let topology = Arc::new(pair(1, 1, Protocol::default(), &server, false, None));
    DeploymentSpec { topology, istio: Arc::new(istio), ..spec(mode) }
}

/// Eleven attempts fail together once in fifty million requests.
const RETRIES: usize = 10;

/// Requests, a fifth of which fail, are retried until none does. The path proof explains why the server saw
/// more requests than the client sent.
fn check_retried(lab: &LocalLab, what: &str, spec: &DeploymentSpec, protocol: &str) {
    let (trial, service) = counted(lab, spec, "");
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{what}: {:?}", path.reasons);
    assert_eq!(trial.errors(), 0, "{what}");
    assert_eq!(trial.completed(), REQUESTS, "{what}");
    let retried = delta(&trial, routing_proxy(spec.mode), "cluster.", ".upstream_rq_retry");
    // A quarter more on average; six standard deviations of the negative binomial distribution on either
    // side.
    assert!((33..=167).contains(&retried), "{what}: {retried}");
    assert_eq!(requests(&service, protocol), REQUESTS + retried, "{what}");
    assert_eq!(service["errors"], retried, "{what}");
    if let Some(server_proxy) = path.proxies.iter().find(|proxy| proxy.name == "server-proxy") {
        assert_eq!(server_proxy.requests_received, REQUESTS + retried, "{what}");
    }
}

pub fn failed_requests_are_retried(lab: &LocalLab) {
    check_retried(lab, "sidecar", &failing(Mode::Sidecar, Some(RETRIES)), "http/1.1");
    let grpc = failing(Mode::Sidecar, Some(RETRIES)).with_protocol(Protocol::Grpc);
    check_retried(lab, "gRPC", &grpc, "grpc");
    // Over HTTP/1.1, routes of Istio's own API are those of the sidecar above.
    for (api, protocol, name) in [
        (IngressApi::Istio, Protocol::Grpc, "grpc"),
        (IngressApi::Kubernetes, Protocol::Http1, "http/1.1"),
        (IngressApi::Kubernetes, Protocol::Grpc, "grpc"),
    ] {
        let ingress = IngressSettings { api, ..IngressSettings::default() };
        let istio = MeshSettings { retries: Some(RETRIES), ingress, ..settings() };
        let spec = DeploymentSpec { istio: Arc::new(istio), ..failing(Mode::Ingress, None) };
        check_retried(lab, &format!("ingress, {api:?}, {protocol}"), &spec.with_protocol(protocol), name);
    }
}

pub fn waypoint_retries_failed_requests(lab: &LocalLab) {
    check_retried(lab, "waypoint", &failing(Mode::AmbientWaypoint, Some(RETRIES)), "http/1.1");
}

/// Without retries the errors reach the client. They also do if the experiment sets nothing, since Istio's
/// default retry policy does not cover them.
pub fn failed_requests_are_not_retried_by_default(lab: &LocalLab) {
    for retries in [Some(0), None] {
        let (trial, service) = counted(lab, &failing(Mode::Sidecar, retries), "");
        let path = &trial.observation.evidence.path;
        assert!(path.proven, "{retries:?}: {:?}", path.reasons);
        let errors = trial.responses("500");
        // Six standard deviations of a binomial distribution on either side.
        assert!((32..=128).contains(&errors), "{retries:?}: {errors}");
        assert_eq!((trial.answered(), requests(&service, "http/1.1")), (REQUESTS - errors, REQUESTS));
        assert_eq!(delta(&trial, "client-proxy", "cluster.", ".upstream_rq_retry"), 0, "{retries:?}");
    }
}

/// Timeout of routes.
const TIMEOUT: Duration = Duration::from_millis(10);
/// Query that makes responses exceed the timeout.
const TOO_LATE: &str = "?delay=80ms";

fn impatient(mode: Mode, ingress: IngressSettings) -> DeploymentSpec {
    let istio = MeshSettings { timeout: Some(TIMEOUT), ingress, ..settings() };
    DeploymentSpec { istio: Arc::new(istio), ..spec(mode) }
}

fn check_given_up(lab: &LocalLab, what: &str, spec: &DeploymentSpec) {
    let (trial, service) = counted(lab, spec, TOO_LATE);
    // A busy machine wakes the proxy late, sometimes so late that the response has arrived.
    let late = trial.responses("504");
    assert_eq!(late + trial.answered(), REQUESTS, "{what}: {:?}", trial.observation.evidence.path);
    assert!(late > REQUESTS / 2, "{what}: {late}");
    // Istio also sets the timeout for the whole stream, and whichever expires first ends the request.
    let proxy = routing_proxy(spec.mode);
    let given_up = delta(&trial, proxy, "cluster.", ".upstream_rq_timeout")
        + delta(&trial, proxy, "http.", ".downstream_rq_max_duration_reached");
    assert_eq!(given_up, late, "{what}: {:?}", trial.proxy(proxy).counters);
    // A request that timed out on a connection that was still being opened did not get further; the path
    // proof accounts for that.
    assert!((1..=REQUESTS).contains(&requests(&service, "http/1.1")), "{what}: {service}");
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{what}: {:?}", path.reasons);
}

pub fn route_times_out(lab: &LocalLab) {
    check_given_up(lab, "sidecar", &impatient(Mode::Sidecar, IngressSettings::default()));
    for api in [IngressApi::Istio, IngressApi::Kubernetes] {
        let ingress = IngressSettings { api, ..IngressSettings::default() };
        check_given_up(lab, &format!("ingress, {api:?}"), &impatient(Mode::Ingress, ingress));
    }
    // It was the route that timed out, not the service.
    let (patient, _) = counted(lab, &spec(Mode::Sidecar), TOO_LATE);
    assert_eq!((patient.answered(), patient.responses("504")), (REQUESTS, 0));
    assert_eq!(delta(&patient, "client-proxy", "cluster.", ".upstream_rq_timeout"), 0);
}

pub fn waypoint_route_times_out(lab: &LocalLab) {
    check_given_up(lab, "waypoint", &impatient(Mode::AmbientWaypoint, IngressSettings::default()));
}

/// Every hop carries the protocol of the client: no proxy converts the HTTP version.
fn check_spoken(lab: &LocalLab, mode: Mode) {
    for (protocol, name) in
        [(Protocol::Http1, "http/1.1"), (Protocol::Http2, "http/2"), (Protocol::Grpc, "grpc")]
    {
        let what = format!("{mode}, {protocol}");
        let spec = spec(mode).with_protocol(protocol);
        let (trial, service) = counted(lab, &spec, "");
        let path = &trial.observation.evidence.path;
        assert!(path.proven, "{what}: {:?}", path.reasons);
        assert_eq!((trial.completed(), trial.errors()), (REQUESTS, 0), "{what}");
        assert_eq!(requests(&service, name), REQUESTS, "{what}: {service}");
        assert_eq!(service["requests"], REQUESTS, "{what}: {service}");
        check_hops(&what, &path.hops, protocol);
    }
}

/// Every hop that reads requests has the protocol. ztunnels read none, and use HBONE between each other and
/// to a waypoint.
fn check_hops(what: &str, hops: &[HopProof], protocol: Protocol) {
    assert!(hops.len() > 2, "{what}: {hops:?}");
    let read = match protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
        Protocol::Grpc => "gRPC",
        Protocol::Tcp => "opaque TCP",
    };
    for hop in hops {
        let are = |names: &[&str]| names.contains(&hop.from.as_str()) && names.contains(&hop.to.as_str());
        let expected = if are(&["ztunnel", "waypoint"]) {
            let inside = if are(&["ztunnel"]) { "opaque TCP" } else { read };
            format!("{inside} inside HBONE")
        } else if are(&["client", "ztunnel", "server"]) {
            "opaque TCP".to_owned()
        } else {
            read.to_owned()
        };
        assert_eq!(hop.describe(), expected, "{what}: {hop:?}");
    }
}

/// Additional objects of an experiment can make proxies use another HTTP version between each other: every
/// request gets a response, and the trial notes it.
pub fn other_http_version_between_proxies_is_detected(lab: &LocalLab) {
    let upgrade = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": {"name": "of-the-test"},
        "spec": {
            "host": "server",
            "trafficPolicy": {"connectionPool": {"http": {"h2UpgradePolicy": "UPGRADE"}}},
        },
    });
    let istio = MeshSettings { extra: Some(has_all(&[upgrade])), ..settings() };
    let (trial, _) = counted(lab, &DeploymentSpec { istio: Arc::new(istio), ..spec(Mode::Sidecar) }, "");
    assert_eq!(trial.answered(), REQUESTS);
    let path = &trial.observation.evidence.path;
    let spoken: Vec<String> = path.hops.iter().map(HopProof::describe).collect();
    assert_eq!((spoken[0].as_str(), spoken[1].as_str()), ("HTTP/1.1", "HTTP/2"), "{:?}", path.hops);
    let why = "client-proxy and server-proxy spoke HTTP/2 with each other, though the experiment requires HTTP/1.1 on this hop";
    assert!(path.reasons.iter().any(|reason| reason == why), "{:?}", path.reasons);
}

pub fn every_hop_speaks_the_protocol(lab: &LocalLab) {
    for mode in [Mode::Sidecar, Mode::Ingress] {
        check_spoken(lab, mode);
    }
}

pub fn a_waypoint_speaks_the_protocol(lab: &LocalLab) {
    check_spoken(lab, Mode::AmbientWaypoint);
}

/// Only between proxies: client and service still use their own version.
pub fn proxies_use_http2_between_each_other_if_configured(lab: &LocalLab) {
    for mode in [Mode::Sidecar, Mode::Ingress] {
        let istio = MeshSettings { http2_upgrade: true, ..settings() };
        let (trial, service) = counted(lab, &DeploymentSpec { istio: Arc::new(istio), ..spec(mode) }, "");
        trial.check_path(mode.name());
        let hops = &trial.observation.evidence.path.hops;
        let spoken: Vec<String> = hops.iter().map(HopProof::describe).collect();
        assert_eq!(spoken, ["HTTP/1.1", "HTTP/2", "HTTP/1.1"], "{mode}");
        assert_eq!(requests(&service, "http/1.1"), REQUESTS, "{mode}: {service}");
    }
}
