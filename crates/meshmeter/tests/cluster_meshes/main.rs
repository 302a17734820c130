//! Meshes on a real one-node cluster that need programs of the user, since no registry has them: Istio's
//! ambient modes with a ztunnel, and Linkerd. The path is proven from the proxies' own counters, and all
//! proxies have their usage.
//!
//! Without harness: if the programs are missing, a case is listed as not run. Needs root, as the cluster
//! does, and what `make components` builds.

#![allow(clippy::print_stdout)]

#[path = "../../../lab/tests/arrangement/cases.rs"]
mod cases;
#[path = "../one_node_cluster/cluster.rs"]
mod cluster;
mod linkerd;
#[path = "../one_node_cluster/study.rs"]
mod study;
#[path = "../../../lab/tests/istio/with_ztunnel.rs"]
mod with_ztunnel;

use self::cases::{Cases, Demand};
use self::cluster::{OneNodeCluster, SAMPLED_WINDOW};
use self::study::{Study, assert_proven, trials};
use ::cluster::settings::{DEFAULT_PREFIX, RUN_LABEL};
use components::{Component, Overrides, find};
use results::{Mode, Role, TrialRecord};
use std::process::ExitCode;

const WITH_ZTUNNEL: &[(&str, fn())] =
    &[("paths_through_ztunnel_and_waypoint_are_proven", paths_through_ztunnel_and_waypoint_are_proven)];

fn main() -> ExitCode {
    let mut cases = Cases::new(&[]);
    cases.add(WITH_ZTUNNEL, with_ztunnel::missing().as_deref());
    cases.add(linkerd::CASES, linkerd::missing().as_deref());
    if Cases::<fn()>::is_worker() { cases.work(None, |case| case()) } else { cases.run(Demand::Time) }
}

/// Asserts that nothing of a run is left, such as a Gateway or what istiod made of it.
fn assert_clean(cluster: &OneNodeCluster) {
    let left = ["get", "namespaces,jobs,pods", "--all-namespaces", "--output=name", "--selector", RUN_LABEL];
    assert_eq!(cluster.kubectl(&left).trim(), "");
}

/// True if a component of this role was measured.
fn has_used(trial: &TrialRecord, name: &str, role: Role) -> bool {
    let mut components = trial.components.iter();
    components.any(|component| component.name == name && component.role == role && component.cpu_user_s > 0.0)
}

fn paths_through_ztunnel_and_waypoint_are_proven() {
    let ztunnel = find(Component::Ztunnel, &Overrides::default()).unwrap();
    let cluster = OneNodeCluster::up();
    cluster.import_meshmeter();
    cluster.run("ambient", [&ztunnel.path]);
    let (name, namespace, modes) = ("mesh-modes", DEFAULT_PREFIX, "none,ambient,ambient-waypoint");
    // Long enough for two kubelet samples of each container.
    let study =
        Study { name, namespace, modes, rate: 60, generators: 2, duration: SAMPLED_WINDOW, arguments: &[] };
    let trials = trials(&study.run(&cluster));
    let modes: Vec<Mode> = trials.iter().map(|trial| trial.mode).collect();
    for mode in [Mode::None, Mode::Ambient, Mode::AmbientWaypoint] {
        assert!(modes.contains(&mode), "{mode} is not in {modes:?}");
    }
    for trial in &trials {
        check_path(trial);
        check_usage(trial);
    }
    assert_clean(&cluster);
}

/// Every request passed these proxies, encrypted. The cluster has one node, so one ztunnel serves both ends
/// of a call.
fn check_path(trial: &TrialRecord) {
    assert_proven(trial);
    let path = &trial.path;
    let passed: Vec<&str> = path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    let expected: &[&str] = match trial.mode {
        Mode::Ambient => &["ztunnel", "ztunnel"],
        Mode::AmbientWaypoint => &["ztunnel", "waypoint", "ztunnel"],
        _ => &[],
    };
    assert_eq!(passed, expected);
    for proxy in &path.proxies {
        assert!(proxy.tls_expected && proxy.tls_handshakes > 0, "{proxy:?}");
        assert!(proxy.requests_received > 0, "{proxy:?}");
        // Counters of other pods are not evidence of the run.
        let is_own = |name: &String| proxy.name != "ztunnel" || name.contains("@meshmeter>meshmeter");
        assert!(proxy.counters.keys().all(is_own), "{:?}", proxy.counters.keys());
    }
}

/// ztunnel and waypoint are separate components, and a note says what a ztunnel's usage covers.
fn check_usage(trial: &TrialRecord) {
    let used = |name: &str, role: Role| has_used(trial, name, role);
    let names: Vec<&str> = trial.components.iter().map(|component| component.name.as_str()).collect();
    let is_ambient = trial.mode != Mode::None;
    assert_eq!(used("ztunnel", Role::Proxy), is_ambient, "{}: {names:?}", trial.mode);
    assert_eq!(used("istiod", Role::ControlPlane), is_ambient, "{}: {names:?}", trial.mode);
    assert_eq!(used("waypoint", Role::Proxy), trial.mode == Mode::AmbientWaypoint, "{names:?}");
    let is_said = trial.verdict.notes.iter().any(|note| note.starts_with("ztunnel serves all pods of node"));
    assert_eq!(is_said, is_ambient, "{:?}", trial.verdict.notes);
}
