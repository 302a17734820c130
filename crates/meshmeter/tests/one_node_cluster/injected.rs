//! Runs with and without sidecars injected by istiod's webhook: the path is proven from the proxies' own
//! counters, and each container has its usage.

use crate::cluster::{OneNodeCluster, SAMPLED_WINDOW};
use crate::failures::{not_injected, sidecar_killed};
use crate::gateways::{
    istios_api_has_a_gateway_with_certificates, the_gateway_api_has_a_gateway_that_istiod_deploys,
};
use crate::istiod::fleet_converges_and_leaves_nothing;
use crate::study::{Study, assert_proven, trials};
use cluster::settings::RUN_LABEL;
use results::{Host, Mode, Role, TrialRecord};
use std::thread;

/// Generators of the pair's load.
const GENERATORS: u32 = 6;

/// A study in a namespace with its name, with both modes.
fn study<'a>(name: &'a str, rate: u32, generators: u32, duration: &'a str) -> Study<'a> {
    Study { name, namespace: name, modes: "none,sidecar", rate, generators, duration, arguments: &[] }
}

/// Each mode was measured, and with sidecars every request passed each of these, encrypted.
fn check_paths(trials: &[TrialRecord], sidecars: &[&str]) {
    assert_eq!(trials.len(), 2);
    for trial in trials {
        check_path(trial, if trial.mode == Mode::Sidecar { sidecars } else { &[] });
    }
}

/// The trial was measured, and every request passed each of these proxies, encrypted.
pub(super) fn check_path(trial: &TrialRecord, proxies: &[&str]) {
    assert_proven(trial);
    let path = &trial.path;
    let mut passed: Vec<&str> = path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    passed.sort_unstable();
    passed.dedup();
    assert_eq!(passed, proxies);
    for proxy in &path.proxies {
        assert!(proxy.tls_expected && proxy.tls_handshakes > 0, "{proxy:?}");
    }
}

/// Calls between services are recorded, with their response times.
fn check_calls(trial: &TrialRecord) {
    let calls: Vec<(&str, &str)> =
        trial.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
    assert_eq!(calls, [("web", "emoji"), ("web", "voting")], "{}", trial.mode);
    for edge in &trial.edges {
        let times = edge.response_time_us.as_ref().expect("callers measure them");
        // On a busy machine the opening of a window of seconds is read at its end.
        assert!(edge.answered > 0 && edge.answered >= times.count, "{edge:?}");
    }
}

/// Sidecars show their heap and their configuration.
fn check_footprints(trial: &TrialRecord) {
    for proxy in trial.components.iter().filter(|component| component.name.ends_with("-proxy")) {
        let held = proxy.holdings.as_ref().expect("sidecars show it");
        let size_bytes = held.configuration.as_ref().map(|configuration| configuration.size_bytes);
        assert!(size_bytes > Some(0) && held.heap_before_load.is_some(), "{}: {held:?}", proxy.name);
    }
}

/// A sidecar's usage is separate from its application's, and istiod's from both. All together they have CPU
/// time in user mode and in the kernel; for a single one, cgroup v1 counts ticks, which may be none.
fn check_usage(trials: &[TrialRecord]) {
    let (mut user_s, mut system_s) = (0.0, 0.0);
    for trial in trials {
        check_node(trial);
        let used = |of: &str, role: Role| {
            let found = trial.components.iter().filter(|component| {
                let has_name = component.name.starts_with(of) && component.role == role;
                has_name && component.cpu_user_s + component.cpu_system_s > 0.0
            });
            found.count()
        };
        for component in trial.components.iter().filter(|component| component.cpu_source == "kubelet") {
            user_s += component.cpu_user_s;
            system_s += component.cpu_system_s;
        }
        let names: Vec<&str> = trial.components.iter().map(|component| component.name.as_str()).collect();
        assert_eq!(used("server", Role::App), 1, "{}: {names:?}", trial.mode);
        if trial.mode == Mode::Sidecar {
            assert_eq!(used("client", Role::Proxy), GENERATORS as usize, "{names:?}");
            assert_eq!(used("server", Role::Proxy), 1, "{names:?}");
            assert_eq!(used("istiod", Role::ControlPlane), 1, "{names:?}");
        }
    }
    assert!(user_s > 0.0 && system_s > 0.0, "{user_s} {system_s}");
}

/// The only node used more CPU than the experiment: the kernel's own work, kubelet, the API server.
fn check_node(trial: &TrialRecord) {
    let [node] = trial.nodes.as_slice() else { panic!("{}: {:?}", trial.mode, trial.nodes) };
    let (Some(system), Some(other), Some(other_system)) =
        (node.system_cores, node.other_cores, node.other_system_cores)
    else {
        panic!("{}: {node:?}", trial.mode);
    };
    // Samples are accurate to a few milliseconds.
    let may_be_busy = node.cpus.expect("CPUs") as f64 * 1.05;
    assert!(node.window_s > 0.0 && node.busy_cores < may_be_busy, "{node:?}");
    assert!(0.0 < system && system < node.busy_cores && other < node.busy_cores, "{node:?}");
    assert!(0.0 < other_system && other_system <= other, "{node:?}");
}

#[test]
fn istio_in_a_cluster_injects_sidecars_makes_gateways_and_configures_a_fleet() {
    let cluster = OneNodeCluster::up();
    cluster.import_meshmeter();
    cluster.run("istio", [""; 0]);
    path_and_usage_of_sidecars_are_known(&cluster);
    fleet_converges_and_leaves_nothing(&cluster);
}

fn path_and_usage_of_sidecars_are_known(cluster: &OneNodeCluster) {
    let (pair, app) = thread::scope(|scope| {
        let pair = scope.spawn(|| study("mesh-modes", 60, GENERATORS, SAMPLED_WINDOW).run(cluster));
        // By a revision tag.
        let arguments = &["--istio-revision", "stable", "--set", "istio.workload-keys=ecdsa"];
        let app = scope.spawn(|| Study { arguments, ..study("emojivoto", 10, 1, "3s") }.run(cluster));
        (pair.join().unwrap(), app.join().unwrap())
    });
    thread::scope(|scope| {
        scope.spawn(|| the_gateway_api_has_a_gateway_that_istiod_deploys(cluster));
        istios_api_has_a_gateway_with_certificates(cluster);
        sidecar_killed(cluster);
        not_injected(cluster);
    });

    let of_pair = trials(&pair);
    for trial in &of_pair {
        let merged = trial.result.as_ref().and_then(|result| result.merged.as_ref());
        let parts = merged.map(|merged| merged.parts.iter().map(|part| part.requests));
        let requests: Vec<u64> = parts.into_iter().flatten().collect();
        assert!(
            requests.len() == GENERATORS as usize && requests.iter().all(|requests| *requests > 0),
            "{requests:?}"
        );
    }
    check_paths(&of_pair, &["client-proxy", "server-proxy"]);
    for trial in &of_pair {
        let injected: Vec<&str> = trial.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(injected, if trial.mode == Mode::Sidecar { vec!["istio-proxy"] } else { vec![] });
    }
    let of_server =
        of_pair.iter().flat_map(|trial| &trial.path.proxies).find(|proxy| proxy.name == "server-proxy");
    // The study sets `proxy.mtls: strict` by default.
    assert_eq!(of_server.and_then(|proxy| proxy.takes_plain_text), Some(false));
    check_usage(&of_pair);
    let of_app = trials(&app);
    check_paths(&of_app, &["client-proxy", "emoji-proxy", "voting-proxy", "web-proxy"]);
    of_app.iter().for_each(check_calls);
    of_pair.iter().for_each(check_footprints);
    let logs = std::fs::read_dir(pair.join("logs")).unwrap().map(|trial| trial.unwrap().path());
    let kept = logs.filter(|trial| trial.join("server-proxy.configuration.json.gz").is_file()).count();
    assert_eq!(kept, 1, "the trial with sidecars");
    for run in [&pair, &app] {
        let host: Host = serde_json::from_slice(&std::fs::read(run.join("host.json")).unwrap()).unwrap();
        let named: Vec<&str> = host.versions.iter().map(|version| version.name.as_str()).collect();
        for name in ["kubernetes", "kubelet", "container-runtime", "linux", "istiod"] {
            assert!(named.contains(&name), "{name} is not in {named:?}");
        }
    }
    let left = ["get", "namespaces,jobs,pods", "--all-namespaces", "--output=name", "--selector", RUN_LABEL];
    assert_eq!(cluster.kubectl(&left).trim(), "");
}
