//! The Helm chart and the kustomize bases in `deploy/`: linted, rendered, and installed, each with a run that
//! succeeds.

use crate::cluster::OneNodeCluster;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXPERIMENT: &str = "\
name: pair
question: Does a run in a pod of the cluster end well?
topology: pair
mesh: istio
modes: [none]
load: {rate: 50, warmup: 100ms, duration: 1s}
repeats: 1
";

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

#[test]
fn the_chart_and_the_base_start_runs_that_end() {
    let cluster = OneNodeCluster::up();
    cluster.import_meshmeter();
    let experiment = cluster.folder().join("experiment.yaml");
    std::fs::write(&experiment, EXPERIMENT).unwrap();
    check_that_the_chart_is_good(&cluster);
    install_the_chart(&cluster, &experiment);
    apply_the_base(&cluster, &experiment);
}

fn check_that_the_chart_is_good(cluster: &OneNodeCluster) {
    let chart = deploy("helm/meshmeter");
    let chart = chart.to_str().unwrap();
    cluster.run("helm", ["lint", "--strict", chart]);
    let everything = [
        "--set=rights.ambient=true,rights.gatewayTls=true,rights.nodes=true,namespaces={a,b},study=mesh-modes,generatorNodes=load=true",
        "--set=nodeSelector.disk=ssd,results.claim=runs,arguments={--repeats=3},activeDeadlineSeconds=3600",
    ];
    let rendered =
        cluster.run("helm", [&["template", "perf", chart, "--namespace=perf"], &everything[..]].concat());
    for expected in [
        "namespace: b",
        "namespace: istio-system",
        "kind: ClusterRole",
        "peerauthentications",
        "daemonsets",
        "- mesh-modes",
        "claimName: runs",
        "rolebindings",
    ] {
        assert!(rendered.contains(expected), "no {expected:?} in {rendered}");
    }
    assert!(!rendered.contains("--without-nodes") && !rendered.contains("kind: ConfigMap"), "{rendered}");
    let istio = cluster.kubectl(&["kustomize", deploy("kustomize/istio").to_str().unwrap()]);
    assert!(istio.contains("namespace: istio-system") && !istio.contains("--without-nodes"), "{istio}");
}

fn install_the_chart(cluster: &OneNodeCluster, experiment: &Path) {
    let chart = deploy("helm/meshmeter");
    let file = format!("--set-file=experiment={}", experiment.display());
    let image = "--set=image.repository=localhost/meshmeter,image.tag=test,image.pullPolicy=Never";
    let install =
        ["install", "perf", chart.to_str().unwrap(), "--namespace=perf", "--create-namespace", &file, image];
    let notes = cluster.run("helm", [&install[..], &["--set=keepFor=10m"]].concat());
    assert!(notes.contains("job/perf-1"), "{notes}");
    attach(cluster);
    check_run(cluster, "perf", "job/perf-1");
    cluster.run("helm", ["uninstall", "perf", "--namespace=perf", "--wait"]);
    let left =
        ["get", "jobs,roles,rolebindings,configmaps,serviceaccounts", "--namespace=perf", "--output=name"];
    let left = cluster.kubectl(&[&left[..], &["--selector=app.kubernetes.io/instance=perf"]].concat());
    assert_eq!(left.trim(), "");
}

/// The run of the chart is found like one that `run --detach` has started.
fn attach(cluster: &OneNodeCluster) {
    let run = ["cluster", "attach", "perf-1", "--namespace=perf", "--kubeconfig"];
    let folder = cluster.folder().join("run");
    let attached = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
        .args(run)
        .arg(cluster.folder().join("kubeconfig"))
        .arg("--out")
        .arg(&folder)
        .output()
        .unwrap();
    let status = attached.status.code();
    assert!(matches!(status, Some(0 | 1)), "{status:?}: {}", String::from_utf8_lossy(&attached.stderr));
    assert!(folder.join("report.html").exists() && folder.join("trials.jsonl").exists());
}

/// An overlay as a user writes it, with another image and another experiment.
fn apply_the_base(cluster: &OneNodeCluster, experiment: &Path) {
    let overlay = cluster.folder().join("overlay");
    std::fs::create_dir(&overlay).unwrap();
    std::fs::copy(experiment, overlay.join("experiment.yaml")).unwrap();
    // kustomize does not accept absolute paths.
    let base = overlay.join("base");
    copy_files(&deploy("kustomize/base"), &base);
    let text = "\
resources: [base]
images: [{name: meshmeter, newName: localhost/meshmeter, newTag: test}]
configMapGenerator:
- {name: meshmeter-experiment, namespace: meshmeter, behavior: replace, files: [experiment.yaml]}
";
    std::fs::write(overlay.join("kustomization.yaml"), text).unwrap();
    cluster.kubectl(&["apply", "--kustomize", overlay.to_str().unwrap()]);
    check_run(cluster, "meshmeter", "job/meshmeter");
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Waits until a run has ended. A busy machine may make its single trial invalid, which has its own exit
/// status; what was measured is in its log. Only its own Job is left.
fn check_run(cluster: &OneNodeCluster, namespace: &str, job: &str) {
    let namespace = format!("--namespace={namespace}");
    let pods = format!("--selector=job-name={}", job.trim_start_matches("job/"));
    let ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    cluster.kubectl(&[&namespace, "wait", "--for=create", "pod", &pods, "--timeout=300s"]);
    cluster.kubectl(&[&namespace, "wait", ended, "pod", &pods, "--timeout=300s"]);
    let log = cluster.kubectl(&[&namespace, "logs", job]);
    assert!(log.contains("1 trial recorded of 1 planned"), "{log}");
    let status = "jsonpath={.items[0].status.containerStatuses[0].state.terminated.exitCode}";
    let status = cluster.kubectl(&[&namespace, "get", "pods", &pods, "--output", status]);
    assert!(status == "0" || status == "1", "exit status {status}: {log}");
    let selector = "--selector=meshmeter.dev/run,app.kubernetes.io/component!=runner";
    let left = ["get", "deployments,jobs,services", selector, "--output=name"];
    let left = cluster.kubectl(&[&[&*namespace], &left[..]].concat());
    assert_eq!(left.trim(), "");
}
