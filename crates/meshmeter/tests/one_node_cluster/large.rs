//! Plans with hundreds of services, on nodes without machines: objects are written, pods become ready,
//! everything is removed. No load runs.
//! `cargo test --test one_node_cluster -- a_thousand_services --include-ignored --nocapture` does it with a
//! thousand, and prints how long both take.

use crate::cluster::OneNodeCluster;
use cluster::connection::Connection;
use cluster::environment::Cluster;
use cluster::settings::{ClusterSettings, RUN_LABEL};
use experiment::{Experiment, Plan};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More than the API lists at once, which is 500.
const MORE_THAN_A_PAGE: usize = 520;
const RUN: &str = "large-1";
/// Timeout for all objects to be ready, for their removal, and for controllers to report what they have created.
const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(180);
/// Listing a thousand objects takes the API server a second of CPU.
const LIST_INTERVAL: Duration = Duration::from_secs(3);

fn large_plan(services: usize) -> Plan {
    let yaml = format!(
        "name: large\nquestion: Can it be deployed?\ntopology: {{shape: random, services: {services}, density: 0}}\n\
         mesh: istio\nmodes: [none]\nload: {{rate: 100}}\n"
    );
    let experiment = Experiment::parse(&yaml, "large.yaml").expect("a good experiment");
    Plan::new(&experiment, 1)
}

#[test]
fn more_services_than_a_page_come_up_and_go() {
    come_up_and_go(MORE_THAN_A_PAGE);
}

#[test]
#[ignore = "minutes of CPU, and no other code than with 520"]
fn a_thousand_services_come_up_and_go() {
    let (created_after, removed_after) = come_up_and_go(1000);
    println!("created after {created_after:.1?}, removed after {removed_after:.1?}");
}

/// Returns how long it takes until all pods are ready, and until nothing is left.
fn come_up_and_go(services: usize) -> (Duration, Duration) {
    let node = OneNodeCluster::up();
    node.run("kwok", ["20"]);
    let kubeconfig = node.folder().join("kubeconfig");
    let connected = Connection { kubeconfig: Some(kubeconfig.clone()), context: None }.open().unwrap();
    let mut environment = Cluster::new(connected, ClusterSettings::new("meshmeter", RUN), Arc::new(|| false));
    let plan = large_plan(services);

    let began = Instant::now();
    let rolled_out = environment.roll_out(&plan.trials[0].spec).unwrap();
    let created_after = began.elapsed();
    // A Deployment, a Service and a service account per service, a Job and a service account for the
    // generator, and the topology.
    assert_eq!((rolled_out.objects(), rolled_out.pods()), (3 * services + 3, services + 1));
    check_objects(&node, services);

    // As after a run that was killed.
    let began = Instant::now();
    let clean = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
        .args(["cluster", "clean", "--run", RUN, "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let removed_after = began.elapsed();
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
    let left = [
        "get",
        "deployments,jobs,services,pods,namespaces,serviceaccounts",
        "--all-namespaces",
        "--output=name",
    ];
    let left = node.kubectl(&[&left[..], &["--selector", RUN_LABEL]].concat());
    assert_eq!(left.trim(), "");
    for elapsed in [created_after, removed_after] {
        assert!(
            elapsed <= CONTROLLER_TIMEOUT,
            "created after {created_after:.1?}, removed after {removed_after:.1?}"
        );
    }
    // Nothing is left to remove.
    rolled_out.remove().unwrap();
    (created_after, removed_after)
}

/// Objects in the API: each Deployment is available, and each Service routes to its pod. Controllers report
/// this shortly after the pods are ready.
fn check_objects(node: &OneNodeCluster, services: usize) {
    let selector = format!("{RUN_LABEL}={RUN}");
    let wait_for_all = |kind: &str, is_ready: &str| {
        let names = format!("jsonpath={{range .items[?({is_ready})]}}{{.metadata.name}}{{\"\\n\"}}{{end}}");
        let get = ["get", "--namespace=meshmeter", "--output", &names, kind, "--selector", &selector];
        let began = Instant::now();
        loop {
            let ready = node.kubectl(&get).lines().count();
            if ready == services {
                return;
            }
            assert!(began.elapsed() < CONTROLLER_TIMEOUT, "{ready} of {services} {kind} are ready");
            std::thread::sleep(LIST_INTERVAL);
        }
    };
    wait_for_all("deployments", "@.status.availableReplicas==1");
    // EndpointSlices inherit the labels of their Services.
    wait_for_all("endpointslices", "@.endpoints[0].conditions.ready==true");
}
