//! Egress paths.

use crate::cases::LogFolder;
use crate::death::{check_named, container, end};
use crate::trial::{CONNECTIONS, REQUESTS, TEST_TIMEOUT, bring_up, run, spec, trial};
use experiment::Protocol;
use experiment::environment::ComponentsSettings;
use experiment::environment::deploy::Environment as _;
use lab::Pod;
use lab::environment::LocalLab;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::ADMIN_PORT;
use results::{Mode, Role};
use rustix::process::Signal;

pub fn bypassed_sidecar_carries_nothing(lab: &LocalLab) {
    let direct = trial(lab, &spec(Mode::EgressBypass), |_| ());
    direct.check_proven("egress-bypass", &["client-proxy"]);
    assert_eq!(direct.components(), ["generator", "client-proxy", "server"]);
    let service = direct.observation.evidence.path.service.as_ref().expect("the service counts");
    assert_eq!((service.requests_received, service.connections), (REQUESTS, CONNECTIONS));
    // Traffic that does not pass the sidecar is the generator's own.
    let shows_network = |name: &str| {
        let found = direct.observation.usage.components.iter().find(|component| component.name == name);
        found.is_some_and(|component| component.network.is_some())
    };
    assert!(shows_network("generator") && !shows_network("client-proxy"));

    // Removes the rule that excludes the service's address: the sidecar then receives the traffic, and
    // reports it.
    let taken = trial(lab, &spec(Mode::EgressBypass), |deployment| {
        let address = format!("{}/32", deployment.server_pod().address());
        let removed = deployment.client_pod().run(move || {
            let rule = ["-t", "nat", "-D", "ISTIO_OUTPUT", "-d", &address, "-j", "RETURN"];
            std::process::Command::new("iptables").args(rule).status()
        });
        assert!(removed.expect("the pod is there").expect("iptables is installed").success());
    });
    let path = &taken.observation.evidence.path;
    assert!(!path.proven);
    let [carried, changed] = path.reasons.as_slice() else { panic!("{:?}", path.reasons) };
    assert_eq!(carried, "client-proxy carried 4 connections, though the path leads past it");
    assert!(changed.starts_with("rules of pod client were changed in the trial: "), "{changed}");
}

pub fn every_egress_path_is_proven(lab: &LocalLab) {
    for (mode, proxies, mutual_tls) in [
        (Mode::EgressSidecar, vec!["client-proxy"], false),
        (Mode::EgressGateway, vec!["client-proxy", "egress-gateway"], false),
        (Mode::EgressGatewayMtls, vec!["client-proxy", "egress-gateway"], true),
        (Mode::EgressSni, vec!["client-proxy", "egress-gateway", "sni-proxy"], true),
    ] {
        lab.check_mode(experiment::MeshKind::Istio, mode, &ComponentsSettings::default())
            .expect("all that it needs is installed");
        let trial = trial(lab, &spec(mode), |_| ());
        let envoys: Vec<&str> = proxies.iter().copied().filter(|name| *name != "sni-proxy").collect();
        trial.check_proven(mode.name(), &envoys);
        assert_eq!(trial.components(), [&["generator"], proxies.as_slice(), &["server"]].concat(), "{mode}");
        for name in &proxies {
            let proof = trial.proxy(name);
            let streams = proof.streams.expect("it does not read requests");
            assert_eq!(
                (streams.connections, streams.connections_expected),
                (CONNECTIONS, CONNECTIONS),
                "{mode}"
            );
            assert!(streams.sent_bytes > REQUESTS * 1024, "{mode}: {streams:?}");
            assert_eq!(proof.tls_expected, mutual_tls && *name != "sni-proxy", "{mode}: {name}");
            assert_eq!(proof.tls_handshakes > 0, proof.tls_expected, "{mode}: {name}");
            let component =
                trial.observation.usage.components.iter().find(|component| component.name == *name);
            assert_eq!(component.map(|component| component.role), Some(Role::Proxy));
        }
    }
}

pub fn every_protocol_passes_egress(lab: &LocalLab) {
    for protocol in [Protocol::Http2, Protocol::Grpc, Protocol::Tcp] {
        let spec = spec(Mode::EgressGatewayMtls).with_protocol(protocol);
        let trial = trial(lab, &spec, |_| ());
        trial.check_proven(protocol.name(), &["client-proxy", "egress-gateway"]);
    }
}

/// Without the VirtualService the sidecar sends connections directly to the service: every request gets a
/// response, but the path is not proven.
pub fn gateway_without_its_rule_is_not_on_the_path(lab: &LocalLab) {
    let trial = trial(lab, &spec(Mode::EgressGateway), |deployment| {
        let control_plane = lab.running_control_plane().expect("it configured the proxies");
        let namespace = namespace_of(deployment.client_pod());
        let rule = ObjectRef::new("networking.istio.io/v1", "VirtualService", Some(&namespace), "external");
        control_plane.api().delete(&[rule], &|_| ()).expect("there is such a rule");
        let to_gateway =
            format!("\"cluster\": \"outbound|8443|external|egress.{namespace}.svc.cluster.local\"");
        lab::wait_for("the sidecar knows of no gateway", TEST_TIMEOUT, || {
            Ok((!ask(deployment.client_pod(), "/config_dump?resource=dynamic_listeners")
                .contains(&to_gateway))
            .then_some(()))
        })
        .expect("the deletion comes into force");
    });
    assert_eq!(trial.answered(), REQUESTS);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    assert_eq!(
        path.reasons,
        [
            "client-proxy carried 0 of 4 connections: traffic did not pass it",
            "egress-gateway carried 0 of 4 connections: traffic did not pass it",
        ]
    );
}

/// Namespace of the trial, from the node name of the pod's Envoy: `sidecar~address~pod.namespace~…`.
fn namespace_of(pod: &Pod) -> String {
    let information = ask(pod, "/server_info");
    let name = information.split("sidecar~").nth(1).and_then(|name| name.split('~').nth(1));
    let (_, namespace) = name.and_then(|name| name.split_once('.')).expect("Envoy's name has its namespace");
    namespace.to_owned()
}

/// Queries the admin interface of a pod's Envoy.
fn ask(pod: &Pod, path: &str) -> String {
    let answer = pod.admin("client-proxy", ADMIN_PORT).ask(path).expect("Envoy answers");
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn sni_outside_the_table_is_not_routed(lab: &LocalLab) {
    let logs = LogFolder::create();
    let deployment = bring_up(lab, &spec(Mode::EgressSni), logs.path());
    let mut client_arguments = deployment.client_arguments();
    client_arguments.push("--sni=other.external.example".to_owned());
    let trial = run(deployment, logs.path(), &client_arguments);
    assert_eq!(trial.answered(), 0);
    assert!(!trial.observation.evidence.path.proven);
    let reasons = trial.observation.evidence.path.reasons.join("\n");
    assert!(reasons.contains("sni-proxy ended connections that it could lead nowhere"), "{reasons}");
}

pub fn egress_component_that_dies_is_named_with_its_log(lab: &LocalLab) {
    for (name, word) in [("sni-proxy", ""), ("egress-gateway", "Envoy proxy is ready")] {
        let logs = LogFolder::create();
        let deployment = bring_up(lab, &spec(Mode::EgressSni), logs.path());
        end(container(deployment.pods(), name), Signal::KILL);
        assert!(!check_named(deployment, name, word).evidence.path.proven);
    }
}
