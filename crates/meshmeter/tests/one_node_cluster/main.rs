//! Meshmeter's service and generator as containers of a real one-node cluster.
//!
//! Needs root, as the cluster does, and what `make components` builds.

mod cluster;
#[path = "../command/mod.rs"]
mod command;
mod detached;
mod failures;
mod gateways;
mod injected;
mod istiod;
mod large;
mod packages;
mod runs;
mod scraped;
mod study;

use cluster::OneNodeCluster;
use runs::POLL_INTERVAL;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROUTE_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout for the kernel to end a cluster's processes.
const END_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn a_service_is_loaded_by_name_and_measured_and_nothing_is_left() {
    let cluster = OneNodeCluster::up();
    cluster.import_meshmeter();
    apply(&cluster, "web.yaml");
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=300s"]);
    wait_until_routed(&cluster, "default/web");
    apply(&cluster, "load.yaml");
    // On a busy machine the generator may report that its figures are invalid, and exit with a non-zero
    // status.
    let ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated.reason}";
    cluster.kubectl(&["wait", "--for=create", "pod", "--selector=job-name=load", "--timeout=300s"]);
    cluster.kubectl(&["wait", ended, "pod", "--selector=job-name=load", "--timeout=300s"]);

    // Its verdict on standard error may follow.
    let log = cluster.kubectl(&["logs", "job/load"]);
    let result: Value = serde_json::Deserializer::from_str(&log).into_iter().next().unwrap().unwrap();
    assert_eq!(result["requests"]["status"]["200"], 200, "{result}");
    assert_eq!(result["requests"]["failed"], 0, "{result}");
    let summary = cluster.kubectl(&["get", "--raw", "/api/v1/nodes/node-1/proxy/stats/summary"]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let names = |pod: &Value| pod["podRef"]["name"].as_str().unwrap().starts_with("web-");
    let web = summary["pods"].as_array().unwrap().iter().find(|pod| names(pod)).expect("the service's pod");
    assert_eq!(web["containers"][0]["name"], "web");
    let may_read = ["auth", "can-i", "list", "pods", "--as=system:serviceaccount:default:default"];
    assert_eq!(String::from_utf8_lossy(&cluster.try_run("kubectl", may_read).stdout).trim(), "no");

    check_that_nothing_is_left_after_its_main_process_is_killed(&cluster);
}

fn apply(cluster: &OneNodeCluster, objects: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/one_node_cluster").join(objects);
    cluster.kubectl(&["apply", "--filename", path.to_str().unwrap()]);
}

/// Waits until kube-proxy routes connections to a Service to one of its pods.
fn wait_until_routed(cluster: &OneNodeCluster, service: &str) {
    let rule = format!("{service} -> ");
    let began = Instant::now();
    while !cluster.run("enter", ["iptables", "--table", "nat", "--list-rules"]).contains(&rule) {
        assert!(began.elapsed() < ROUTE_TIMEOUT, "kube-proxy has no rule for {service}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn check_that_nothing_is_left_after_its_main_process_is_killed(cluster: &OneNodeCluster) {
    let process = |name: &str| {
        let recorded = std::fs::read_to_string(cluster.folder().join("node").join(name)).unwrap();
        Pid::from_raw(recorded.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    };
    let (main, init) = (process("main.process"), process("init.process"));
    assert!(!cgroups_of(cluster).is_empty());
    kill_process(main, Signal::KILL).unwrap();
    let killed = Instant::now();
    while test_kill_process(init).is_ok() {
        assert!(killed.elapsed() < END_TIMEOUT, "the namespaces' first process outlives the main process");
        std::thread::yield_now();
    }
    assert!(!cluster.try_run("status", [""; 0]).status.success());

    let cgroups = cgroups_of(cluster);
    cluster.run("down", [""; 0]);
    let left: Vec<&PathBuf> = cgroups.iter().filter(|cgroup| cgroup.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
    let kept: Vec<_> =
        std::fs::read_dir(cluster.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(kept.iter().all(|name| name == "logs"), "{kept:?}");
}

/// With cgroup v1 one per controller, with v2 a single one.
fn cgroups_of(cluster: &OneNodeCluster) -> Vec<PathBuf> {
    let name = std::fs::read_to_string(cluster.folder().join("node/cgroup")).unwrap();
    let root = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let candidates = controllers.chain([root.to_path_buf()]).map(|parent| parent.join(name.trim()));
    candidates.filter(|cgroup| cgroup.is_dir()).collect()
}
