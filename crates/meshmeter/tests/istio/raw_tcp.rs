//! Raw TCP within the mesh: proxies forward connections and cannot read requests.

use crate::ingress::ingress;
use crate::trial::{CONNECTIONS, REQUESTS, Trial, settings, spec, trial, trial_of_refusals, trial_with};
use experiment::environment::{DeploymentSpec, MutualTls, ProxySettings, TCP_REQUEST_BYTES};
use experiment::mesh_settings::{AuthorizationSettings, ExtraObjects, IngressApi, IngressTls};
use experiment::{MeshSettings, Protocol};
use lab::Pod;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use results::Mode;
use serde_json::json;
use std::process::Command;
use std::sync::Arc;

const SIDECARS: [&str; 2] = ["client-proxy", "server-proxy"];

pub fn raw_tcp(mode: Mode, mtls: MutualTls) -> DeploymentSpec {
    let proxy = ProxySettings { mtls, ..ProxySettings::default() };
    DeploymentSpec { proxy, ..spec(mode) }.with_protocol(Protocol::Tcp)
}

/// All connections passed the proxy with all their bytes, and the service received every request.
fn check_streams(what: &str, trial: &Trial, proxy: &str) {
    let streams = trial.proxy(proxy).streams.expect("it does not read requests");
    assert_eq!((streams.connections, streams.connections_expected), (CONNECTIONS, CONNECTIONS), "{what}");
    assert_eq!(streams.received_bytes, REQUESTS * TCP_REQUEST_BYTES, "{what}: {proxy}");
    assert_eq!(streams.sent_bytes, REQUESTS * 1024, "{what}: {proxy}");
    let service = trial.observation.evidence.path.service.as_ref().expect("the service counts");
    assert_eq!((service.requests_received, service.connections), (REQUESTS, CONNECTIONS), "{what}");
}

pub fn mode_none_routes_raw_tcp_to_the_service(lab: &LocalLab) {
    let trial = trial(lab, &raw_tcp(Mode::None, MutualTls::Strict), |_| ());
    assert_eq!(trial.answered(), REQUESTS);
    let path = &trial.observation.evidence.path;
    assert!(path.proven && path.proxies.is_empty() && path.service.is_none(), "{path:?}");
    assert_eq!(trial.components(), ["generator", "server"]);
}

pub fn sidecars_carry_raw_tcp(lab: &LocalLab) {
    for mtls in [MutualTls::Strict, MutualTls::Permissive, MutualTls::Off] {
        let what = mtls.name();
        let trial = trial(lab, &raw_tcp(Mode::Sidecar, mtls), |_| ());
        trial.check_proven(what, &SIDECARS);
        assert_eq!(trial.components(), ["generator", "client-proxy", "server-proxy", "server"]);
        for name in SIDECARS {
            check_streams(what, &trial, name);
            let proof = trial.proxy(name);
            assert_eq!(proof.tls_expected, mtls.is_spoken());
            // Each client connection is one connection between the proxies.
            assert_eq!(
                proof.tls_handshakes,
                if mtls.is_spoken() { CONNECTIONS } else { 0 },
                "{what}: {name}"
            );
        }
    }
}

/// The generator opens a connection for each request. Those open at its end carry none.
pub fn connection_per_request_is_a_handshake_per_request(lab: &LocalLab) {
    let spec = raw_tcp(Mode::Sidecar, MutualTls::Strict);
    let trial = trial_with(lab, &spec, &["--requests-per-connection=1"]);
    trial.check_proven("a connection per request", &SIDECARS);
    for name in SIDECARS {
        let (proof, opened) = (trial.proxy(name), REQUESTS..=REQUESTS + CONNECTIONS);
        let streams = proof.streams.expect("it does not read requests");
        assert!(opened.contains(&streams.connections), "{name}: {streams:?}");
        assert!(opened.contains(&proof.tls_handshakes), "{name}: {} handshakes", proof.tls_handshakes);
    }
}

/// Removes the redirection by hand, with proxies that also accept plaintext: every request gets a response,
/// but the path is not proven.
pub fn raw_tcp_bypassing_server_proxy_is_detected(lab: &LocalLab) {
    let trial = trial(lab, &raw_tcp(Mode::Sidecar, MutualTls::Off), |deployment| {
        iptables(deployment.server_pod(), &["-F"]);
    });
    assert_eq!(trial.answered(), REQUESTS);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    assert_eq!(path.reasons[0], "server-proxy carried 0 of 4 connections: traffic did not pass it");
    assert!(path.reasons[1].starts_with("rules of pod server were changed"), "{:?}", path.reasons);
}

pub fn raw_tcp_bypassing_client_proxy_is_rejected_or_detected(lab: &LocalLab) {
    for mtls in [MutualTls::Strict, MutualTls::Permissive] {
        let trial = |tamper: &dyn Fn(&LabDeployment<'_>)| {
            let spec = raw_tcp(Mode::Sidecar, mtls);
            if mtls == MutualTls::Strict {
                trial_of_refusals(lab, &spec, tamper)
            } else {
                trial(lab, &spec, tamper)
            }
        };
        let trial = trial(&|deployment| {
            let (client, server) = (deployment.client_pod(), deployment.server_pod());
            iptables(client, &["-F"]);
            let destination = format!("{}:8080", server.address());
            iptables(
                client,
                &[
                    "-A",
                    "OUTPUT",
                    "-p",
                    "tcp",
                    "-d",
                    "10.78.0.0/16",
                    "-j",
                    "DNAT",
                    "--to-destination",
                    &destination,
                ],
            );
        });
        let path = &trial.observation.evidence.path;
        assert!(!path.proven);
        let reasons = path.reasons.join("\n");
        let expected: &[&str] = if mtls == MutualTls::Strict {
            assert_eq!(trial.answered(), 0, "plaintext passed a proxy that requires mutual TLS");
            &[
                "client-proxy carried no connection: traffic did not pass it",
                "server-proxy carried no connection: traffic did not pass it",
                "server-proxy refused ",
                "though mutual TLS is claimed",
            ]
        } else {
            assert_eq!(trial.answered(), REQUESTS);
            &[
                "client-proxy carried 0 of 4 connections: traffic did not pass it",
                "server-proxy completed no TLS handshake with its peer, though mutual TLS is claimed",
            ]
        };
        for part in expected {
            assert!(reasons.contains(part), "{}: {part} is not in: {reasons}", mtls.name());
        }
    }
}

/// Changes the redirection rules of a pod.
pub fn iptables(pod: &Pod, change: &[&str]) {
    let change: Vec<String> = change.iter().map(|word| (*word).to_owned()).collect();
    let changed = pod.run(move || Command::new("iptables").args(["-t", "nat"]).args(change).status());
    assert!(changed.expect("the pod is there").expect("iptables is installed").success());
}

/// A policy that denies all connections of the client.
pub fn denial() -> ExtraObjects {
    let denial = json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "no-client"},
        "spec": {
            "selector": {"matchLabels": {"app": "server"}},
            "action": "DENY",
            "rules": [{"from": [{"source": {"principals": ["*/sa/client"]}}]}],
        },
    });
    ExtraObjects { text: denial.to_string(), objects: vec![denial] }
}

/// Rules that allow callers by identity are checked once per connection; a rule that denies the client ends
/// all its connections.
pub fn callers_of_raw_tcp_are_identified_by_certificate(lab: &LocalLab) {
    let authorization = AuthorizationSettings { identities: 3, ..AuthorizationSettings::default() };
    let with = |extra| {
        let istio = MeshSettings { authorization, extra, ..settings() };
        DeploymentSpec { istio: Arc::new(istio), ..raw_tcp(Mode::Sidecar, MutualTls::Strict) }
    };
    trial(lab, &with(None), |_| ()).check_proven("allowed", &SIDECARS);
    let refused = trial_of_refusals(lab, &with(Some(denial())), |_| ());
    assert_eq!(refused.answered(), 0);
    let reasons = refused.observation.evidence.path.reasons.join("\n");
    assert!(reasons.contains("server received 0 requests; its callers sent "), "{reasons}");
}

pub fn ingress_routes_raw_tcp(lab: &LocalLab) {
    for api in [IngressApi::Istio, IngressApi::Kubernetes] {
        for tls in [IngressTls::Off, IngressTls::Simple, IngressTls::Mutual] {
            let what = format!("{api:?} {tls:?}");
            let spec = ingress(tls, api).with_protocol(Protocol::Tcp);
            let trial = trial(lab, &spec, |_| ());
            trial.check_proven(&what, &["ingress-gateway", "server-proxy"]);
            assert_eq!(
                trial.components(),
                ["generator", "ingress-gateway", "server-proxy", "server"],
                "{what}"
            );
            for name in ["ingress-gateway", "server-proxy"] {
                check_streams(&what, &trial, name);
                assert_eq!(trial.proxy(name).tls_handshakes, CONNECTIONS, "{what}: {name}");
            }
            let counters = &trial.proxy("ingress-gateway").counters;
            let with_client = counters.get("listener.0.0.0.0_8443.ssl.handshake").copied().unwrap_or(0);
            assert_eq!(with_client, if tls == IngressTls::Off { 0 } else { CONNECTIONS }, "{what}");
        }
    }
}
