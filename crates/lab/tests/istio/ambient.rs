//! The ambient modes with a real ztunnel: what proves their path, what must not count as proof, and what
//! remains.

use crate::cases::LogFolder;
use crate::death::{check_named, container, end};
use crate::deaths::bring_up_mode;
use crate::modes::{check_components, lead_services_to, settings, spec};
use crate::remains::folders;
use crate::trial::{CONNECTIONS, REQUESTS, Trial, flush_rules, trial};
use components::{Component, Overrides};
use experiment::environment::deploy::Environment as _;
use experiment::environment::{ComponentsSettings, DeploymentSpec, MutualTls, ProxySettings, error_chain};
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::topology::Call;
use experiment::{MeshKind, MeshSettings};
use lab::Lab;
use lab::environment::{LocalLab, Programs};
use mesh::kubernetes::object_ref::ObjectRef;
use results::Mode;
use rustix::process::Signal;
use std::sync::Arc;

fn ambient(mode: Mode, ztunnel: ZtunnelPlacement) -> DeploymentSpec {
    DeploymentSpec { istio: Arc::new(MeshSettings { ztunnel, ..settings() }), ..spec(mode) }
}

/// ztunnels forward plaintext only if they may.
fn permissive(mode: Mode) -> DeploymentSpec {
    let proxy = ProxySettings { mtls: MutualTls::Permissive, ..ProxySettings::default() };
    DeploymentSpec { proxy, ..spec(mode) }
}

/// Each proxy of the path saw every request, over mutual TLS.
fn check_path(trial: &Trial, proxies: &[&str]) {
    assert_eq!(trial.unanswered, 0, "{}", trial.proxy_logs);
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{:?}: {:?}", path.reasons, path.proxies);
    let names: Vec<&str> = path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    assert_eq!(names, proxies);
    for proxy in &path.proxies {
        assert_eq!(proxy.requests_received, REQUESTS, "{proxy:?}");
        assert!(proxy.tls_expected && (1..=CONNECTIONS).contains(&proxy.tls_handshakes), "{proxy:?}");
    }
}

fn in_force_at(trial: &Trial) -> Vec<&str> {
    let push = trial.observation.evidence.push.as_ref().expect("a control plane configured the proxies");
    assert!(push.in_force_s.values().all(|seconds| *seconds > 0.0), "{push:?}");
    push.in_force_s.keys().map(String::as_str).collect()
}

pub fn a_shared_ztunnel_proves_mutual_tls_on_both_sides(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &ambient(Mode::Ambient, ZtunnelPlacement::Shared), |_| ());
    check_path(&trial, &["ztunnel", "ztunnel"]);
    check_components(&trial, &["generator", "ztunnel", "server"]);
    assert_eq!(in_force_at(&trial), ["ztunnel"]);
}

pub fn dedicated_ztunnels_prove_mutual_tls(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &ambient(Mode::Ambient, ZtunnelPlacement::PerPod), |_| ());
    check_path(&trial, &["client-ztunnel", "server-ztunnel"]);
    check_components(&trial, &["generator", "client-ztunnel", "server-ztunnel", "server"]);
    assert_eq!(in_force_at(&trial), ["client-ztunnel", "server-ztunnel"]);
}

pub fn waypoint_reads_requests_between_ztunnels(_lab: &Lab, local_lab: &LocalLab) {
    for (placement, first, last) in [
        (ZtunnelPlacement::Shared, "ztunnel", "ztunnel"),
        (ZtunnelPlacement::PerPod, "client-ztunnel", "server-ztunnel"),
    ] {
        let trial = trial(local_lab, &ambient(Mode::AmbientWaypoint, placement), |_| ());
        check_path(&trial, &[first, "waypoint", last]);
        let waypoint = &trial.observation.evidence.path.proxies[1].counters;
        assert_eq!(waypoint.get("listener_manager.lds.update_rejected"), Some(&0), "{waypoint:?}");
        let onwards = waypoint["cluster.connect_originate.ssl.handshake"];
        assert!((1..=CONNECTIONS).contains(&onwards), "{waypoint:?}");
        let own: &[&str] = if first == last { &[] } else { &[last] };
        check_components(&trial, &[&["generator", first, "waypoint"], own, &["server"]].concat());
    }
}

/// Redirect rules removed by hand, while ztunnel accepts plaintext too: everything is answered, and nothing
/// is proven.
pub fn traffic_bypassing_client_ztunnel_is_detected(_lab: &Lab, local_lab: &LocalLab) {
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        let trial = trial(local_lab, &permissive(mode), |deployment| {
            flush_rules(deployment.client_pod());
            lead_services_to(deployment.client_pod(), deployment.server_pod());
        });
        assert_eq!(trial.unanswered, 0, "{mode}");
        let path = &trial.observation.evidence.path;
        assert!(!path.proven, "{mode}");
        let reasons = path.reasons.join("\n");
        for part in [
            "ztunnel at the client saw 0 of 800 requests: traffic did not pass it",
            "ztunnel at the server passed connections in plaintext, though mutual TLS is claimed",
        ] {
            assert!(reasons.contains(part), "{mode}: {part} is not in: {reasons}");
        }
    }
}

/// The only ztunnel on the path sees the bytes of every request, and no TLS.
pub fn calls_across_the_border_pass_one_ztunnel_in_plaintext(_lab: &Lab, local_lab: &LocalLab) {
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        for of in [|call: Call| call.from, |call: Call| call.to] {
            let mut spec = permissive(mode);
            let outside = of(spec.topology.calls[0]);
            Arc::make_mut(&mut spec.topology).workloads[outside].in_mesh = false;
            let trial = trial(local_lab, &spec, |_| ());
            assert_eq!(trial.unanswered, 0, "{mode}: {}", trial.proxy_logs);
            let path = &trial.observation.evidence.path;
            assert!(path.proven, "{mode}: {:?}: {:?}", path.reasons, path.proxies);
            let [ztunnel] = &path.proxies[..] else { panic!("{mode}: {:?}", path.proxies) };
            assert_eq!((ztunnel.name.as_str(), ztunnel.requests_received), ("ztunnel", REQUESTS), "{mode}");
            assert!(!ztunnel.tls_expected && ztunnel.tls_handshakes == 0, "{mode}: {ztunnel:?}");
        }
    }
}

pub fn traffic_bypassing_both_sides_is_detected(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &permissive(Mode::Ambient), |deployment| {
        flush_rules(deployment.client_pod());
        flush_rules(deployment.server_pod());
        lead_services_to(deployment.client_pod(), deployment.server_pod());
    });
    assert_eq!(trial.unanswered, 0);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven && path.proxies.iter().all(|proxy| proxy.requests_received == 0), "{path:?}");
}

pub fn ambient_trial_leaves_nothing_behind(lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let deployment = bring_up_mode(local_lab, Mode::AmbientWaypoint, logs.path());
    assert_eq!(folders(lab).len(), 3, "the namespace, ztunnel and the waypoint");
    let control_plane = local_lab.running_control_plane().expect("it configured the proxies");
    let ztunnel = ObjectRef::new("v1", "Pod", Some("istio-system"), "ztunnel");
    assert!(control_plane.api().get(&ztunnel).expect("the API answers").is_some());
    drop(deployment);
    assert_eq!(control_plane.api().get(&ztunnel).expect("the API answers"), None);
    assert!(folders(lab).is_empty(), "{:?}", folders(lab));
    assert_eq!(lab.status().expect("the lab is up").pods.len(), 1, "the control plane's pod alone");
}

pub fn dead_ztunnel_is_reported_with_log(_lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let deployment = bring_up_mode(local_lab, Mode::Ambient, logs.path());
    end(container(deployment.pods(), "ztunnel"), Signal::KILL);
    check_named(deployment, "ztunnel", "marking server ready");
    let next = trial(local_lab, &spec(Mode::Ambient), |_| ());
    assert!(next.observation.evidence.path.proven, "{:?}", next.observation.evidence.path.reasons);
}

pub fn ambient_modes_without_ztunnel_report_it(lab: &Lab, _local_lab: &LocalLab) {
    let meshmeter = std::env::current_exe().expect("a running program has a path");
    let overrides = Overrides::from_iter([(Component::Ztunnel, "/nowhere/ztunnel".into())]);
    let local_lab = LocalLab::new(lab.clone(), Programs { meshmeter, overrides }).expect("the lab is up");
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        let error = local_lab
            .check_mode(MeshKind::Istio, mode, &ComponentsSettings::default())
            .expect_err("there is no ztunnel");
        let text = error_chain(&error);
        assert_eq!(text, format!("run mode {mode}: use ztunnel at /nowhere/ztunnel: there is no such file"),);
        assert!(error.hint.is_some_and(|hint| hint.contains("MESHMETER_ZTUNNEL")));
    }
}
