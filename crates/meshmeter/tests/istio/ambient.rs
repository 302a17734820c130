//! Ambient modes with every protocol: ztunnels forward what they do not read, and a waypoint only reads HTTP.

use crate::raw_tcp::{denial, iptables, raw_tcp};
use crate::trial::{CONNECTIONS, REQUESTS, Trial, settings, spec, trial, trial_of_refusals};
use experiment::environment::{DeploymentSpec, MutualTls, TCP_REQUEST_BYTES};
use experiment::mesh_settings::{AuthorizationSettings, ZtunnelPlacement};
use experiment::{MeshSettings, Protocol};
use lab::environment::LocalLab;
use results::Mode;
use std::sync::Arc;

const PROTOCOLS: [Protocol; 3] = [Protocol::Http2, Protocol::Grpc, Protocol::Tcp];

const PLACEMENTS: [(ZtunnelPlacement, &[&str], [&str; 2]); 2] = [
    (ZtunnelPlacement::Shared, &["ztunnel"], ["ztunnel", "ztunnel"]),
    (ZtunnelPlacement::PerPod, &["client-ztunnel", "server-ztunnel"], ["client-ztunnel", "server-ztunnel"]),
];

fn ambient(mode: Mode, protocol: Protocol, istio: MeshSettings) -> DeploymentSpec {
    DeploymentSpec { istio: Arc::new(istio), ..spec(mode) }.with_protocol(protocol)
}

fn placed(ztunnel: ZtunnelPlacement) -> MeshSettings {
    MeshSettings { ztunnel, ..settings() }
}

fn check_answered(what: &str, trial: &Trial) {
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{what}: {:?}", path.reasons);
    assert_eq!(trial.answered(), REQUESTS, "{what}");
}

/// Each ztunnel had all requests over mutual TLS, from the client's side to the server's, and accepts nothing else.
fn check_ztunnels(what: &str, trial: &Trial, protocol: Protocol, changed_on_the_way: bool) {
    let ztunnels: Vec<_> = trial
        .observation
        .evidence
        .path
        .proxies
        .iter()
        .filter(|proxy| proxy.name.contains("ztunnel"))
        .collect();
    assert_eq!(ztunnels.len(), 2);
    for (index, ztunnel) in ztunnels.into_iter().enumerate() {
        assert!(
            ztunnel.tls_expected && (1..=CONNECTIONS).contains(&ztunnel.tls_handshakes),
            "{what}: {ztunnel:?}"
        );
        assert_eq!(ztunnel.takes_plain_text, Some(false), "{what}");
        // An HTTP/2 connection carries more than requests.
        let most = if protocol == Protocol::Tcp { REQUESTS } else { REQUESTS + 16 * CONNECTIONS };
        assert!((REQUESTS..=most).contains(&ztunnel.requests_received), "{what}: {ztunnel:?}");
        let side = ["source.client>", "destination."][index];
        let bytes: u64 = ztunnel
            .counters
            .iter()
            .filter(|(name, _)| name.starts_with(side) && name.ends_with(".request_bytes"))
            .map(|(_, bytes)| *bytes)
            .sum();
        if protocol == Protocol::Tcp && !(changed_on_the_way && index == 1) {
            assert_eq!(bytes, REQUESTS * TCP_REQUEST_BYTES, "{what}");
        }
    }
}

pub fn ztunnels_carry_every_protocol(lab: &LocalLab) {
    for (placement, configured, names) in PLACEMENTS {
        for protocol in PROTOCOLS {
            let what = format!("{placement:?} {protocol}");
            let trial = trial(lab, &ambient(Mode::Ambient, protocol, placed(placement)), |_| ());
            check_answered(&what, &trial);
            let proxies: Vec<&str> =
                trial.observation.evidence.path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
            assert_eq!(proxies, names, "{what}");
            assert_eq!(trial.components(), [&["generator"], configured, &["server"]].concat(), "{what}");
            check_ztunnels(&what, &trial, protocol, false);
        }
    }
}

pub fn waypoints_accept_every_protocol(lab: &LocalLab) {
    for (placement, _, [first, last]) in PLACEMENTS {
        for protocol in PROTOCOLS {
            let what = format!("{placement:?} {protocol}");
            let trial = trial(lab, &ambient(Mode::AmbientWaypoint, protocol, placed(placement)), |_| ());
            check_answered(&what, &trial);
            let path = &trial.observation.evidence.path;
            let proxies: Vec<&str> = path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
            assert_eq!(proxies, [first, "waypoint", last], "{what}");
            let waypoint = trial.proxy("waypoint");
            assert!(waypoint.tls_expected && waypoint.tls_handshakes > 0, "{what}: {waypoint:?}");
            if protocol == Protocol::Tcp {
                let streams = waypoint.streams.expect("it does not read raw TCP");
                assert_eq!((streams.connections, streams.connections_expected), (CONNECTIONS, CONNECTIONS));
                assert_eq!(streams.received_bytes, REQUESTS * TCP_REQUEST_BYTES, "{what}");
                assert_eq!(streams.sent_bytes, REQUESTS * 1024, "{what}");
            } else {
                assert_eq!(waypoint.requests_received, REQUESTS, "{what}");
            }
            check_ztunnels(&what, &trial, protocol, protocol != Protocol::Tcp);
        }
    }
}

/// Removes the redirection by hand, with a ztunnel that also accepts plaintext: every request gets a
/// response, but the path is not proven.
pub fn raw_tcp_bypassing_client_ztunnel_is_detected(lab: &LocalLab) {
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        let trial = trial(lab, &raw_tcp(mode, MutualTls::Permissive), |deployment| {
            let (client, server) = (deployment.client_pod(), deployment.server_pod());
            iptables(client, &["-F"]);
            let destination = format!("{}:8080", server.address());
            let rule = ["-A", "OUTPUT", "-p", "tcp", "-d", "10.78.0.0/16", "-j", "DNAT", "--to-destination"];
            iptables(client, &[rule.as_slice(), &[&destination]].concat());
        });
        assert_eq!(trial.answered(), REQUESTS, "{mode}");
        let path = &trial.observation.evidence.path;
        assert!(!path.proven, "{mode}");
        let reasons = path.reasons.join("\n");
        for part in [
            "ztunnel at the client saw 0 of 400 requests: traffic did not pass it",
            "ztunnel at the server passed connections in plaintext, though mutual TLS is claimed",
        ] {
            assert!(reasons.contains(part), "{mode}: {part} is not in: {reasons}");
        }
    }
}

/// ztunnels know callers by their certificates: rules are checked per connection, whatever it carries.
pub fn ztunnels_know_callers_of_raw_tcp(lab: &LocalLab) {
    let authorization = AuthorizationSettings { identities: 3, ..AuthorizationSettings::default() };
    let with = |extra| MeshSettings { authorization, extra, ..settings() };
    let allowed = trial(lab, &ambient(Mode::Ambient, Protocol::Tcp, with(None)), |_| ());
    check_answered("allowed", &allowed);
    let refused =
        trial_of_refusals(lab, &ambient(Mode::Ambient, Protocol::Tcp, with(Some(denial()))), |_| ());
    assert_eq!(refused.answered(), 0);
    assert!(!refused.observation.evidence.path.proven);
    let through = trial(lab, &ambient(Mode::AmbientWaypoint, Protocol::Tcp, with(None)), |_| ());
    check_answered("allowed by the waypoint", &through);
}
