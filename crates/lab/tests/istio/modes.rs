//! Modes: what proves a path, and what must not count as proof.

pub use crate::specs::{settings, spec};
use crate::trial::{CONNECTIONS, REQUESTS, Trial, flush_rules, trial};
use experiment::environment::{DeploymentSpec, MutualTls, ProxySettings};
use lab::environment::LocalLab;
use lab::{Container, Lab, Pod};
use results::{Mode, Role};
use std::process::Command;

/// Checks that all expected components are there with their usage, and no others.
pub fn check_components(trial: &Trial, path: &[&str]) {
    let control_plane = ["etcd", "kube-apiserver", "istiod"];
    let expected = [path, &control_plane, &["meshmeter", "kernel"]].concat();
    let components = &trial.observation.usage.components;
    let names: Vec<&str> = components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, expected);
    for name in control_plane {
        let component = trial.component(name);
        assert_eq!(component.role, Role::ControlPlane);
        assert!(component.memory_resident_bytes > 10_000_000, "{component:?}");
    }
}

pub fn mode_none_uses_service_address(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &spec(Mode::None), |_| ());
    assert_eq!(trial.unanswered, 0);
    assert!(trial.observation.evidence.path.proven);
    assert_eq!(trial.observation.evidence.push, None);
    check_components(&trial, &["generator", "server"]);
}

pub fn sidecars_prove_mutual_tls(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &spec(Mode::Sidecar), |deployment| {
        for pod in [deployment.client_pod(), deployment.server_pod()] {
            check_rules_came_first(pod);
        }
    });
    assert_eq!(trial.unanswered, 0, "{}", trial.proxy_logs);
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{:?}", path.reasons);
    for proxy in &path.proxies {
        assert_eq!(proxy.requests_received, REQUESTS, "{}", proxy.name);
        assert!(proxy.tls_expected && (1..=CONNECTIONS).contains(&proxy.tls_handshakes), "{proxy:?}");
        // Agent and Envoy together.
        let usage = trial.component(&proxy.name);
        let names: Vec<&str> = usage.processes.iter().map(|process| process.name.as_str()).collect();
        assert_eq!(names, ["pilot-agent", "envoy"]);
        let sum: u64 = usage.processes.iter().map(|process| process.memory_resident_bytes).sum();
        assert_eq!(usage.memory_resident_bytes, sum);
        let rejected = "cluster_manager.cds.update_rejected";
        assert_eq!(proxy.counters.get(rejected), Some(&0), "{:?}", proxy.counters.keys());
    }
    let push = trial.observation.evidence.push.as_ref().expect("a control plane configured the proxies");
    let proxies: Vec<&String> = push.in_force_s.keys().collect();
    assert_eq!(proxies, ["client-proxy", "server-proxy"]);
    assert!(push.in_force_s.values().all(|seconds| *seconds > 0.0), "{push:?}");
    check_components(&trial, &["generator", "client-proxy", "server-proxy", "server"]);
}

/// If rules are installed after the proxy has connected to istiod, they take istiod's responses for new
/// connections. The proxy then receives nothing until the kernel gives up the connection, half a minute
/// later.
fn check_rules_came_first(pod: &Pod) {
    let started: Vec<&str> = pod.containers().iter().map(Container::name).collect();
    let place_of = |wanted: &dyn Fn(&str) -> bool| started.iter().position(|name| wanted(name));
    let (rules, proxy) = (place_of(&|name| name == "istio-init"), place_of(&|name| name.ends_with("-proxy")));
    assert!(rules.is_some() && rules < proxy, "{started:?}");
}

pub fn without_mutual_tls_there_are_no_handshakes(_lab: &Lab, local_lab: &LocalLab) {
    let proxy = ProxySettings { mtls: MutualTls::Off, ..ProxySettings::default() };
    let trial = trial(local_lab, &DeploymentSpec { proxy, ..spec(Mode::Sidecar) }, |_| ());
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{:?}", path.reasons);
    assert!(path.proxies.iter().all(|proxy| proxy.tls_handshakes == 0 && !proxy.tls_expected));
}

/// Redirect rules removed by hand, while the proxies accept plaintext too: everything is answered, and
/// nothing is proven.
pub fn traffic_bypassing_server_proxy_is_detected(_lab: &Lab, local_lab: &LocalLab) {
    let proxy = ProxySettings { mtls: MutualTls::Off, ..ProxySettings::default() };
    let trial = trial(local_lab, &DeploymentSpec { proxy, ..spec(Mode::Sidecar) }, |deployment| {
        flush_rules(deployment.server_pod());
    });
    assert_eq!(trial.unanswered, 0);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    let [unseen, changed] = path.reasons.as_slice() else { panic!("{:?}", path.reasons) };
    assert_eq!(unseen, "server-proxy saw 0 of 800 requests: traffic did not pass it");
    assert!(changed.starts_with("rules of pod server were changed in the trial: "), "{changed}");
}

/// A client that connects to the service's pod without its own proxy. Mutual TLS is strict, so it is refused.
pub fn traffic_bypassing_client_proxy_is_refused(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &spec(Mode::Sidecar), |deployment| {
        flush_rules(deployment.client_pod());
        lead_services_to(deployment.client_pod(), deployment.server_pod());
    });
    trial.check_plain_text_was_refused();
}

/// Installs rules for every Service, as kube-proxy would.
pub fn lead_services_to(client: &Pod, server: &Pod) {
    let destination = format!("{}:8080", server.address());
    let arguments = ["-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", "10.78.0.0/16", "-j", "DNAT"];
    let led = client.run(move || {
        Command::new("iptables").args(arguments).args(["--to-destination", &destination]).status()
    });
    assert!(led.expect("the pod is there").expect("iptables is installed").success());
}
